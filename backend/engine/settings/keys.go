package settings

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/edits"
)

// KeyInfo describes one key of [Settings.Set] and [FromMap].
type KeyInfo struct {
	Name    string // docker-py's keyword name
	Group   string // "resources", "security", "network", "files" or "process"
	Type    string // "size", "integer", "boolean", "text", "list" or "map"
	Meaning string // one line, with unit and default
	Example string // a value as Set takes it
}

// An option is a key and how its value gets into its field.
type option struct {
	KeyInfo
	codec
}

// field returns a pointer to the option's field: the one whose tag is its key.
func (o *option) field(s *Settings) any {
	return reflect.ValueOf(s).Elem().Field(fieldByKey()[o.Name]).Addr().Interface()
}

var fieldByKey = sync.OnceValue(func() map[string]int {
	byKey := map[string]int{}
	for t, i := reflect.TypeFor[Settings](), 0; i < t.NumField(); i++ {
		byKey[t.Field(i).Tag.Get("key")] = i
	}
	byKey["network"], byKey["network_disabled"] = byKey["network_mode"], byKey["network_mode"]
	byKey["cpu_count"] = byKey["nano_cpus"]
	return byKey
})

// secret reports whether values are not repeated in errors.
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
		key("mem_limit", "size", "512m", "memory of the whole sandbox, in place of its memory limit; 0 lifts it", pointer(toSize, memory(0))),
		key("mem_reservation", "size", "256m", "soft limit, held when the host is short of memory; below the memory limit", pointer(toSize, memory(0))),
		key("memswap_limit", "size", "1g", "memory and swap together; -1: any swap; default: the memory limit, so no swap", pointer(toSwap, memory(-1))),
		key("mem_swappiness", "integer", "0", "how readily pages are swapped out, 0 to 100", pointer(toInt, within[int64](0, 100))),
		key("oom_kill_disable", "boolean", "false", "let processes hang at the memory limit instead of killing them", pointer(toBool, anything)),
		key("oom_score_adj", "integer", "500", "how readily the kernel kills it when the host is out of memory, -1000 to 1000", pointer(toSmall[int], within[int](-1000, 1000))),
		key("shm_size", "size", "128m", "size of /dev/shm, which counts as memory; default: at most 64m", pointer(toSize, within[int64](1, math.MaxInt64))),
		key("nano_cpus", "integer", "1500000000", "CPUs in billionths, in place of the sandbox's CPU limit; 0 lifts it", pointer(toInt, nanoCPUs)),
		key("cpu_count", "integer", "2", "CPUs as a whole number, in place of the sandbox's CPU limit", pointer(toCPUs, nanoCPUs)),
		key("cpu_quota", "integer", "50000", "microseconds of CPU time in each cpu_period, in place of the CPU limit; -1 lifts it", pointer(toInt, cpuQuota)),
		key("cpu_period", "integer", "100000", "length of a period in microseconds, 1000 to 1000000; default 100000", pointer(toInt, within[int64](1000, 1000000))),
		key("cpu_shares", "integer", "512", "weight against other containers when CPUs are short, 2 to 262144", pointer(toInt, within[int64](2, 262144))),
		key("cpu_rt_period", "integer", "1000000", "period of real-time scheduling in microseconds", pointer(toInt, within[int64](1, math.MaxInt32))),
		key("cpu_rt_runtime", "integer", "950000", "microseconds of real-time CPU time in each cpu_rt_period", pointer(toInt, within[int64](1, math.MaxInt32))),
		key("cpuset_cpus", "text", "0-1", "CPUs it may run on, such as 0-3 or 0,2", text(matching(cpuList, "numbers and ranges, such as 0-3 or 0,2"))),
		key("cpuset_mems", "text", "0", "memory nodes it may use, such as 0 or 0-1", text(matching(cpuList, "numbers and ranges, such as 0 or 0-1"))),
		key("pids_limit", "integer", "64", "processes and threads, in place of the sandbox's limit; -1 lifts it", pointer(toInt, within[int64](-1, math.MaxInt32))),
		key("ulimits", "list", "nofile=1024:2048", "limits of each process: NAME=SOFT[:HARD], -1 for none, or objects with Name, Soft and Hard", list(one(toUlimit), validUlimit)),
		key("blkio_weight", "integer", "300", "weight of block input and output, 10 to 1000", pointer(toSmall[uint16], within[uint16](10, 1000))),
		key("blkio_weight_device", "list", "/dev/sda:200", "the same for a device: PATH:WEIGHT, or objects with Path and Weight", list(one(textOr(parseWeight, useWeight)), validWeight)),
		key("device_read_bps", "list", "/dev/sda:10m", "bytes a second read from a device: PATH:SIZE, or objects with Path and Rate", list(one(toBps), validThrottle)),
		key("device_write_bps", "list", "/dev/sda:10m", "bytes a second written to a device: PATH:SIZE, or objects with Path and Rate", list(one(toBps), validThrottle)),
		key("device_read_iops", "list", "/dev/sda:1000", "reads a second from a device: PATH:NUMBER, or objects with Path and Rate", list(one(toIOps), validThrottle)),
		key("device_write_iops", "list", "/dev/sda:1000", "writes a second to a device: PATH:NUMBER, or objects with Path and Rate", list(one(toIOps), validThrottle)),
	),
	group("security",
		key("user", "text", "1000:1000", "user that code runs as: a number or a name of the image, with an optional :GROUP; default: not root", text(matching(`[^\s:]+(:[^\s:]+)?`, "USER or USER:GROUP"))),
		key("group_add", "list", "audio", "further groups of that user, by name or number", list(one(toText), word)),
		key("privileged", "boolean", "false", "all capabilities and devices, no confinement: as good as root on the engine's host", pointer(toBool, anything)),
		key("read_only", "boolean", "false", "the root file system cannot be written to; default true", pointer(toBool, anything)),
		key("cap_add", "list", "NET_ADMIN", "capabilities the container may hold, or ALL; all are dropped otherwise", list(one(toCapability), validCapability)),
		key("cap_drop", "list", "ALL", "capabilities taken away again, with cap_add=ALL or privileged; ALL is the default", list(one(toCapability), validCapability)),
		key("security_opt", "list", "no-new-privileges=true", "no-new-privileges=true or false, seccomp=FILE, JSON or unconfined, apparmor=PROFILE, label=..., systempaths=unconfined, and Podman's mask=PATHS and unmask=PATHS; each is added to the defaults, or takes the place of the one of its kind", list(one(toText), validSecurityOpt)),
		key("userns_mode", "text", "host", "host: no user namespace; Podman also knows private, auto, keep-id, nomap, container:ID and ns:PATH", text(oneOf("host", "private", "auto", "auto:", "keep-id", "keep-id:", "nomap", "container:", "ns:"))),
		key("ipc_mode", "text", "none", "shared memory and queues: none, private, shareable, host or container:ID", text(oneOf("none", "private", "shareable", "host", "container:"))),
		key("pid_mode", "text", "host", "whose processes it sees: host or container:ID; default: its own", text(oneOf("host", "container:"))),
		key("uts_mode", "text", "host", "host: the host's own host name; default: one of its own", text(oneOf("host"))),
		key("cgroupns", "text", "private", "cgroup namespace: private or host", text(oneOf("private", "host"))),
		key("cgroup_parent", "text", "sandboxes.slice", "cgroup of the host below which the container's is made", text(word)),
		key("sysctls", "map", "net.core.somaxconn=1024", "kernel parameters that belong to the container: NAME=VALUE", table(nameValue, wordLine)),
		key("devices", "list", "/dev/fuse:/dev/fuse:rwm", "devices of the host: HOST[:INSIDE[:rwm]], or objects with PathOnHost, PathInContainer and CgroupPermissions", list(one(textOr(parseDevice, useDevice)), validDevice)),
		key("device_cgroup_rules", "list", "c 10:229 rw", "device numbers it may use: TYPE MAJOR:MINOR rwm", list(one(toText), matching(`[abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3}`, "TYPE MAJOR:MINOR PERMISSIONS, such as c 10:229 rw"))),
		key("device_requests", "list", "all", "GPUs: all, a number, device=ID, or objects with Driver, Count, DeviceIDs, Capabilities and Options", list(one(toDeviceRequest), validDeviceRequest)),
	),
	group("network",
		key("network_mode", "text", "bridge", "the engine's network it joins: none (default), bridge, host, container:ID or a network's name", text(validNetwork)),
		key("network", "text", "bridge", "the same as network_mode", text(validNetwork)),
		key("network_disabled", "boolean", "true", "true is the same as network_mode=none", codec{setNetworkDisabled, func(any) (any, error) { return nil, nil }}), // network_mode checks it
		key("ports", "map", "127.0.0.1:8080:80/tcp", "ports published on the engine's host: [[IP:]HOSTPORT:]PORT[/PROTOCOL], or a map of PORT/PROTOCOL to a host port, [IP, HOSTPORT], a list of them, or null for any free port; without an IP on 127.0.0.1 only", list(toPorts, validPort)),
		key("publish_all_ports", "boolean", "false", "publish every port the image exposes, on every interface of the engine's host", pointer(toBool, anything)),
		key("hostname", "text", "box", "the host name inside", text(validHostname)),
		key("domainname", "text", "example.org", "the domain name inside", text(validHostname)),
		key("dns", "list", "192.0.2.53", "addresses of name servers", list(one(toAddr), validAddr)),
		key("dns_search", "list", "example.org", "domains in which short names are looked up", list(one(toText), word)),
		key("dns_opt", "list", "ndots:2", "options of the resolver", list(one(toText), word)),
		key("extra_hosts", "map", "db:192.0.2.7", "names in /etc/hosts: NAME:ADDRESS, or a map; host-gateway is the engine's host", list(toExtraHosts, validExtraHost)),
	),
	group("files",
		key("volumes", "map", "/srv/data:/data:ro", "folders of the engine's host and named volumes: SOURCE:TARGET[:MODE], or a map of SOURCE to {bind: TARGET, mode: MODE}; default mode rw; one at /sandbox or /tmp takes the place of the private folder there", list(toVolumes, validVolume)),
		key("mounts", "list", "type=bind,source=/srv/data,target=/data,readonly", "the same with more detail: fields as of docker run --mount (type, source, target, readonly, bind-propagation, volume-subpath, tmpfs-size, ...), or objects as in the engine's API (Type, Source, Target, ReadOnly, ...)", list(one(toMount), validMount)),
		key("tmpfs", "map", "/scratch:size=64m", "folders in memory: TARGET[:OPTIONS], or a map of TARGET to OPTIONS; at /sandbox and /tmp the options that are not named stay as they are", table(cutAt(":"), validTmpfs)),
		key("volumes_from", "list", "other:ro", "all volumes of another container: ID[:ro]", list(one(toText), matching(`[A-Za-z0-9][A-Za-z0-9_.-]*(:(ro|rw|z|Z))?`, "ID or ID:ro"))),
		key("volume_driver", "text", "local", "driver of the named volumes in volumes", text(word)),
		key("storage_opt", "map", "size=2g", "options of the engine's storage driver, such as the size of a writable root: NAME=VALUE", table(nameValue, wordLine)),
	),
	group("process",
		key("environment", "map", "TZ=UTC", "environment variables: NAME=VALUE; names that begin with LLMSANDBOX_ are refused", table(nameValue, validVariable)),
		key("labels", "map", "team=research", "labels of the container: NAME[=VALUE]; names that begin with llmsandbox. are refused", table(cutAt("="), validLabel)),
		key("working_dir", "text", "/data", "where commands start that are told no folder", text(absolute)),
		key("init", "boolean", "false", "run the engine's init as process 1; the guest agent, which is that otherwise, reaps processes too", pointer(toBool, anything)),
		key("runtime", "text", "runsc", "OCI runtime, by the name the engine knows it: runsc (gVisor), kata, ...", text(word)),
		key("log_config", "map", "none", "what the engine keeps of the container's output: a driver, or an object with Type and Config; default none", pointer(toLogConfig, validLogConfig)),
		key("timeout", "integer", "30", "seconds that a run may take which sets no time limit of its own; default 60", pointer(toInt, within[int64](1, math.MaxInt32))),
	),
)

