package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Version of the control group file system.
type Version string

// Versions. In Hybrid, version 1 holds the controllers.
const (
	None   Version = "none"
	V1     Version = "1"
	V2     Version = "2"
	Hybrid Version = "hybrid"
)

// Support is what can be used by this user on this machine. It is safe for
// concurrent use.
type Support struct {
	Version Version

	controllers map[string]controller
	top         string // version 2: the highest group that is ours to divide
	base        string // version 2: our directory in it, above the sandboxes' groups
	v2          mount
	scopes      bool // version 2, ordinary user: systemd makes the groups
	delegated   bool // version 2, ordinary user: the top is theirs
	preparing   sync.Mutex
}

// A controller as found; why and fix are set when it cannot be used.
type controller struct {
	base     string // version 1: our directory
	mount    mount
	why, fix string
}

// limiting are the controllers that hold limits.
var limiting = []string{"memory", "cpu", "pids"}

// dirName is the name of the directory that all groups are in.
const dirName = "llmsandbox"

var machine = sync.OnceValue(func() *Support { return detect("/", os.Geteuid()) })

// Detect looks at what is mounted and writable. It changes nothing. The answer is kept
// for the life of the process.
func Detect() *Support { return machine() }

func detect(root string, euid int) *Support {
	s := &Support{Version: None, controllers: map[string]controller{}}
	mounts, err := readMounts(root)
	if err != nil {
		s.refuse("the mounts cannot be read: "+err.Error(), "mount proc at /proc")
		return s
	}
	own, err := readOwn(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		s.refuse("this process's groups cannot be read: "+err.Error(), "mount proc at /proc")
		return s
	}
	var v1, v2 bool
	for _, m := range mounts {
		v2 = v2 || m.v2
		v1 = v1 || slices.ContainsFunc(m.controllers, func(c string) bool { return slices.Contains(limiting, c) })
	}
	switch {
	case v1 && v2:
		s.Version = Hybrid
	case v1:
		s.Version = V1
	case v2:
		s.Version = V2
	}
	switch {
	case v1:
		s.detectV1(mounts, own)
	case v2:
		s.detectV2(mounts, own, root, euid)
	default:
		s.refuse("no control group file system is mounted", "mount one: mount -t cgroup2 none /sys/fs/cgroup")
	}
	return s
}

func (s *Support) refuse(why, fix string) {
	for _, c := range limiting {
		s.controllers[c] = controller{why: why, fix: fix}
	}
}

func (s *Support) detectV1(mounts []mount, own map[string]string) {
	for _, name := range append(slices.Clone(limiting), "cpuacct", "freezer") {
		c := controller{why: "the " + name + " controller is not mounted", fix: "mount it: mount -t cgroup -o " + name + " " + name + " /sys/fs/cgroup/" + name}
		for _, m := range mounts {
			if m.v2 || !slices.Contains(m.controllers, name) {
				continue
			}
			// Next to the caller's own group and not in it: so the limits of the
			// slice around both still hold, and the directory outlives the caller.
			parent := filepath.Dir(m.path(own[name]))
			if !strings.HasPrefix(parent+"/", m.point+"/") {
				parent = m.point
			}
			c = controller{base: filepath.Join(parent, dirName), mount: m}
			c.why, c.fix = writable(parent, c.base)
			break
		}
		s.controllers[name] = c
	}
}

// writable reports why groups cannot be made in base, which may not exist yet.
func writable(parent, base string) (why, fix string) {
	err := unix.Access(base, unix.W_OK)
	if err == unix.ENOENT {
		err = unix.Access(parent, unix.W_OK)
	}
	if err != nil {
		return fmt.Sprintf("this user may not make control groups: %v", err), "run as root, or on a machine with cgroup v2 and a systemd user session"
	}
	return "", ""
}

func (s *Support) detectV2(mounts []mount, own map[string]string, root string, euid int) {
	s.v2 = mounts[slices.IndexFunc(mounts, func(m mount) bool { return m.v2 })]
	s.top = s.v2.point
	from := s.top // whose controllers count
	var why, fix string
	if euid == 0 {
		why, fix = writable(s.top, filepath.Join(s.top, dirName))
	} else if d := delegated(s.v2.path(own[""])); d != "" {
		s.top, from, s.delegated = d, d, true
	} else {
		from = filepath.Join(s.top, fmt.Sprintf("user.slice/user-%d.slice/user@%d.service", euid, euid))
		bus := filepath.Join(root, fmt.Sprintf("run/user/%d/bus", euid))
		s.scopes = unix.Access(bus, unix.W_OK) == nil && unix.Access(from, unix.F_OK) == nil
		if !s.scopes {
			why, fix = "this user has no systemd user session that could delegate a control group", "log in with systemd (loginctl enable-linger USER), give the service that this runs in Delegate=yes, or run as root"
		}
	}
	s.base = filepath.Join(s.top, dirName)
	data, err := os.ReadFile(filepath.Join(from, "cgroup.controllers"))
	if err != nil && why == "" {
		why, fix = "the controllers cannot be read: "+err.Error(), "mount cgroup2 at /sys/fs/cgroup"
	}
	have := strings.Fields(string(data))
	if why == "" && !s.scopes {
		why, fix = s.stuck()
	}
	for _, name := range limiting {
		c := controller{why: why, fix: fix}
		if why == "" && !slices.Contains(have, name) {
			c.why = "the kernel or the delegation does not offer the " + name + " controller"
			c.fix = "boot without cgroup_disable=" + name + ", or delegate it: Delegate=cpu memory pids in a drop-in of user@.service"
		}
		s.controllers[name] = c
	}
}

