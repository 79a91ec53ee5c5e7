package settings

import (
	"fmt"
	"slices"
	"strings"
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

func (l *loosenings) add(control, format string, args ...any) {
	*l = append(*l, Loosening{Control: control, What: fmt.Sprintf(format, args...)})
}

// Loosened tells which controls the settings take away, each once, sorted by control.
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
	if s.Memory != nil && *s.Memory == 0 {
		l.add("memory", "mem_limit=0: no limit")
	}
	if s.MemorySwap != nil && *s.MemorySwap == -1 {
		l.add("memory", "memswap_limit=-1: swap is not limited")
	}
	if isTrue(s.OOMKillDisable) {
		l.add("memory", "oom_kill_disable: processes hang at the limit instead of being killed")
	}
	if s.OOMScoreAdj != nil && *s.OOMScoreAdj < 0 {
		l.add("memory", "oom_score_adj=%d: when the host is out of memory other processes are killed first", *s.OOMScoreAdj)
	}
	if s.NanoCPUs != nil && *s.NanoCPUs == 0 {
		l.add("cpus", "nano_cpus=0: no limit")
	}
	if s.CPUQuota != nil && *s.CPUQuota == -1 {
		l.add("cpus", "cpu_quota=-1: no limit")
	}
	if s.PIDs != nil && *s.PIDs <= 0 {
		l.add("pids", "pids_limit=%d: no limit", *s.PIDs)
	}
}

func (s *Settings) loosenedNamespaces(l *loosenings) {
	if s.UsernsMode != "" && s.UsernsMode != "private" && !strings.HasPrefix(s.UsernsMode, "auto") && s.UsernsMode != "nomap" {
		l.add("user-namespace", "userns_mode=%s: users inside are users of the host or of another container", s.UsernsMode)
	}
	if s.IpcMode == "host" || s.IpcMode == "shareable" || strings.HasPrefix(s.IpcMode, "container:") {
		l.add("ipc", "ipc_mode=%s: shared memory reaches beyond the sandbox", s.IpcMode)
	}
	if s.PidMode != "" {
		l.add("processes", "pid_mode=%s: code sees processes outside the sandbox", s.PidMode)
		l.add("agent", "pid_mode=%s: the agent is not process 1, so code that shares its user can end it", s.PidMode)
	}
	if s.UTSMode != "" {
		l.add("uts", "uts_mode=%s: the host's own host name", s.UTSMode)
	}
	if s.CgroupnsMode == "host" {
		l.add("cgroup-namespace", "cgroupns=host: code sees where in the host's cgroups it is")
	}
	if isTrue(s.Init) {
		l.add("agent", "init: the agent is not process 1, so code that shares its user can end it")
	}
	if s.LogConfig != nil && s.LogConfig.Type != "none" {
		l.add("logs", "log_config %s: the engine keeps what goes in and out of the sandbox", s.LogConfig.Type)
	}
}

func (s *Settings) loosenedNetwork(l *loosenings) {
	switch {
	case s.Network == "" || s.Network == "none":
	case s.Network == "host":
		l.add("network", "network_mode=host: the host's own network, with all that listens on its loopback")
	default:
		l.add("network", "network_mode=%s: what that network reaches, unfiltered", s.Network)
	}
	for _, p := range s.Ports {
		if p.HostIP.IsValid() && !p.HostIP.IsLoopback() {
			l.add("network", "ports: port %d is published on %s", p.Container, p.HostIP)
		}
	}
	if isTrue(s.PublishAllPorts) {
		l.add("network", "publish_all_ports: the image's ports are published on every interface")
	}
}