// decided are keys of docker-py that a sandbox decides by itself, and those that do
// nothing, with what to do instead.
var decided = byWord([][2]string{
	{"image", "the image is an option of the sandbox itself: give it there"},
	{"command entrypoint", "the container's first process is the guest agent: give commands to the sandbox once it is open"},
	{"name", "a container is named after its sandbox: give the sandbox an id, or labels=NAME=VALUE to find it by"},
	{"detach", "a sandbox always runs beside the caller: leave it out"},
	{"stdin_open stdout stderr", "input and output of the container carry the guest agent's stream: leave it out"},
	{"stream", "output is streamed by the run's own options: leave it out"},
	{"tty", "the guest agent makes terminals for the commands that ask for one: leave it out"},
	{"auto_remove remove", "a sandbox is always removed when it ends: leave it out, and attach to a sandbox that shall live on"},
	{"restart_policy", "a sandbox is removed when it ends, and engines refuse to restart what they remove: open a new sandbox"},
	{"stop_signal stop_timeout", "a sandbox is ended at once, its files go with it: leave it out"},
	{"healthcheck", "the guest agent's stream tells whether a sandbox lives: leave it out"},
	{"platform", "a sandbox runs on the architecture of its image: name an image of the one you need"},
	{"version", "the API's version is agreed upon with the engine: leave it out"},
	{"use_config_proxy", "nothing of the caller's configuration is passed on: name the variables in environment"},
	{"networking_config", "a sandbox joins one network: use network_mode"},
	{"mac_address", "a sandbox's network address is chosen by the engine: leave it out"},
	{"links", "engines have given links up: let both containers join a network and use their names"},
	{"init_path", "the engine's own init is used: init=true"},
	{"lxc_conf", "engines no longer have LXC: leave it out"},
	{"kernel_memory", "engines no longer limit kernel memory by itself: use mem_limit"},
	{"isolation", "it is for Windows containers only: for stronger isolation use runtime=runsc"},
	{"cpu_percent", "it is for Windows containers only: use nano_cpus, or the sandbox's CPU limit"},
})

