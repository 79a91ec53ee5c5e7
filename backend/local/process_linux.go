package local

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// processes isolate without a namespace of their own: by Landlock, seccomp, limits of processes, and as root by a user of each
// sandbox. That works in any container. Code sees the host's paths, and has a directory of its own among them.
type processes struct{}

// start implements isolator.
func (processes) start(ctx context.Context, l *launch) (*process, error) {
	a := &newAgent{process: process{tag: tagOf(l.dir)}}
	return a.start(ctx, l, func() error { return a.bootInPlace(ctx, l) })
}

// bootInPlace gives the agent its plan.
func (a *newAgent) bootInPlace(ctx context.Context, l *launch) error {
	c, err := l.contents()
	if err != nil {
		return err
	}
	id := l.identity
	plan := nsinit.Plan{
		Process: true, Workdir: c.workdir, SetIDs: id.separate, CodeUID: id.insideUID, CodeGID: id.insideGID,
		LandlockRead: c.places.read, LandlockWrite: c.places.write, LandlockSpecial: c.places.special,
		Rlimits: append(c.rlimits, nsinit.Rlimit{Resource: unix.RLIMIT_LOCKS, Value: a.process.tag}),
	}
	plan.WatchMemory, plan.WatchDisk = uint64(c.watchMemory), uint64(c.watchDisk)
	defer c.places.proxy.Close()
	filter := seccomp.ProcessOptions{Shared: !id.separate}
	plan.Seccomp, err = seccomp.Process(runtime.GOARCH, filter)
	filter.TCP = true
	if err == nil {
		plan.SeccompTCP, err = seccomp.Process(runtime.GOARCH, filter)
	}
	if err == nil {
		plan.Notify, err = seccomp.Notify(runtime.GOARCH, filter)
	}
	if err != nil {
		return fmt.Errorf("system call filter: %w", err)
	}
	b, err := plan.Encode()
	if err != nil {
		return err
	}
	_, err = a.setUp(ctx, b, []*os.File{c.places.proxy})
	return err
}

// letGo has the agent kill everything in the sandbox and exit. If it does not exit in time, letGo kills it, and wait kills what it
// has left.
func (p *process) letGo() error {
	raw, err := p.owner.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
		err = errors.Join(cerr, err)
	}
	if err != nil { // the agent has exited, or cannot be reached this way
		return p.killAgent()
	}
	time.AfterFunc(letGoWait, func() { _ = p.killAgent() }) // it has no caller to fail
	return nil
}

// letGoWait is how long an agent may take to end its sandbox.
var letGoWait = 15 * time.Second // a variable for tests

// places are what code of a sandbox without a mount namespace may reach.
type places struct {
	dir                  string // with the sandbox's own
	read, write, special []string
	proxy                *os.File // a socket for its proxy, of that port
	port                 uint16
}

// procFiles are what code may read of /proc: they describe the machine, and no process.
var procFiles = []string{"cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys/vm", "sys/kernel/osrelease", "sys/kernel/ostype",
	"sys/kernel/version", "sys/kernel/ngroups_max", "sys/kernel/pid_max", "sys/kernel/threads-max", "sys/kernel/cap_last_cap", "sys/kernel/random", "sys/fs/file-max", "sys/fs/nr_open"}

// sysFiles are what it may read of /sys: how many processors and what memory there is.
var sysFiles = []string{"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/transparent_hugepage"}

// etcFiles are read beside what hostroot names: how names are looked up, and what pip wants to know of the system.
var etcFiles = []string{"/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/debian_version"}

const (
	inPlaceWorkdir = "sandbox"
	inPlaceTemp    = "tmp"
	codeName       = "sandbox" // of the user, whom no file that code may read has a name for
)

// findPlaces finds what code may read of this place, above all the toolchains.
func findPlaces() rootfs {
	root, files := hostroot.InPlace(hostroot.Options{OtherUser: usersInPlace("").separate})
	p := places{special: []string{}}
	for _, b := range root.Binds {
		p.read = append(p.read, b.Source)
	}
	p.read = slices.Concat(p.read, files, etcFiles, sysFiles)
	for _, name := range procFiles {
		p.read = append(p.read, "/proc/"+name)
	}
	for _, name := range devices {
		p.special = append(p.special, "/dev/"+name)
	}
	return rootfs{env: root.Env, places: p}
}

// placeRoot makes the sandbox's own directory beside the toolchains where they are.
func (c *creation) placeRoot() (rootfs, error) {
	host, err := c.b.hostRoot(false, false)
	if err != nil {
		return rootfs{}, err
	}
	p := host.places
	p.dir = filepath.Join(os.TempDir(), "llmsandbox-"+c.spec.ID)
	work, temp := filepath.Join(p.dir, inPlaceWorkdir), filepath.Join(p.dir, inPlaceTemp)
	p.write = []string{work, temp}
	home := filepath.Join(temp, "home")
	c.places = p
	if err := c.makePlaces(work, temp, home); err != nil {
		return rootfs{}, fmt.Errorf("make the sandbox's own directory: %w: set TMPDIR to one that can be written to and has space", err)
	}
	if c.places.proxy, c.places.port, err = reservePort(); err != nil {
		return rootfs{}, err
	}
	if err := c.placeLayers(); err != nil {
		return rootfs{}, err
	}
	return rootfs{release: c.giveUser, image: "host", host: true, env: environ.Override(host.env, []string{"HOME=" + home, "TMPDIR=" + temp, "USER=" + codeName, "LOGNAME=" + codeName, "GIT_CONFIG_NOSYSTEM=1", "LANG=C.UTF-8", "LC_ALL=C.UTF-8"})}, nil
}

