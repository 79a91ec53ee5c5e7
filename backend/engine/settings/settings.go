package settings

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

// Settings are the runtime options of one sandbox. The zero value of a field (nil, "",
// an empty list) means the sandbox's default; a pointer tells "not set" from zero and
// false. Each field's comment begins with its key. A Settings is a plain value: it
// may be shared by goroutines that only read it.
type Settings struct {
	Memory            *int64 // mem_limit: bytes; 0 lifts the limit
	MemoryReservation *int64 // mem_reservation: bytes, a soft limit below Memory
	MemorySwap        *int64 // memswap_limit: bytes of memory and swap together; -1: any swap; default: as Memory, so none
	MemorySwappiness  *int64 // mem_swappiness: 0 to 100
	OOMKillDisable    *bool  // oom_kill_disable: at the memory limit processes hang instead of being killed
	OOMScoreAdj       *int   // oom_score_adj: -1000 to 1000
	ShmSize           *int64 // shm_size: bytes of /dev/shm; they count as memory

	NanoCPUs           *int64 // nano_cpus: billionths of a CPU; 0 lifts the limit
	CPUPeriod          *int64 // cpu_period: microseconds
	CPUQuota           *int64 // cpu_quota: microseconds of CPU time in each period; -1 lifts the limit
	CPUShares          *int64 // cpu_shares: weight against other containers, 2 to 262144
	CPURealtimePeriod  *int64 // cpu_rt_period: microseconds
	CPURealtimeRuntime *int64 // cpu_rt_runtime: microseconds
	CpusetCPUs         string // cpuset_cpus: "0-3", "0,2"
	CpusetMems         string // cpuset_mems: NUMA nodes, as CpusetCPUs

	PIDs    *int64             // pids_limit: processes and threads; -1 or 0 lifts the limit
	Ulimits []container.Ulimit // ulimits: by name, taking the place of a default of the same name

	BlkioWeight       *uint16                   // blkio_weight: 10 to 1000
	BlkioWeightDevice []blkiodev.WeightDevice   // blkio_weight_device
	DeviceReadBps     []blkiodev.ThrottleDevice // device_read_bps: bytes a second
	DeviceWriteBps    []blkiodev.ThrottleDevice // device_write_bps: bytes a second
	DeviceReadIOps    []blkiodev.ThrottleDevice // device_read_iops: operations a second
	DeviceWriteIOps   []blkiodev.ThrottleDevice // device_write_iops: operations a second

	User         string            // user: "uid", "uid:gid" or names of the image; default: not root
	Groups       []string          // group_add: further groups, by name or number
	Privileged   *bool             // privileged
	ReadOnlyRoot *bool             // read_only: default true
	CapAdd       []string          // cap_add: "NET_ADMIN" or "CAP_NET_ADMIN", "ALL"; default: none
	CapDrop      []string          // cap_drop: all are dropped already; for use with CapAdd "ALL" and Privileged
	SecurityOpt  []string          // security_opt: "no-new-privileges=false", "seccomp=FILE", ...; added to the defaults
	UsernsMode   string            // userns_mode: "host"; Podman knows more
	IpcMode      string            // ipc_mode: "none", "private", "shareable", "host", "container:ID"
	PidMode      string            // pid_mode: "host" or "container:ID"
	UTSMode      string            // uts_mode: "host"
	CgroupnsMode string            // cgroupns: "private" or "host"
	CgroupParent string            // cgroup_parent
	Sysctls      map[string]string // sysctls

	Devices           []container.DeviceMapping // devices
	DeviceCgroupRules []string                  // device_cgroup_rules: "c 42:* rmw"
	DeviceRequests    []container.DeviceRequest // device_requests: GPUs and the like

	Network         string       // network, network_mode: "bridge", "host", "container:ID" or a network's name; default: "none"
	Ports           []Port       // ports: need a Network
	PublishAllPorts *bool        // publish_all_ports: every port the image exposes, on every interface
	Hostname        string       // hostname
	Domainname      string       // domainname
	DNS             []netip.Addr // dns
	DNSSearch       []string     // dns_search
	DNSOptions      []string     // dns_opt
	ExtraHosts      []string     // extra_hosts: "name:address"

	Volumes      []Volume          // volumes: folders of the engine's host, and named volumes
	Mounts       []mount.Mount     // mounts: the longer form of Volumes
	Tmpfs        map[string]string // tmpfs: target to mount options, "size=64m,mode=1777"
	VolumesFrom  []string          // volumes_from: containers, "ID" or "ID:ro"
	VolumeDriver string            // volume_driver: of the named volumes in Volumes
	StorageOpt   map[string]string // storage_opt: e.g. "size" of the writable root

	Environment map[string]string    // environment: added to the sandbox's own; names from LLMSANDBOX_ on are refused
	Labels      map[string]string    // labels: names from llmsandbox. on are refused
	WorkingDir  string               // working_dir: absolute, where commands start
	Init        *bool                // init: the engine's init as process 1 instead of the agent
	Runtime     string               // runtime: an OCI runtime the engine knows: "runsc", "kata", ...
	LogConfig   *container.LogConfig // log_config: default "none"
}

// A Port is one port published on the engine's host.
type Port struct {
	Container uint16     // port inside
	Protocol  string     // "tcp", "udp" or "sctp"; "" means tcp
	HostIP    netip.Addr // interface; the zero Addr means 127.0.0.1
	HostPort  uint16     // 0: any free one
}

// A Volume is a folder of the engine's host, or a named volume, mounted inside.
type Volume struct {
	// Source is a host path, a volume's name, or empty for an unnamed volume that
	// goes with the sandbox. A relative path (with a slash, such as ./data) is taken
	// from the caller's working folder.
	Source string
	Target string // absolute path inside
	Mode   string // "ro", "rw" and the engine's other words, separated by commas; "" means rw
}

// Validate finds values that are not allowed and settings that contradict each other.
// FromMap and Apply do it themselves.
func (s *Settings) Validate() error {
	for i := range options {
		o := &options[i]
		value, err := o.check(s)
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
	return cmp.Or(s.applyLimits(cfg, host), s.applySecurity(cfg, host), s.applyNetwork(cfg, host), s.applyFiles(cfg, host), s.applyProcess(cfg, host))
}