// other are common names of a key or of an option of the sandbox.
var other = byWord([][2]string{
	{"memory mem memory_limit", "use mem_limit, or the sandbox's memory limit"},
	{"memory_swap", "use memswap_limit"},
	{"cpus cpu cpu_limit", "use the sandbox's CPU limit (2 for two CPUs), or nano_cpus (2000000000)"},
	{"pids", "use pids_limit, or the sandbox's limit of processes"},
	{"disk disk_limit", "use the sandbox's disk limit, or storage_opt for a writable root"},
	{"runtime_config runtime_configs host_config", "give the keys in it by themselves"},
	{"env env_vars", "use environment"},
	{"env_file", "use environment, a variable at a time"},
	{"gpus gpu", "use the sandbox's GPUs (--gpus), or device_requests"},
	{"net", "use network_mode"},
	{"networks", "a sandbox joins one network: use network_mode"},
	{"publish expose port_bindings", "use ports"},
	{"hosts add_host", "use extra_hosts"},
	{"dns_options", "use dns_opt"},
	{"workdir cwd", "use working_dir"},
	{"read_only_root readonly_rootfs", "use read_only"},
	{"capabilities", "use cap_add"},
	{"seccomp", "use security_opt=seccomp=FILE"},
	{"apparmor", "use security_opt=apparmor=PROFILE"},
	{"no_new_privileges", "use security_opt=no-new-privileges=false; true is the default"},
	{"binds", "use volumes"},
	{"log_driver log_opt logging", "use log_config"},
	{"userns", "use userns_mode"},
	{"ipc", "use ipc_mode"},
	{"pid", "use pid_mode"},
	{"uts", "use uts_mode"},
	{"cgroupns_mode", "use cgroupns"},
	{"restart", "a sandbox is removed when it ends, and engines refuse to restart what they remove: open a new sandbox"},
	{"cpuset", "use cpuset_cpus"},
})