// delegated finds the group that systemd gave to this user to divide (Delegate=yes):
// the one the process is in or, once it is in a leaf, the one above.
func delegated(own string) string {
	for _, dir := range []string{own, filepath.Dir(own)} {
		var mark [1]byte
		n, err := unix.Getxattr(dir, "user.delegate", mark[:])
		if err == nil && n == 1 && mark[0] == '1' && unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK) == nil {
			return dir
		}
	}
	return ""
}

// stuck reports why the top cannot hand controllers down: only the kernel's root may
// while it has processes, and those of others are not ours to move.
func (s *Support) stuck() (why, fix string) {
	if unix.Access(filepath.Join(s.top, "cgroup.type"), unix.F_OK) != nil {
		return "", "" // the kernel's root
	}
	control, err := os.ReadFile(filepath.Join(s.top, "cgroup.subtree_control"))
	if err != nil || len(strings.Fields(string(control))) > 0 {
		return "", "" // it does already
	}
	if busy, err := s.shared(); err != nil || !busy {
		return "", ""
	}
	return "other processes live in the group this machine or service has, so it cannot be divided",
		"start those in a group below it (docs/cgroups.md shows how for a container), or let a service have Delegate=yes and one process"
}

// Usable reports whether the controller "memory", "cpu" or "pids" can be used.
func (s *Support) Usable(name string) bool {
	c, ok := s.controllers[name]
	return ok && c.why == ""
}

// Controls reports for memory, cpus and pids what enforces them, or why nothing does.
func (s *Support) Controls() []backend.Control {
	var out []backend.Control
	for _, n := range [][2]string{{"memory", "memory"}, {"cpus", "cpu"}, {"pids", "pids"}} {
		c := s.controllers[n[1]]
		k := backend.Control{Name: n[0], Why: c.why, Fix: c.fix}
		if c.why == "" {
			k.Enforced, k.By = true, s.by()
		}
		out = append(out, k)
	}
	return out
}

func (s *Support) by() string {
	switch {
	case s.scopes:
		return "cgroup v2 (systemd user scope)"
	case s.delegated:
		return "cgroup v2 (delegated)"
	case s.Version == V2:
		return "cgroup v2"
	}
	return "cgroup v1"
}

// A mount of a control group file system.
type mount struct {
	point       string
	root        string // the group that is seen at point
	v2          bool
	controllers []string
}

// path is where the group, as /proc names it, is seen. A group that is not below
// the mount (a container's mount of its own group) is taken to be the mount's top.
func (m mount) path(group string) string {
	rel := strings.TrimPrefix(group, strings.TrimSuffix(m.root, "/"))
	if len(rel) == len(group) && m.root != "/" || rel != "" && rel[0] != '/' || strings.HasPrefix(rel, "/..") {
		rel = ""
	}
	return filepath.Join(m.point, rel)
}

func readMounts(root string) ([]mount, error) {
	data, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	return parseMounts(string(data), root), nil
}

func parseMounts(data, root string) []mount {
	var out []mount
	for line := range strings.Lines(data) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 3 || g[0] != "cgroup" && g[0] != "cgroup2" {
			continue
		}
		m := mount{root: unescape(f[3]), point: filepath.Join(root, unescape(f[4])), v2: g[0] == "cgroup2"}
		if !m.v2 {
			m.controllers = strings.Split(g[2], ",")
		}
		out = append(out, m)
	}
	return out
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// readOwn maps each version 1 controller, and "" for version 2, to the group.
func readOwn(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseOwn(string(data))
}

func parseOwn(data string) (map[string]string, error) {
	own := map[string]string{}
	for line := range strings.Lines(data) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return nil, fmt.Errorf("line %q is not of the form id:controllers:/group", line)
		}
		for c := range strings.SplitSeq(f[1], ",") {
			own[c] = f[2]
		}
	}
	return own, nil
}