func (c *creation) workdir() string {
	if c.inPlace {
		return filepath.Join(c.places.dir, inPlaceWorkdir)
	}
	return workdirOf(c.spec)
}

func (c *creation) tempDir() string {
	if c.inPlace {
		return filepath.Join(c.places.dir, inPlaceTemp)
	}
	return tempDir
}

// makePlaces makes the sandbox's own directory. A collection finds it by a link in the sandbox's state.
func (c *creation) makePlaces(own ...string) error {
	if err := os.Symlink(c.places.dir, filepath.Join(c.dir.path, placesLink)); err != nil {
		return err
	}
	if err := os.Mkdir(c.places.dir, 0o700); err != nil { // it fails for one that is there, whosever it is
		return err
	}
	if c.identity.separate {
		if err := os.Chmod(c.places.dir, 0o711); err != nil { //nolint:gosec // what is in it is the code's only
			return err
		}
	}
	for _, dir := range own {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if c.identity.separate {
			if err := os.Chown(dir, int(c.identity.codeUID), int(c.identity.codeGID)); err != nil {
				return err
			}
		}
	}
	return nil
}

// placesLink is the link to the directory of a sandbox without a mount namespace.
const placesLink = "places"

// removePlaces ends what is left of a sandbox without namespaces, by its state directory. There is nothing to do for others.
func removePlaces(dir string) error {
	own, err := os.Readlink(filepath.Join(dir, placesLink))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return removeTree(own)
}

// removeTree removes a tree of code that has ended, which may have taken from its owner the right to enter what is in it.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, os.ErrPermission) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700) //nolint:gosec // it is about to go
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}

// capabilities implements isolator.
func (processes) capabilities(id identity) backend.Capabilities {
	on := func(name, by, detail string) backend.Control {
		return backend.Control{Name: name, Enforced: true, By: by, Detail: detail}
	}
	none := func(name, why, fix string) backend.Control { return backend.Control{Name: name, Why: why, Fix: fix} }
	const use = "use the isolation namespace where it can be had"
	uid := on("separate-uid", "a user of each sandbox", "neither the agent's nor the caller's")
	if !id.separate {
		uid = none("separate-uid", "the code and the agent are both the caller's own user, since only root can be others", "run as root in the container")
	}
	return backend.Capabilities{Isolation: isolationProcess, Controls: []backend.Control{
		none("user-namespace", "this isolation has no namespaces", use), uid,
		on("agent", "non-dumpable, Landlock", "code may neither look into it nor signal it"),
		on("filesystem", "Landlock", "names, sizes and times of what code may not open can still be asked for"),
		on("processes", "Landlock, seccomp", "code may neither signal nor look into processes that are not its sandbox's"),
		on("network", "seccomp, Landlock", "no sockets but pairs; with a network, connections to its proxy only"), on("ipc", "seccomp", "no System V IPC and no message queues"),
		on("capabilities", "none are held by the code", ""), on("no-new-privs", "prctl", ""),
		on("core-dumps", "RLIMIT_CORE 1, and seccomp", ""), on("seccomp", "seccomp filter", ""), landlockControl(landlock.ABI()),
		none("hidden-uptime", "there is no time namespace", use),
		none("host-paths", "code sees the paths of this place", use),
	}}
}

// Isolations of Options.
const (
	isolationAuto      = "auto"
	isolationNamespace = "namespace"
	isolationProcess   = "process"
)

// checkInPlace refuses what takes a mount namespace or other users.
func checkInPlace(s backend.Spec) error {
	what := ""
	switch {
	case !ofHost(s):
		what = "an image"
	case s.WritableRoot:
		what = "a root file system that can be written to"
	case s.User != "":
		what = "another user"
	case s.Workdir != "":
		what = "another working directory"
	case len(s.Mounts) > 0:
		what = "a mount"
	case len(s.Volumes) > 0:
		return errVolumesInPlace
	default:
		return nil
	}
	return fmt.Errorf("%s: %w: the isolation process shows this place's own files where they are: use the isolation namespace, or leave it out", what, backend.ErrUnsupported)
}

// usersInPlace are those of a sandbox without a user namespace: as root one of its own, of which no other process is.
func usersInPlace(name string) identity {
	own := identity{agentUID: uint32(os.Geteuid()), agentGID: uint32(os.Getegid())}
	own.codeUID, own.codeGID = own.agentUID, own.agentGID
	if first, count := spareIDs(); own.agentUID == 0 && count > 0 && canBeOthers() {
		h := fnv.New32a()
		h.Write([]byte("process " + name))
		own.separate = true
		own.codeUID = first + 1 + h.Sum32()%(count-1)
		own.codeGID = first // which lets it come to layers, and is of use for nothing else
	}
	own.insideUID, own.insideGID = own.codeUID, own.codeGID
	return own
}