// byWord has the second text of each row for every word of the first.
func byWord(table [][2]string) map[string]string {
	all := map[string]string{}
	for _, row := range table {
		for word := range strings.FieldsSeq(row[0]) {
			all[word] = row[1]
		}
	}
	return all
}

// lookUp returns the option of a key, or an error that says what to use instead.
func lookUp(key string) (*option, error) {
	if o, ok := optionByName[key]; ok {
		return o, nil
	}
	if reason, ok := decided[key]; ok {
		return nil, fault(key, "%s", reason)
	}
	names := slices.Collect(maps.Keys(optionByName))
	words := slices.Concat(names, slices.Collect(maps.Keys(decided)), slices.Collect(maps.Keys(other)))
	slices.Sort(words)
	like := closest(key, words) // the key itself, where it is one of other
	switch {
	case other[like] != "":
		return nil, fault(key, "there is no such key: %s", other[like])
	case decided[like] != "":
		return nil, fault(key, "there is no such key, and as for %s: %s", like, decided[like])
	case like != "":
		return nil, fault(key, "there is no such key: did you mean %s?", like)
	}
	var known []string
	for _, o := range options {
		known = append(known, o.Name)
	}
	return nil, fault(key, "there is no such key: use one of %s", strings.Join(known, ", "))
}

// closest returns the word most like s, "" when none is like it. Case, hyphens and
// underscores do not count, so the engine's own names and flags find their key.
func closest(s string, words []string) string {
	const longest = 40
	if len(s) > longest {
		return ""
	}
	s = squash(s)
	best, found := 3, "" // more differences than two make another word
	for _, w := range words {
		plain := squash(w)
		if d := edits.Distance(s, plain); d < best && d*3 <= len(plain) {
			best, found = d, w
		}
	}
	return found
}

func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}
