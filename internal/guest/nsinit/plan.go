// Package nsinit turns a process that was started in new, empty namespaces into the
// inside of a sandbox: it mounts the root filesystem, leaves the host's, gives up
// the host's identity and every privilege the guest agent does not need.
//
// The host decides everything and sends it as one [Plan] over a socket; the agent
// carries it out step by step in [Setup]. The plan's encoding lives here for both
// ends. It has no version: both ends come out of one build.
package nsinit

// Limits of an encoded plan.
const (
	maxPlan    = 160 << 10 // bytes; below the default send buffer of a unix socket
	maxSteps   = 1024
	maxString  = 8 << 10
	maxStrings = 512
	// MaxFDs is how many mount descriptors may travel with a plan.
	MaxFDs = 192
)

// RootID is what the code's root is to the agent in a sandbox with Plan.OwnUsers, and one more than the code's largest id.
const RootID = 1 << 16

// AgentID is how a uid or gid of the code is called in the agent's user namespace. With own users only root has another than in the
// code's: in the agent's, 0 is the agent itself, which the code's does not have.
func AgentID(ownUsers bool, id uint32) uint32 {
	if ownUsers && id == 0 {
		return RootID
	}
	return id
}

// A Proc is what the code has for /proc.
type Proc uint8

// What there is where the kernel refuses a sandbox a /proc of its own, the last two, the agent can look into the /proc of the place that it
// was started from.
const (
	// ProcOwn is the /proc of the sandbox's pid namespace.
	ProcOwn Proc = iota
	// ProcClosed is the one of outside, of which Landlock lets code open only what is Readable. It can list directories and follow links,
	// which for other processes than its own the kernel denies.
	ProcClosed
	// ProcEmpty is a directory with what is Readable.
	ProcEmpty
)

// An Op is what a step does.
type Op uint8

// The operations. Those that take something from the host (OpBind, OpReceived,
// OpFilesystem, OpUnion, OpBindHidden, OpBindSame) open it before the host's root is left, and put it in place after.
const (
	// OpBind mounts the host's file or directory Source, with what is mounted below
	// it, at Path.
	OpBind Op = iota + 1
	// OpReceived mounts the descriptor number FD of those sent with the plan.
	OpReceived
	// OpFilesystem mounts a new file system of type Source with Options.
	OpFilesystem
	// OpUnion mounts a read-only overlay of the host's directories Options, top first.
	OpUnion
	// OpBindHidden mounts the host's directory Source at Path through an overlay with the
	// host's empty directory Options, so that the mount table does not name it. Where the kernel refuses that, it is OpBind, and the reply counts it.
	OpBindHidden
	// OpOverlay mounts an overlay of the sandbox's own directories: Options are the
	// upper and the work directory, and the lower ones, top first, each of which is a mount that is let go.
	OpOverlay
	// OpInner mounts the sandbox's own file or directory Source a second time, at Path.
	OpInner
	// OpAttr adds Attr to the mount at Path.
	OpAttr
	// OpMkdir makes the directory Path and those above it that are missing, with the
	// step's owner; Mode is the last one's. What exists stays as it is.
	OpMkdir
	// OpSymlink makes Path a symbolic link to Source.
	OpSymlink
	// OpFile writes Data to a new file at Path. With Optional, a file that is there stays as it is.
	OpFile
	// OpOwnDirectories gives the directory Path and those below it, not their files, the
	// step's owner. With Optional, those that cannot be had stay as they are.
	OpOwnDirectories
	// OpRoot makes what is mounted at Path the root, with the mount at the sandbox's directory Source at its own Source.
	OpRoot
	// OpBindSame mounts the host's file or directory Source at Path, without what is mounted
	// below it, if it is the one that descriptor number FD was opened on. Of another mount
	// namespace, the descriptor itself cannot be mounted.
	OpBindSame
	// OpLayer keeps the sandbox's directory Source, which has what is written to the part of the root that is mounted at Path.
	OpLayer
)

// A Step is one thing to do. Paths are absolute, and inside the new root but for
// what OpBind, OpUnion, OpBindHidden and OpBindSame take from the host.
type Step struct {
	Op       Op
	Path     string
	Source   string
	Options  []string // of a file system: "key=value" or "key"
	Data     []byte
	FD       uint32
	Mode     uint32
	UID, GID uint32
	Attr     uint32 // MOUNT_ATTR_ flags
	// Optional skips the step when what it needs is not there.
	Optional bool
}

// An Rlimit is a default resource limit of what the agent starts.
type Rlimit struct {
	Resource uint32 // Linux's RLIMIT_ number
	Value    uint64
}

// A Plan is all that an agent must know to become the inside of a sandbox. The
// first step must put the new root in place, at "/"; OpRoot may come after it.
type Plan struct {
	Hostname string
	Workdir  string
	// StartDir, unless empty, is a directory of the image that the answer describes.
	StartDir string
	// SetIDs makes the agent uid and gid 0 of its namespace. Without it there is
	// only one user, and the agent shares it with the code.
	SetIDs bool
	// OwnUsers gives the code a user namespace of its own below the agent's, with the ids below RootID. It has no power over
	// what belongs to the agent's namespaces, not even as root.
	OwnUsers bool
	// Sudo lets its users become root.
	Sudo             bool
	CodeUID, CodeGID uint32 // in the code's user namespace
	Seccomp          []byte
	// SeccompTCP takes its place once the sandbox has a network, where Process is.
	SeccompTCP []byte
	// LandlockRead and LandlockWrite are what the code may read and execute, and
	// what it may also write. Both empty: no ruleset.
	LandlockRead  []string
	LandlockWrite []string
	// LandlockSpecial is what it may read, write and control, such as devices.
	LandlockSpecial []string
	// Process has no namespaces: the agent stays where it is, and there are no steps. The paths are the host's.
	Process bool
	// WatchMemory and WatchDisk are how many bytes the sandbox may take, as far as the agent has to look after that; 0: any.
	WatchMemory, WatchDisk uint64
	// Notify is a seccomp filter whose notifications the agent answers; empty: there is none.
	Notify  []byte
	Rlimits []Rlimit
	// HideUptime lets the code's boot and monotonic clocks start at zero.
	HideUptime bool
	// Entering is the seccomp filter of a process that enters other sandboxes; empty: none may.
	Entering []byte
	// Adopt is the tag of a process that another sandbox forks into this one; empty: none.
	Adopt string
	Steps []Step
}
