// Package landlock confines the code's file access to named paths, as a second
// line behind the mounts, or, for code in no namespaces of its own, as the first.
//
// The agent makes one ruleset after it has entered the sandbox's root; each
// process it starts enters it right before exec. The package is part of the
// agent: it makes raw system calls and imports nothing else.
package landlock

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrUnsupported means that the kernel has no Landlock, or has it turned off.
var ErrUnsupported = errors.New("the kernel has no Landlock")

// Rules name what is allowed; all else of the file system is denied. Paths are
// absolute, as seen at the time of NewRuleset, and a directory includes all below.
// A path that does not exist allows nothing.
type Rules struct {
	// ReadExec may be read and executed: the root with the toolchains.
	ReadExec []string
	// ReadOnly may be read.
	ReadOnly []string
	// List are directories that may be listed.
	List []string
	// ReadWrite may be used in every way but making devices: the work directory
	// and /tmp. Executing is part of it, since programs are built and run there.
	ReadWrite []string
	// Special may be read, written and controlled (ioctl), but nothing made,
	// removed or executed there: /dev and /proc, or single devices.
	Special []string
	// ScopeSignals (ABI 6) keeps processes from signalling any outside of their
	// own run. It is for an agent that shares its uid with the code, which
	// could else end it. Where the uids differ it should stay off: each run is a
	// domain of its own, so a later run could not signal what an earlier one
	// left running.
	ScopeSignals bool
	// LimitTCP (ABI 4) keeps from binding TCP ports and from connecting to others than Ports, which are those of any
	// address. It fails where the kernel cannot.
	LimitTCP bool
	Ports    []uint16
}

// ABI returns the kernel's Landlock version, or 0 when it has none.
func ABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// NewRuleset makes a ruleset of the rules, as far as the kernel's ABI goes, and
// returns its descriptor, which is close-on-exec. Without Landlock it fails with
// ErrUnsupported. A thread with no_new_privs enters it by landlock_restrict_self, with
// flags of 0: from ABI 7 on that also keeps denials of what is executed afterwards out of
// the host's audit log, which hostile code could otherwise flood.
//
// Without LimitTCP nothing of TCP is restricted: the sandbox's network is its own and servers on
// its loopback are ordinary. Nor are abstract unix sockets scoped, for they
// belong to the network namespace and the agent has none.
func NewRuleset(r Rules) (int, error) {
	abi := ABI()
	if abi == 0 {
		return -1, fmt.Errorf("landlock: %w", ErrUnsupported)
	}
	handled := rights(abi)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	if r.ScopeSignals && abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	if r.LimitTCP {
		if abi < 4 {
			return -1, fmt.Errorf("landlock: restrict TCP: %w for it, which came with Linux 6.7", ErrUnsupported)
		}
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	fd, err := newRuleset(attr)
	if err != nil {
		return -1, err
	}
	for _, set := range []struct {
		access uint64
		paths  []string
	}{{readExec, r.ReadExec}, {readOnly, r.ReadOnly}, {unix.LANDLOCK_ACCESS_FS_READ_DIR, r.List}, {readWrite, r.ReadWrite}, {special, r.Special}} {
		for _, path := range set.paths {
			if err := allow(fd, path, set.access&handled); err != nil {
				unix.Close(fd)
				return -1, err
			}
		}
	}
	for _, port := range r.Ports {
		if e := allowPort(fd, port); e != 0 {
			unix.Close(fd)
			return -1, fmt.Errorf("landlock: allow port %d: %w", port, e)
		}
	}
	return fd, nil
}

func newRuleset(attr unix.LandlockRulesetAttr) (int, error) {
	fd, e := createRuleset(&attr)
	if e != 0 {
		return -1, fmt.Errorf("landlock: make a ruleset: %w", e)
	}
	return fd, nil
}

// Enter restricts the calling thread, which must have no_new_privs, and all that it starts.
func Enter(ruleset int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); e != 0 {
		return fmt.Errorf("landlock: restrict the thread: %w", e)
	}
	return nil
}

// NewScope makes a ruleset that denies nothing of files, and keeps from signalling processes that are not restricted by it,
// from looking into them, and from connecting to their abstract unix sockets. A thread that enters it and then starts
// processes makes them one domain: among themselves they are free. It needs ABI 6.
func NewScope() (int, error) {
	if ABI() < 6 {
		return -1, fmt.Errorf("landlock: scope signals: %w for it, which came with Linux 6.12", ErrUnsupported)
	}
	fd, err := newRuleset(unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER,
		Scoped: unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET})
	if err != nil {
		return -1, err
	}
	// Any domain denies to move and link files between directories, unless it handles that and allows it.
	if err := allow(fd, "/", unix.LANDLOCK_ACCESS_FS_REFER); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// allow adds a rule for a path and what is below it.
func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("landlock: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("landlock: stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles // the kernel refuses a directory's rights on a file
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if e := addRule(ruleset, &rule); e != 0 {
		return fmt.Errorf("landlock: allow %s: %w", path, e)
	}
	return nil
}

// The rights of the first ABI; each later one adds some.
const firstABI = 1<<13 - 1

const (
	readOnly = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	readExec = readOnly | unix.LANDLOCK_ACCESS_FS_EXECUTE

	special = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	readWrite = firstABI&^(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK) |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// later are the rights that came after the first ABI, and what is not enforced
// on a kernel without them. Before ABI 2, moving files between directories is denied
// altogether.
var later = []struct {
	abi    int
	access uint64
	lack   string
}{
	{2, unix.LANDLOCK_ACCESS_FS_REFER, ""},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, "truncating files"},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, "device ioctls"},
	{6, 0, "signals between runs"},
}

func rights(abi int) uint64 {
	out := uint64(firstABI)
	for _, l := range later {
		if abi >= l.abi {
			out |= l.access
		}
	}
	return out
}

// Unenforced lists what a kernel of this ABI cannot restrict, although the
// newest one that this package knows can.
func Unenforced(abi int) []string {
	var out []string
	for _, l := range later {
		if abi < l.abi && l.lack != "" {
			out = append(out, l.lack)
		}
	}
	return out
}

// Lacks lists what a kernel of this ABI cannot keep code from that is in no namespaces of its own. There Landlock is
// all that does, so with anything in the list such code must not run.
func Lacks(abi int) []string {
	var out []string
	for _, need := range []struct {
		abi  int
		what string
	}{
		{1, "files"},
		{3, "truncating files"},
		{4, "TCP ports"},
		{5, "device ioctls"},
		{6, "signals to other processes"},
		{6, "abstract unix sockets"},
	} {
		if abi < need.abi {
			out = append(out, need.what)
		}
	}
	return out
}
