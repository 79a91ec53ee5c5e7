package settings

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// A Loosening is a control that no longer holds, or not fully, because the caller
// asked for something.
type Loosening struct {
	// Control is "isolation" (nothing holds: as good as root on the engine's host),
	// "memory", "cpus", "pids", "disk", "network", "user", "capabilities",
	// "no-new-privs", "seccomp", "apparmor", "selinux", "masked-paths", "filesystem",
	// "user-namespace", "ipc", "processes", "uts", "cgroup-namespace", "devices",
	// "agent" or "logs".
	Control string
	// What was asked for and what it means, as clauses.
	What string
}

// loosenings collects.
type loosenings []Loosening

// add notes a control when it is loose.
func (l *loosenings) add(loose bool, control, format string, args ...any) {
	if loose {
		*l = append(*l, Loosening{Control: control, What: fmt.Sprintf(format, args...)})
	}
}

// Loosened returns which controls the settings take away, each once, sorted by control.
// Settings that make a limit smaller, or only add to what is inside, loosen nothing.
func (s Settings) Loosened() []Loosening {
	var l loosenings
	s.loosenedLimits(&l)
	s.loosenedSecurity(&l)
	s.loosenedNamespaces(&l)
	s.loosenedNetwork(&l)
	s.loosenedFiles(&l)
	return l.merged()
}

// merged has each control once, sorted.
func (l loosenings) merged() []Loosening {
	slices.SortStableFunc(l, func(a, b Loosening) int { return strings.Compare(a.Control, b.Control) })
	var out []Loosening
	for _, x := range l {
		if n := len(out); n > 0 && out[n-1].Control == x.Control {
			out[n-1].What += "; " + x.What
			continue
		}
		out = append(out, x)
	}
	return out
}

func (s *Settings) loosenedLimits(l *loosenings) {
	l.add(is(s.Memory, 0), "memory", "mem_limit=0: no limit")
	l.add(is(s.MemorySwap, -1), "memory", "memswap_limit=-1: swap is not limited")
	l.add(is(s.OOMKillDisable, true), "memory", "oom_kill_disable: processes hang at the limit instead of being killed")
	if adj := s.OOMScoreAdj; adj != nil {
		l.add(*adj < 0, "memory", "oom_score_adj=%d: when the host is out of memory other processes are killed first", *adj)
	}
	l.add(is(s.NanoCPUs, 0), "cpus", "nano_cpus=0: no limit")
	l.add(is(s.CPUQuota, -1), "cpus", "cpu_quota=-1: no limit")
	if n := s.PIDs; n != nil {
		l.add(*n <= 0, "pids", "pids_limit=%d: no limit", *n)
	}
}

func (s *Settings) loosenedSecurity(l *loosenings) {
	l.add(is(s.Privileged, true), "isolation", "privileged: all capabilities and devices and no confinement, as good as root on the engine's host")
	l.add(is(s.Privileged, true), "capabilities", "privileged: all of them")
	switch user, group, _ := strings.Cut(s.User, ":"); {
	case root(user):
		l.add(true, "user", "user=%s: code runs as root inside", s.User)
	case root(group):
		l.add(true, "user", "user=%s: code runs with the group of root inside", s.User)
	default:
		l.add(strings.Trim(user, "0123456789") != "", "user", "user=%s: which user that is, the image decides", s.User)
	}
	l.add(len(s.Groups) > 0, "user", "group_add: code belongs to %s too", strings.Join(s.Groups, ", "))
	l.add(len(s.CapAdd) > 0, "capabilities", "cap_add: %s", strings.Join(s.CapAdd, ", "))
	writable := is(s.ReadOnlyRoot, false)
	l.add(writable, "filesystem", "read_only=false: the root file system can be written to")
	l.add(writable && s.StorageOpt["size"] == "", "disk", "read_only=false: what is written to the root file system is not limited")
	l.add(s.gainsPrivileges(), "no-new-privs", "security_opt no-new-privileges=false: programs may gain privileges, such as those of set-uid files")
	for _, opt := range s.SecurityOpt {
		switch kind, value := cutSecurityOpt(opt); kind {
		case "seccomp":
			l.add(value == "unconfined", "seccomp", "security_opt seccomp=unconfined: the engine filters no system calls")
			l.add(value != "unconfined" && value != "builtin", "seccomp", "security_opt seccomp: a profile of the caller in place of the engine's")
		case "apparmor":
			l.add(true, "apparmor", "security_opt apparmor=%s in place of the engine's profile", value)
		case "label":
			l.add(true, "selinux", "security_opt label=%s", value)
		case "systempaths", "unmask":
			l.add(true, "masked-paths", "security_opt %s=%s: files of the kernel that are hidden otherwise", kind, value)
		}
	}
	for _, d := range s.Devices {
		l.add(true, "devices", "devices: the host's %s", d.PathOnHost)
	}
	for _, rule := range s.DeviceCgroupRules {
		l.add(true, "devices", "device_cgroup_rules: %s", rule)
	}
	l.add(len(s.DeviceRequests) > 0, "devices", "device_requests: devices of the host")
}

// root reports whether a user or group is root's, by number or name.
func root(id string) bool {
	return id == "root" || id != "" && strings.Trim(id, "0") == ""
}

