// Package settings holds what the user of a container engine sets beyond the limits
// every backend knows: the engine's own runtime options.
//
// [Settings] is typed; [Settings.Set] reads one KEY=VALUE, [FromMap] a whole map as
// JSON and Python clients send it. The keys are the keyword names of docker-py's
// containers.create, in its shapes, so a runtime_configs dictionary written for that
// works here. A key that is unknown, that does nothing on Linux or that a sandbox
// decides by itself is an error that says what to do instead, never ignored.
//
// [Settings.Apply] lays the settings over a sandbox's safe defaults: only what was
// named changes, and [Settings.Loosened] returns which controls no longer hold for it.
package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Settings are the runtime options of one sandbox. The zero value of a field (nil, "",
// an empty list) means the sandbox's default; a pointer distinguishes "not set" from zero and
// false. Each field's tag is its key. A Settings is a plain value: it
// may be shared by goroutines that only read it.
type Settings struct {
	Memory            *int64 `key:"mem_limit"`        // bytes; 0 lifts the limit
	MemoryReservation *int64 `key:"mem_reservation"`  // bytes, a soft limit below Memory
	MemorySwap        *int64 `key:"memswap_limit"`    // bytes of memory and swap together; -1: any swap; default: as Memory, so none
	MemorySwappiness  *int64 `key:"mem_swappiness"`   // 0 to 100
	OOMKillDisable    *bool  `key:"oom_kill_disable"` // at the memory limit processes hang instead of being killed
	OOMScoreAdj       *int   `key:"oom_score_adj"`    // -1000 to 1000
	ShmSize           *int64 `key:"shm_size"`         // bytes of /dev/shm; they count as memory

	NanoCPUs           *int64 `key:"nano_cpus"`      // billionths of a CPU; 0 lifts the limit; cpu_count sets it, too
	CPUPeriod          *int64 `key:"cpu_period"`     // microseconds
	CPUQuota           *int64 `key:"cpu_quota"`      // microseconds of CPU time in each period; -1 lifts the limit
	CPUShares          *int64 `key:"cpu_shares"`     // weight against other containers, 2 to 262144
	CPURealtimePeriod  *int64 `key:"cpu_rt_period"`  // microseconds
	CPURealtimeRuntime *int64 `key:"cpu_rt_runtime"` // microseconds
	CpusetCPUs         string `key:"cpuset_cpus"`    // "0-3", "0,2"
	CpusetMems         string `key:"cpuset_mems"`    // NUMA nodes, as CpusetCPUs

	PIDs    *int64             `key:"pids_limit"` // processes and threads; -1 or 0 lifts the limit
	Ulimits []container.Ulimit `key:"ulimits"`    // by name, taking the place of a default of the same name

	BlkioWeight       *uint16                   `key:"blkio_weight"` // 10 to 1000
	BlkioWeightDevice []blkiodev.WeightDevice   `key:"blkio_weight_device"`
	DeviceReadBps     []blkiodev.ThrottleDevice `key:"device_read_bps"`   // bytes a second
	DeviceWriteBps    []blkiodev.ThrottleDevice `key:"device_write_bps"`  // bytes a second
	DeviceReadIOps    []blkiodev.ThrottleDevice `key:"device_read_iops"`  // operations a second
	DeviceWriteIOps   []blkiodev.ThrottleDevice `key:"device_write_iops"` // operations a second

	User         string            `key:"user"`      // "uid", "uid:gid" or names of the image; default: not root
	Groups       []string          `key:"group_add"` // further groups, by name or number
	Privileged   *bool             `key:"privileged"`
	ReadOnlyRoot *bool             `key:"read_only"`    // default true
	CapAdd       []string          `key:"cap_add"`      // "NET_ADMIN" or "CAP_NET_ADMIN", "ALL"; default: none
	CapDrop      []string          `key:"cap_drop"`     // all are dropped already; for use with CapAdd "ALL" and Privileged
	SecurityOpt  []string          `key:"security_opt"` // "no-new-privileges=false", "seccomp=FILE", ...; added to the defaults
	UsernsMode   string            `key:"userns_mode"`  // "host"; Podman knows more
	IpcMode      string            `key:"ipc_mode"`     // "none", "private", "shareable", "host", "container:ID"
	PidMode      string            `key:"pid_mode"`     // "host" or "container:ID"
	UTSMode      string            `key:"uts_mode"`     // "host"
	CgroupnsMode string            `key:"cgroupns"`     // "private" or "host"
	CgroupParent string            `key:"cgroup_parent"`
	Sysctls      map[string]string `key:"sysctls"`

	Devices           []container.DeviceMapping `key:"devices"`
	DeviceCgroupRules []string                  `key:"device_cgroup_rules"` // "c 42:* rmw"
	DeviceRequests    []container.DeviceRequest `key:"device_requests"`     // GPUs and the like

	Network         string       `key:"network_mode"`      // "bridge", "host", "container:ID" or a network's name; default: "none"
	Ports           []Port       `key:"ports"`             // need a Network
	PublishAllPorts *bool        `key:"publish_all_ports"` // every port the image exposes, on every interface
	Hostname        string       `key:"hostname"`
	Domainname      string       `key:"domainname"`
	DNS             []netip.Addr `key:"dns"`
	DNSSearch       []string     `key:"dns_search"`
	DNSOptions      []string     `key:"dns_opt"`
	ExtraHosts      []string     `key:"extra_hosts"` // "name:address"

	Volumes      []Volume          `key:"volumes"`       // directories of the engine's host, and named volumes
	Mounts       []mount.Mount     `key:"mounts"`        // the longer form of Volumes
	Tmpfs        map[string]string `key:"tmpfs"`         // target to mount options, "size=64m,mode=1777"
	VolumesFrom  []string          `key:"volumes_from"`  // containers, "ID" or "ID:ro"
	VolumeDriver string            `key:"volume_driver"` // of the named volumes in Volumes
	StorageOpt   map[string]string `key:"storage_opt"`   // e.g. "size" of the writable root

	Environment map[string]string    `key:"environment"` // added to the sandbox's own; names from LLMSANDBOX_ on are refused
	Labels      map[string]string    `key:"labels"`      // names from llmsandbox. on are refused
	WorkingDir  string               `key:"working_dir"` // absolute, where commands start
	Init        *bool                `key:"init"`        // the engine's init as process 1 instead of the agent
	Runtime     string               `key:"runtime"`     // an OCI runtime the engine knows: "runsc", "kata", ...
	LogConfig   *container.LogConfig `key:"log_config"`  // default "none"
	Timeout     *int64               `key:"timeout"`     // seconds that a run may take which sets no limit of its own
}

// A Port is one port published on the engine's host.
type Port struct {
	Container uint16     // port inside
	Protocol  string     // "tcp", "udp" or "sctp"; "" means tcp
	HostIP    netip.Addr // interface; the zero Addr means 127.0.0.1
	HostPort  uint16     // 0: any free one
}

// A Volume is a directory of the engine's host, or a named volume, mounted inside.
type Volume struct {
	// Source is a host path, a volume's name, or empty for an unnamed volume that
	// goes with the sandbox. A relative path (with a slash, such as ./data) is taken
	// from the caller's working directory.
	Source string
	Target string // absolute path inside
	Mode   string // "ro", "rw" and the engine's other modes, separated by commas; "" means rw
}

// Validate finds values that are not allowed and settings that contradict each other.
// FromMap and Apply do it themselves.
func (s *Settings) Validate() error {
	for i := range options {
		o := &options[i]
		value, err := o.check(o.field(s))
		if err == nil {
			continue
		}
		shown := ""
		if !o.secret() {
			shown = shorten(fmt.Sprint(value))
		}
		return &KeyError{Key: o.Name, Value: shown, Reason: err.Error()}
	}
	return cmp.Or(s.limitsConflict(), s.networkConflict(), s.securityConflict(), s.filesConflict())
}

// Apply lays the settings over a sandbox's defaults, which cfg and host already hold:
// what was not set stays. The mounts of host are taken for the sandbox's own, which
// nothing may cover; its tmpfs give way. Networks and ports need no networking
// configuration besides. After an error cfg and host are of no use.
func (s Settings) Apply(cfg *container.Config, host *container.HostConfig) error {
	if err := s.Validate(); err != nil {
		return err
	}
	s.applyNetwork(cfg, host)
	s.applyProcess(cfg, host)
	return cmp.Or(s.applyLimits(host), s.applySecurity(cfg, host), s.applyFiles(host))
}

// maxValue bounds one value, in bytes of JSON.
const maxValue = 1 << 20

// Set sets one key from text, as in KEY=VALUE on a command line. A key that takes a
// list or a map is added to by each call: one item a call, in the form container
// engines' command lines use, or a JSON array or object with several. Conflicts
// between keys are found by [Settings.Validate].
func (s *Settings) Set(key, value string) error {
	o, err := lookUp(key)
	if err != nil {
		return err
	}
	var v any = value
	if (o.Type == "list" || o.Type == "map") && looksJSON(value) {
		if v, err = decodeJSON([]byte(value)); err != nil {
			return &KeyError{Key: key, Value: o.show(value), Reason: "is not valid JSON: " + err.Error()}
		}
	}
	return o.assign(s, v)
}

// looksJSON distinguishes a JSON array or object from other text, such as an IPv6 address in
// brackets with more behind it.
func looksJSON(text string) bool {
	t := strings.TrimSpace(text)
	return len(t) > 1 && (t[0] == '[' && t[len(t)-1] == ']' || t[0] == '{' && t[len(t)-1] == '}')
}

// FromMap reads settings in the shapes of docker-py's keyword arguments, whose None is
// nil: not set. The map is not changed. The result is valid.
func FromMap(m map[string]any) (Settings, error) {
	var s Settings
	fields := map[int]string{} // the key that has set each
	for _, key := range slices.Sorted(maps.Keys(m)) {
		o, err := lookUp(key)
		if err != nil {
			return Settings{}, err
		}
		v, err := normalise(m[key])
		if err != nil {
			return Settings{}, fault(key, "%v", err)
		}
		if v == nil {
			continue
		}
		if err := o.assign(&s, v); err != nil {
			return Settings{}, err
		}
		field := fieldByKey()[key]
		if other := fields[field]; other != "" {
			return Settings{}, fault(other, "sets the same as %s: give only one of them", key)
		}
		fields[field] = key
	}
	if err := s.Validate(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// assign sets the key's field, or leaves s as it was.
func (o *option) assign(s *Settings, v any) error {
	changed := *s
	err := o.set(o.field(&changed), v)
	if err == nil {
		_, err = o.check(o.field(&changed))
	}
	if err != nil {
		return &KeyError{Key: o.Name, Value: o.show(v), Reason: err.Error()}
	}
	*s = changed
	return nil
}

// show renders a value for an error.
func (o *option) show(v any) string {
	if o.secret() {
		return ""
	}
	if text, ok := v.(string); ok {
		return shorten(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return shorten(string(text))
}

// A KeyError says what is wrong with one key. It is a backend.ErrInvalid.
type KeyError struct {
	Key    string
	Value  string // as given, shortened; empty when it is not to be shown
	Reason string // what is wrong and what is allowed
}

func (e *KeyError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("runtime option %s: %s", printable(e.Key), e.Reason)
	}
	return fmt.Sprintf("runtime option %s: value %q: %s", printable(e.Key), e.Value, e.Reason)
}

// Is makes errors.Is(err, backend.ErrInvalid) true.
func (e *KeyError) Is(target error) bool { return target == backend.ErrInvalid }

// fault returns a KeyError without a value.
func fault(key, format string, args ...any) error {
	return &KeyError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

// printable is the key itself, or quoted when it holds more than keys do.
func printable(key string) string {
	odd := func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if key == "" || len(key) > maxShown || strings.ContainsFunc(key, odd) {
		return fmt.Sprintf("%q", shorten(key))
	}
	return key
}

// maxShown bounds how much of a value an error repeats, in bytes.
const maxShown = 80

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}