// errNoMounts is why a sandbox without a mount namespace has no disk of its own.
var errNoMounts = errors.New("without a mount namespace there is no disk of the sandbox's own, and the agent looks now and then")

// byWatch is a limit that the agent looks after: named, but not held to.
const byWatch = "watched"

// threadsOf counts what RLIMIT_NPROC counts of a user's already.
func threadsOf(uid uint32) (n uint64) {
	entries, _ := os.ReadDir("/proc") // without it the limit is lower
	for _, e := range entries {
		text, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil || e.Name() == "self" || e.Name() == "thread-self" {
			continue
		}
		field := func(name string) uint64 {
			_, rest, _ := strings.Cut(string(text), name)
			word, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), "\n")
			first, _, _ := strings.Cut(word, "\t")
			v, _ := strconv.ParseUint(first, 10, 64) // the kernel wrote a number
			return v
		}
		if field("\nUid:") == uint64(uid) {
			n += field("\nThreads:")
		}
	}
	return n
}

// takeInPlace returns users of which no other sandbox is, until the root is released.
func (c *creation) takeInPlace() (identity, error) {
	for try := range 100 {
		id := usersInPlace(c.spec.ID + strconv.Itoa(try))
		if !id.separate {
			return id, nil
		}
		name := filepath.Join(c.dirs.state, uidPrefix+strconv.FormatUint(uint64(id.codeUID), 10))
		held, err := lockFile(name, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return identity{}, err
		}
		if !isAt(held, name) { // it was removed before it was locked
			held.Close()
			continue
		}
		c.uid = held
		return id, nil
	}
	return identity{}, errors.New("the users that sandboxes may have are all taken: close some of them")
}

// giveUser lets other sandboxes have the user.
func (c *creation) giveUser() error {
	if c.uid == nil {
		return nil
	}
	return errors.Join(os.Remove(c.uid.Name()), c.uid.Close())
}

// uidPrefix begins the names of the files that are locked for a user.
const uidPrefix = "uid-"

// isAt reports whether a file is the one with that name.
func isAt(f *os.File, name string) bool {
	own, err1 := f.Stat()
	there, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(own, there)
}

// freeUsers removes the files of users whose owner was killed.
func freeUsers(d dirs) {
	for _, name := range withPrefix(d.state, uidPrefix) {
		if f, err := lockFile(name, unix.LOCK_EX|unix.LOCK_NB); err == nil {
			if isAt(f, name) {
				_ = os.Remove(name) // the next collection tries again
			}
			f.Close()
		}
	}
}

// Ids of sandboxes without a user namespace: below those of the others where this place has all ids, and else of those that a container
// of 65,536 has and no distribution gives to people or services.
const (
	firstInPlace, countInPlace       = layerstore.SandboxGroup, 1 << 24
	firstInContainer, countContainer = layerstore.SandboxGroupInContainer, 40000
)

// spareIDs are the first of the ids for sandboxes and how many there are; 0: none are mapped here.
func spareIDs() (first, count uint32) {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil { // a kernel without namespaces has all
		return firstInPlace, countInPlace
	}
	mapped := func(first, count uint64) bool {
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			start, err1 := strconv.ParseUint(f[0], 10, 32)
			n, err2 := strconv.ParseUint(f[2], 10, 32)
			if err1 == nil && err2 == nil && start <= first && first+count <= start+n {
				return true
			}
		}
		return false
	}
	switch {
	case mapped(firstInPlace, countInPlace):
		return firstInPlace, countInPlace
	case mapped(firstInContainer, countContainer):
		return firstInContainer, countContainer
	}
	return 0, 0
}

// canBeOthers reports whether this process, as root, may become other users, signal them and give them files.
func canBeOthers() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return false
	}
	const need = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_KILL | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE
	return data[0].Effective&need == need
}

// inPlace reports whether sandboxes have no namespaces.
func (b *Backend) inPlace() bool { return b.options.Isolation == isolationProcess }

// checkIsolation fails for one that there is not, or that this kernel does not have.
func (b *Backend) checkIsolation() error {
	all := []string{"", isolationAuto, isolationNamespace, isolationProcess}
	if !slices.Contains(all, b.options.Isolation) {
		return errclass.Errorf(backend.ErrInvalid, "isolation %q is not known: use %s", b.options.Isolation, strings.Join(all[1:], ", "))
	}
	if !b.inPlace() {
		return nil
	}
	return errInPlace()
}

// errInPlace is why the isolation process cannot be had here; nil where it can.
func errInPlace() error {
	if lacks := landlock.Lacks(landlock.ABI()); len(lacks) > 0 {
		return fmt.Errorf("isolation %s: %w: the kernel's Landlock cannot restrict %s: use Linux 6.12 or later, with landlock in its lsm= list, or another isolation", isolationProcess, backend.ErrUnsupported, strings.Join(lacks, ", "))
	}
	return nil
}
