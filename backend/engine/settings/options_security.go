package settings

var securityOptions = []option{
	{
		KeyInfo: KeyInfo{Name: "user", Type: "text", Example: "1000:1000", Meaning: "user that code runs as: a number or a name of the image, with an optional :GROUP; default: not root"},
		codec:   text(func(s *Settings) *string { return &s.User }, matching(`[^\s:]+(:[^\s:]+)?`, "USER or USER:GROUP")),
	},
	{
		KeyInfo: KeyInfo{Name: "group_add", Type: "list", Example: "audio", Meaning: "further groups of that user, by name or number"},
		codec:   list(one(toText), func(s *Settings) *[]string { return &s.Groups }, word),
	},
	{
		KeyInfo: KeyInfo{Name: "privileged", Type: "boolean", Example: "false", Meaning: "all capabilities and devices, no confinement: as good as root on the engine's host"},
		codec:   pointer(toBool, func(s *Settings) **bool { return &s.Privileged }, anything),
	},
	{
		KeyInfo: KeyInfo{Name: "read_only", Type: "boolean", Example: "false", Meaning: "the root file system cannot be written to; default true"},
		codec:   pointer(toBool, func(s *Settings) **bool { return &s.ReadOnlyRoot }, anything),
	},
	{
		KeyInfo: KeyInfo{Name: "cap_add", Type: "list", Example: "NET_ADMIN", Meaning: "capabilities the container may hold, or ALL; all are dropped otherwise"},
		codec:   list(one(toCapability), func(s *Settings) *[]string { return &s.CapAdd }, validCapability),
	},
	{
		KeyInfo: KeyInfo{Name: "cap_drop", Type: "list", Example: "ALL", Meaning: "capabilities taken away again, with cap_add=ALL or privileged; ALL is the default"},
		codec:   list(one(toCapability), func(s *Settings) *[]string { return &s.CapDrop }, validCapability),
	},
	{
		KeyInfo: KeyInfo{Name: "security_opt", Type: "list", Example: "no-new-privileges=true", Meaning: "no-new-privileges=true or false, seccomp=FILE, JSON or unconfined, apparmor=PROFILE, label=..., systempaths=unconfined, and Podman's mask=PATHS and unmask=PATHS; each is added to the defaults, or takes the place of the one of its kind"},
		codec:   list(one(toText), func(s *Settings) *[]string { return &s.SecurityOpt }, validSecurityOpt),
	},
	{
		KeyInfo: KeyInfo{Name: "userns_mode", Type: "text", Example: "host", Meaning: "host: no user namespace; Podman also knows private, auto, keep-id, nomap, container:ID and ns:PATH"},
		codec:   text(func(s *Settings) *string { return &s.UsernsMode }, oneOf("host", "private", "auto", "auto:", "keep-id", "keep-id:", "nomap", "container:", "ns:")),
	},
	{
		KeyInfo: KeyInfo{Name: "ipc_mode", Type: "text", Example: "none", Meaning: "shared memory and queues: none, private, shareable, host or container:ID"},
		codec:   text(func(s *Settings) *string { return &s.IpcMode }, oneOf("none", "private", "shareable", "host", "container:")),
	},
	{
		KeyInfo: KeyInfo{Name: "pid_mode", Type: "text", Example: "host", Meaning: "whose processes it sees: host or container:ID; default: its own"},
		codec:   text(func(s *Settings) *string { return &s.PidMode }, oneOf("host", "container:")),
	},
	{
		KeyInfo: KeyInfo{Name: "uts_mode", Type: "text", Example: "host", Meaning: "host: the host's own host name; default: one of its own"},
		codec:   text(func(s *Settings) *string { return &s.UTSMode }, oneOf("host")),
	},
	{
		KeyInfo: KeyInfo{Name: "cgroupns", Type: "text", Example: "private", Meaning: "cgroup namespace: private or host"},
		codec:   text(func(s *Settings) *string { return &s.CgroupnsMode }, oneOf("private", "host")),
	},
	{
		KeyInfo: KeyInfo{Name: "cgroup_parent", Type: "text", Example: "sandboxes.slice", Meaning: "cgroup of the host below which the container's is made"},
		codec:   text(func(s *Settings) *string { return &s.CgroupParent }, word),
	},
	{
		KeyInfo: KeyInfo{Name: "sysctls", Type: "map", Example: "net.core.somaxconn=1024", Meaning: "kernel parameters that belong to the container: NAME=VALUE"},
		codec:   table(nameValue, func(s *Settings) *map[string]string { return &s.Sysctls }, wordLine),
	},
	{
		KeyInfo: KeyInfo{Name: "devices", Type: "list", Example: "/dev/fuse:/dev/fuse:rwm", Meaning: "devices of the host: HOST[:INSIDE[:rwm]], or objects with PathOnHost, PathInContainer and CgroupPermissions"},
		codec:   list(one(toDevice), devicesField, validDevice),
	},
	{
		KeyInfo: KeyInfo{Name: "device_cgroup_rules", Type: "list", Example: "c 10:229 rw", Meaning: "device numbers it may use: TYPE MAJOR:MINOR rwm"},
		codec:   list(one(toText), func(s *Settings) *[]string { return &s.DeviceCgroupRules }, matching(`[abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3}`, "TYPE MAJOR:MINOR PERMISSIONS, such as c 10:229 rw")),
	},
	{
		KeyInfo: KeyInfo{Name: "device_requests", Type: "list", Example: "all", Meaning: "GPUs: all, a number, device=ID, or objects with Driver, Count, DeviceIDs, Capabilities and Options"},
		codec:   list(one(toDeviceRequest), deviceRequestsField, validDeviceRequest),
	},
}
