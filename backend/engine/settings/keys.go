package settings

import (
	"math"
	"net/netip"
	"slices"

	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

// KeyInfo describes one key of [Settings.Set] and [FromMap].
type KeyInfo struct {
	Name    string // docker-py's keyword name
	Group   string // "resources", "security", "network", "files" or "process"
	Type    string // "size", "integer", "boolean", "text", "list" or "map"
	Meaning string // one line, with unit and default
	Example string // a value as Set takes it
}

// An option is a key and how its value gets into the Settings.
type option struct {
	KeyInfo
	codec
}

// secret tells that values are not repeated in errors.
func (o *option) secret() bool { return o.Name == "environment" }

// Keys returns every key there is, grouped, in the order of documentation.
func Keys() []KeyInfo {
	keys := make([]KeyInfo, 0, len(options))
	for _, o := range options {
		keys = append(keys, o.KeyInfo)
	}
	return keys
}

func key(name, kind, example, meaning string, c codec) option {
	return option{KeyInfo{Name: name, Type: kind, Meaning: meaning, Example: example}, c}
}

func group(name string, all ...option) []option {
	for i := range all {
		all[i].Group = name
	}
	return all
}

var optionByName = func() map[string]*option {
	byName := make(map[string]*option, len(options))
	for i := range options {
		byName[options[i].Name] = &options[i]
	}
	return byName
}()

const cpuList = `[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*`

// options is every key, in the order of documentation.
var options = slices.Concat(
	group("resources",
		key("mem_limit", "size", "512m", "memory of the whole sandbox, in place of its memory limit; 0 lifts it",
			pointer(toSize, func(s *Settings) **int64 { return &s.Memory }, memory(0))),
		key("mem_reservation", "size", "256m", "soft limit, held when the host is short of memory; below the memory limit",
			pointer(toSize, func(s *Settings) **int64 { return &s.MemoryReservation }, memory(0))),
		key("memswap_limit", "size", "1g", "memory and swap together; -1: any swap; default: the memory limit, so no swap",
			pointer(toSwap, func(s *Settings) **int64 { return &s.MemorySwap }, memory(-1))),
		key("mem_swappiness", "integer", "0", "how readily pages are swapped out, 0 to 100",
			pointer(toInt, func(s *Settings) **int64 { return &s.MemorySwappiness }, within[int64](0, 100))),
		key("oom_kill_disable", "boolean", "false", "let processes hang at the memory limit instead of killing them",
			pointer(toBool, func(s *Settings) **bool { return &s.OOMKillDisable }, anything)),
		key("oom_score_adj", "integer", "500", "how readily the kernel kills it when the host is out of memory, -1000 to 1000",
			pointer(toSmall[int], func(s *Settings) **int { return &s.OOMScoreAdj }, within[int](-1000, 1000))),
		key("shm_size", "size", "128m", "size of /dev/shm, which counts as memory; default: at most 64m",
			pointer(toSize, func(s *Settings) **int64 { return &s.ShmSize }, within[int64](1, math.MaxInt64))),
		key("nano_cpus", "integer", "1500000000", "CPUs in billionths, in place of the sandbox's CPU limit; 0 lifts it",
			pointer(toInt, func(s *Settings) **int64 { return &s.NanoCPUs }, nanoCPUs)),
		key("cpu_quota", "integer", "50000", "microseconds of CPU time in each cpu_period, in place of the CPU limit; -1 lifts it",
			pointer(toInt, func(s *Settings) **int64 { return &s.CPUQuota }, cpuQuota)),
		key("cpu_period", "integer", "100000", "length of a period in microseconds, 1000 to 1000000; default 100000",
			pointer(toInt, func(s *Settings) **int64 { return &s.CPUPeriod }, within[int64](1000, 1000000))),
		key("cpu_shares", "integer", "512", "weight against other containers when CPUs are short, 2 to 262144",
			pointer(toInt, func(s *Settings) **int64 { return &s.CPUShares }, within[int64](2, 262144))),
		key("cpu_rt_period", "integer", "1000000", "period of real-time scheduling in microseconds",
			pointer(toInt, func(s *Settings) **int64 { return &s.CPURealtimePeriod }, within[int64](1, math.MaxInt32))),
		key("cpu_rt_runtime", "integer", "950000", "microseconds of real-time CPU time in each cpu_rt_period",
			pointer(toInt, func(s *Settings) **int64 { return &s.CPURealtimeRuntime }, within[int64](1, math.MaxInt32))),
		key("cpuset_cpus", "text", "0-1", "CPUs it may run on, such as 0-3 or 0,2",
			text(func(s *Settings) *string { return &s.CpusetCPUs }, matching(cpuList, "numbers and ranges, such as 0-3 or 0,2"))),
		key("cpuset_mems", "text", "0", "memory nodes it may use, such as 0 or 0-1",
			text(func(s *Settings) *string { return &s.CpusetMems }, matching(cpuList, "numbers and ranges, such as 0 or 0-1"))),
		key("pids_limit", "integer", "64", "processes and threads, in place of the sandbox's limit; -1 lifts it",
			pointer(toInt, func(s *Settings) **int64 { return &s.PIDs }, within[int64](-1, math.MaxInt32))),
		key("ulimits", "list", "nofile=1024:2048", "limits of each process: NAME=SOFT[:HARD], -1 for none, or objects with Name, Soft and Hard",
			list(one(toUlimit), func(s *Settings) *[]container.Ulimit { return &s.Ulimits }, validUlimit)),
		key("blkio_weight", "integer", "300", "weight of block input and output, 10 to 1000",
			pointer(toSmall[uint16], func(s *Settings) **uint16 { return &s.BlkioWeight }, within[uint16](10, 1000))),
		key("blkio_weight_device", "list", "/dev/sda:200", "the same for a device: PATH:WEIGHT, or objects with Path and Weight",
			list(one(toWeight), func(s *Settings) *[]blkiodev.WeightDevice { return &s.BlkioWeightDevice }, validWeight)),
		key("device_read_bps", "list", "/dev/sda:10m", "bytes a second read from a device: PATH:SIZE, or objects with Path and Rate",
			list(one(toBps), func(s *Settings) *[]blkiodev.ThrottleDevice { return &s.DeviceReadBps }, validThrottle)),
		key("device_write_bps", "list", "/dev/sda:10m", "bytes a second written to a device: PATH:SIZE, or objects with Path and Rate",
			list(one(toBps), func(s *Settings) *[]blkiodev.ThrottleDevice { return &s.DeviceWriteBps }, validThrottle)),
		key("device_read_iops", "list", "/dev/sda:1000", "reads a second from a device: PATH:NUMBER, or objects with Path and Rate",
			list(one(toIOps), func(s *Settings) *[]blkiodev.ThrottleDevice { return &s.DeviceReadIOps }, validThrottle)),
		key("device_write_iops", "list", "/dev/sda:1000", "writes a second to a device: PATH:NUMBER, or objects with Path and Rate",
			list(one(toIOps), func(s *Settings) *[]blkiodev.ThrottleDevice { return &s.DeviceWriteIOps }, validThrottle)),
	),
	group("security",
		key("user", "text", "1000:1000", "user that code runs as: a number or a name of the image, with an optional :GROUP; default: not root",
			text(func(s *Settings) *string { return &s.User }, matching(`[^\s:]+(:[^\s:]+)?`, "USER or USER:GROUP"))),
		key("group_add", "list", "audio", "further groups of that user, by name or number",
			list(one(toText), func(s *Settings) *[]string { return &s.Groups }, word)),
		key("privileged", "boolean", "false", "all capabilities and devices, no confinement: as good as root on the engine's host",
			pointer(toBool, func(s *Settings) **bool { return &s.Privileged }, anything)),
		key("read_only", "boolean", "false", "the root file system cannot be written to; default true",
			pointer(toBool, func(s *Settings) **bool { return &s.ReadOnlyRoot }, anything)),
		key("cap_add", "list", "NET_ADMIN", "capabilities the container may hold, or ALL; all are dropped otherwise",
			list(one(toCapability), func(s *Settings) *[]string { return &s.CapAdd }, validCapability)),
		key("cap_drop", "list", "ALL", "capabilities taken away again, with cap_add=ALL or privileged; ALL is the default",
			list(one(toCapability), func(s *Settings) *[]string { return &s.CapDrop }, validCapability)),
		key("security_opt", "list", "no-new-privileges=true", "no-new-privileges=true or false, seccomp=FILE, JSON or unconfined, apparmor=PROFILE, label=..., systempaths=unconfined, and Podman's mask=PATHS and unmask=PATHS; each is added to the defaults, or takes the place of the one of its kind",
			list(one(toText), func(s *Settings) *[]string { return &s.SecurityOpt }, validSecurityOpt)),
		key("userns_mode", "text", "host", "host: no user namespace; Podman also knows private, auto, keep-id, nomap, container:ID and ns:PATH",
			text(func(s *Settings) *string { return &s.UsernsMode }, oneOf("host", "private", "auto", "auto:", "keep-id", "keep-id:", "nomap", "container:", "ns:"))),
		key("ipc_mode", "text", "none", "shared memory and queues: none, private, shareable, host or container:ID",
			text(func(s *Settings) *string { return &s.IpcMode }, oneOf("none", "private", "shareable", "host", "container:"))),
		key("pid_mode", "text", "host", "whose processes it sees: host or container:ID; default: its own",
			text(func(s *Settings) *string { return &s.PidMode }, oneOf("host", "container:"))),
		key("uts_mode", "text", "host", "host: the host's own host name; default: one of its own",
			text(func(s *Settings) *string { return &s.UTSMode }, oneOf("host"))),
		key("cgroupns", "text", "private", "cgroup namespace: private or host",
			text(func(s *Settings) *string { return &s.CgroupnsMode }, oneOf("private", "host"))),
		key("cgroup_parent", "text", "sandboxes.slice", "cgroup of the host below which the container's is made",
			text(func(s *Settings) *string { return &s.CgroupParent }, word)),
		key("sysctls", "map", "net.core.somaxconn=1024", "kernel parameters that belong to the container: NAME=VALUE",
			table(nameValue, func(s *Settings) *map[string]string { return &s.Sysctls }, wordLine)),
		key("devices", "list", "/dev/fuse:/dev/fuse:rwm", "devices of the host: HOST[:INSIDE[:rwm]], or objects with PathOnHost, PathInContainer and CgroupPermissions",
			list(one(toDevice), func(s *Settings) *[]container.DeviceMapping { return &s.Devices }, validDevice)),
		key("device_cgroup_rules", "list", "c 10:229 rw", "device numbers it may use: TYPE MAJOR:MINOR rwm",
			list(one(toText), func(s *Settings) *[]string { return &s.DeviceCgroupRules }, matching(`[abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3}`, "TYPE MAJOR:MINOR PERMISSIONS, such as c 10:229 rw"))),
		key("device_requests", "list", "all", "GPUs: all, a number, device=ID, or objects with Driver, Count, DeviceIDs, Capabilities and Options",
			list(one(toDeviceRequest), func(s *Settings) *[]container.DeviceRequest { return &s.DeviceRequests }, validDeviceRequest)),
	),
	group("network",
		key("network_mode", "text", "bridge", "the engine's network it joins: none (default), bridge, host, container:ID or a network's name",
			text(networkField, validNetwork)),
		key("network", "text", "bridge", "the same as network_mode",
			text(networkField, validNetwork)),
		key("network_disabled", "boolean", "true", "true is the same as network_mode=none",
			codec{setNetworkDisabled, func(*Settings) (any, error) { return nil, nil }}), // network_mode checks it
		key("ports", "map", "127.0.0.1:8080:80/tcp", "ports published on the engine's host: [[IP:]HOSTPORT:]PORT[/PROTOCOL], or a map of PORT/PROTOCOL to a host port, [IP, HOSTPORT], a list of them, or null for any free port; without an IP on 127.0.0.1 only",
			list(toPorts, func(s *Settings) *[]Port { return &s.Ports }, validPort)),
		key("publish_all_ports", "boolean", "false", "publish every port the image exposes, on every interface of the engine's host",
			pointer(toBool, func(s *Settings) **bool { return &s.PublishAllPorts }, anything)),
		key("hostname", "text", "box", "the host name inside",
			text(func(s *Settings) *string { return &s.Hostname }, validHostname)),
		key("domainname", "text", "example.org", "the domain name inside",
			text(func(s *Settings) *string { return &s.Domainname }, validHostname)),
		key("dns", "list", "192.0.2.53", "addresses of name servers",
			list(one(toAddr), func(s *Settings) *[]netip.Addr { return &s.DNS }, validAddr)),
		key("dns_search", "list", "example.org", "domains in which short names are looked up",
			list(one(toText), func(s *Settings) *[]string { return &s.DNSSearch }, word)),
		key("dns_opt", "list", "ndots:2", "options of the resolver",
			list(one(toText), func(s *Settings) *[]string { return &s.DNSOptions }, word)),
		key("extra_hosts", "map", "db:192.0.2.7", "names in /etc/hosts: NAME:ADDRESS, or a map; host-gateway is the engine's host",
			list(toExtraHosts, func(s *Settings) *[]string { return &s.ExtraHosts }, validExtraHost)),
	),
	group("files",
		key("volumes", "map", "/srv/data:/data:ro", "folders of the engine's host and named volumes: SOURCE:TARGET[:MODE], or a map of SOURCE to {bind: TARGET, mode: MODE}; default mode rw; one at /sandbox or /tmp takes the place of the private folder there",
			list(toVolumes, func(s *Settings) *[]Volume { return &s.Volumes }, validVolume)),
		key("mounts", "list", "type=bind,source=/srv/data,target=/data,readonly", "the same with more detail: fields as of docker run --mount (type, source, target, readonly, bind-propagation, volume-subpath, tmpfs-size, ...), or objects as in the engine's API (Type, Source, Target, ReadOnly, ...)",
			list(one(toMount), func(s *Settings) *[]mount.Mount { return &s.Mounts }, validMount)),
		key("tmpfs", "map", "/scratch:size=64m", "folders in memory: TARGET[:OPTIONS], or a map of TARGET to OPTIONS; at /sandbox and /tmp the options that are not named stay as they are",
			table(cutAt(":"), func(s *Settings) *map[string]string { return &s.Tmpfs }, validTmpfs)),
		key("volumes_from", "list", "other:ro", "all volumes of another container: ID[:ro]",
			list(one(toText), func(s *Settings) *[]string { return &s.VolumesFrom }, matching(`[A-Za-z0-9][A-Za-z0-9_.-]*(:(ro|rw|z|Z))?`, "ID or ID:ro"))),
		key("volume_driver", "text", "local", "driver of the named volumes in volumes",
			text(func(s *Settings) *string { return &s.VolumeDriver }, word)),
		key("storage_opt", "map", "size=2g", "options of the engine's storage driver, such as the size of a writable root: NAME=VALUE",
			table(nameValue, func(s *Settings) *map[string]string { return &s.StorageOpt }, wordLine)),
	),
	group("process",
		key("environment", "map", "TZ=UTC", "environment variables: NAME=VALUE; names that begin with LLMSANDBOX_ are refused",
			table(nameValue, func(s *Settings) *map[string]string { return &s.Environment }, validVariable)),
		key("labels", "map", "team=research", "labels of the container: NAME[=VALUE]; names that begin with llmsandbox. are refused",
			table(cutAt("="), func(s *Settings) *map[string]string { return &s.Labels }, validLabel)),
		key("working_dir", "text", "/data", "where commands start that are told no folder",
			text(func(s *Settings) *string { return &s.WorkingDir }, absolute)),
		key("init", "boolean", "false", "run the engine's init as process 1; the guest agent, which is that otherwise, reaps processes too",
			pointer(toBool, func(s *Settings) **bool { return &s.Init }, anything)),
		key("runtime", "text", "runsc", "OCI runtime, by the name the engine knows it: runsc (gVisor), kata, ...",
			text(func(s *Settings) *string { return &s.Runtime }, word)),
		key("log_config", "map", "none", "what the engine keeps of the container's output: a driver, or an object with Type and Config; default none",
			pointer(toLogConfig, func(s *Settings) **container.LogConfig { return &s.LogConfig }, validLogConfig)),
	),
)