func (s *Settings) loosenedNamespaces(l *loosenings) {
	private := slices.Contains([]string{"", "private", "nomap"}, s.UsernsMode) || strings.HasPrefix(s.UsernsMode, "auto")
	l.add(!private, "user-namespace", "userns_mode=%s: users inside are users of the host or of another container", s.UsernsMode)
	l.add(s.IpcMode == "host" || s.IpcMode == "shareable" || strings.HasPrefix(s.IpcMode, "container:"), "ipc", "ipc_mode=%s: shared memory reaches beyond the sandbox", s.IpcMode)
	l.add(s.PidMode != "", "processes", "pid_mode=%s: code sees processes outside the sandbox", s.PidMode)
	l.add(s.PidMode != "", "agent", "pid_mode=%s: the agent is not process 1, so code that shares its user can end it", s.PidMode)
	l.add(s.UTSMode != "", "uts", "uts_mode=%s: the host's own host name", s.UTSMode)
	l.add(s.CgroupnsMode == "host", "cgroup-namespace", "cgroupns=host: code sees where in the host's cgroups it is")
	l.add(is(s.Init, true), "agent", "init: the agent is not process 1, so code that shares its user can end it")
	if s.LogConfig != nil {
		l.add(s.LogConfig.Type != "none", "logs", "log_config %s: the engine keeps what goes in and out of the sandbox", s.LogConfig.Type)
	}
}

func (s *Settings) loosenedNetwork(l *loosenings) {
	switch s.Network {
	case "", "none":
	case "host":
		l.add(true, "network", "network_mode=host: the host's own network, with all that listens on its loopback")
	default:
		l.add(true, "network", "network_mode=%s: what that network reaches, unfiltered", s.Network)
	}
	for _, p := range s.Ports {
		l.add(p.HostIP.IsValid() && !p.HostIP.IsLoopback(), "network", "ports: port %d is published on %s", p.Container, p.HostIP)
	}
	l.add(is(s.PublishAllPorts, true), "network", "publish_all_ports: the image's ports are published on every interface")
}

func (s *Settings) loosenedFiles(l *loosenings) {
	for _, v := range s.Volumes {
		l.addMount("volumes", v.mount())
	}
	for _, m := range s.Mounts {
		l.addMount("mounts", m)
	}
	for _, target := range slices.Sorted(maps.Keys(s.Tmpfs)) {
		size := int64(0) // of the last option size, as the kernel takes it
		for option := range strings.SplitSeq(s.Tmpfs[target], ",") {
			if value, ok := strings.CutPrefix(option, "size="); ok {
				size, _ = bytesize.Parse(value)
			}
		}
		l.addTmpfs("tmpfs", path.Clean(target), size)
	}
	for _, from := range s.VolumesFrom {
		l.add(true, "filesystem", "volumes_from: the volumes of container %s", from)
	}
}

func (l *loosenings) addTmpfs(key, target string, size int64) {
	l.add(size == 0, "disk", "%s: the size of %s is limited as before, or by the memory limit", key, target)
	l.add(size != 0, "disk", "%s: %s holds up to %s besides", key, target, bytesize.Format(size))
}

func (l *loosenings) addMount(key string, m mount.Mount) {
	if o := m.VolumeOptions; m.Type == mount.TypeVolume && o != nil && o.DriverConfig != nil && path.IsAbs(o.DriverConfig.Options["device"]) {
		// The driver of local volumes mounts that path of the host: the volume is as much
		// as a bind mount of it.
		m.Type, m.Source = mount.TypeBind, o.DriverConfig.Options["device"]
	}
	what, access := "volume "+m.Source, "writable"
	switch {
	case m.Type == mount.TypeTmpfs:
		size := int64(0)
		if m.TmpfsOptions != nil {
			size = m.TmpfsOptions.SizeBytes
		}
		l.addTmpfs(key, m.Target, size)
		return
	case m.Type == mount.TypeImage:
		what = "image " + m.Source
	case m.Type == mount.TypeBind:
		what = "the host's " + m.Source
	}
	if m.ReadOnly {
		access = "read-only"
	}
	l.add(m.Type == mount.TypeBind && escapes(m.Source, m.ReadOnly), "isolation", "%s: %s at %s: whoever has it is as good as root on the engine's host", key, what, m.Target)
	l.add(m.Source != "", "filesystem", "%s: %s at %s, %s", key, what, m.Target, access)
	l.add(!m.ReadOnly, "disk", "%s: what is written to %s is not limited", key, m.Target)
}

// Directories and sockets of the host that amount to root on it, to code that can write to
// them; a socket also to code that can only read it, as a read-only mount does not prevent
// a connection. Only the usual places are known: a link elsewhere that leads to one is not
// noticed.
var (
	engineSockets = strings.Fields("docker.sock podman.sock containerd.sock crio.sock buildkitd.sock dockershim.sock")
	socketDirs    = strings.Fields("/run /run/docker /run/podman /run/containerd /run/crio /run/user /run/buildkit /var /var/run")
	hostDirs      = strings.Fields("/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /sys /usr /var/lib /var/lib/docker /var/lib/containers /var/lib/containerd /var/spool/cron")
)

// escapes reports whether a mount of the host's source is a way out of the sandbox.
func escapes(source string, readOnly bool) bool {
	p := path.Clean(source)
	if slices.Contains(engineSockets, path.Base(p)) {
		return true
	}
	p = strings.TrimPrefix(p, "/var/run/")
	if p != path.Clean(source) {
		p = "/run/" + p
	}
	if p == "/" || slices.Contains(socketDirs, p) {
		return true
	}
	if strings.HasPrefix(p, "/run/user/") && strings.Count(p, "/") <= 4 {
		return true // a user's runtime directory holds the sockets of rootless engines
	}
	return !readOnly && slices.ContainsFunc(hostDirs, func(f string) bool {
		return p == f || f != "/" && f != "/home" && f != "/opt" && f != "/var/lib" && inside(p, f)
	})
}
