// Package backend declares what a place that runs sandboxes must offer.
//
// A [Backend] only starts a machine (a root filesystem with processes, isolated)
// and hands back byte streams into it. Everything else (processes, files, kills)
// is spoken over such a stream with the guest agent that runs inside. Most users
// never call these methods: they pass a Backend to llmsandbox.Open.
package backend

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// A Backend creates sandboxes. Its methods may be called concurrently.
type Backend interface {
	// Name is the backend's name: "local", "docker", ...
	Name() string
	// Create starts a machine. On an error nothing is left behind.
	Create(ctx context.Context, spec Spec) (Machine, error)
	// Attach returns a machine that this or another process created. It fails
	// with ErrNotFound when there is none of that id, or its owner has ended.
	// Closing an attached machine only closes what Attach opened.
	Attach(ctx context.Context, id string) (Machine, error)
	// List returns the machines that live, of every owner the caller may see.
	List(ctx context.Context) ([]Info, error)
	// Capabilities reports what this backend can enforce here, and by what.
	Capabilities(ctx context.Context) (Capabilities, error)
	// GC removes what owners that no longer live have left, and reports what.
	GC(ctx context.Context) ([]Leftover, error)
	// Layers are the prepared caches and installed libraries that sandboxes can get. It
	// fails with ErrUnsupported where there can be none.
	Layers() (Layers, error)
}

// Zygotes is implemented by backends that can fork a process of one machine into others.
type Zygotes interface {
	// CreateZygote is Create for a machine with one process, which has StartRequest.Enters of the agent's protocol. The
	// machine runs no code of a user. When it ends, the machines that were created from it end, too.
	CreateZygote(ctx context.Context, spec Spec) (Machine, error)
	// CreateFrom is Create for a machine into which that process forks another, which the agent then has as one with
	// StartRequest.Forks, and that tag. The specs must be the same but for ID, Labels and Deadline. It fails with
	// ErrZygoteEnded when the process does not fork any more.
	CreateFrom(ctx context.Context, spec Spec, zygote Machine, tag string) (Machine, error)
}

// OwnRoots is implemented by backends that have Spec.WritableRoot, Spec.User, Spec.Sudo and Spec.Workdir, or refuse some of them.
type OwnRoots interface{ OwnRoots() }

// FileKeeper is implemented by backends that may have Spec.KeepFiles.
type FileKeeper interface {
	// KeepsFiles reports whether sandboxes work in a container or pod that exists without them.
	KeepsFiles() bool
}

// Renewer is implemented by backends that can make a machine as new, whatever code has changed in it.
type Renewer interface {
	// Renew ends a machine that Create returned, with all that is in it, and creates another of the same spec, image and
	// deadline in its place. After an error the machine has ended, or has to be destroyed.
	Renew(ctx context.Context, m Machine) (Machine, error)
}

// Adopter is implemented by backends whose machines outlive their owner for a while, on whatever machine that was.
type Adopter interface {
	// Adopt is Attach but that the machine is as Create returns it: its handle is the owner, in place of one that has ended. It does not
	// look whether that has: the caller knows. Other handles stay. After an error the machine may have ended.
	Adopt(ctx context.Context, id string) (Machine, error)
}

// Pauser is implemented by machines that can be paused.
type Pauser interface {
	// Pause stops all that runs in the machine until Resume, which may be another handle's. Memory, files, connections and
	// what is left of every time limit stay, the deadline's too. After an error the machine goes on. It fails with
	// ErrPaused where the machine is paused, and with ErrUnsupported where it cannot be.
	Pause(ctx context.Context) error
	// Resume lets the machine go on. One that is not paused goes on anyway. After an error it may be paused still.
	Resume(ctx context.Context) error
}

// RunTimeout is how long a run may take that sets no limit of its own, as the options of b say by a method RunTimeout;
// 0: they do not say.
func RunTimeout(b Backend) time.Duration {
	if says, ok := b.(interface{ RunTimeout() time.Duration }); ok {
		return says.RunTimeout()
	}
	return 0
}

// GPUs is implemented by backends that have Spec.GPUs.
type GPUs interface{ GPUs() }

// A Machine is one live sandbox of a backend. Its methods may be called concurrently.
type Machine interface {
	// ID is the sandbox's id.
	ID() string
	// Info describes it as List does.
	Info() Info
	// Dial opens a new byte stream to the guest agent.
	Dial(ctx context.Context) (io.ReadWriteCloser, error)
	// Guest describes the inside of the sandbox.
	Guest() Guest
	// Capabilities reports what is enforced for this sandbox, and by what.
	Capabilities() Capabilities
	// Usage reports what the sandbox as a whole uses, as far as it is known.
	Usage(ctx context.Context) (Usage, error)
	// OOMKills is how many processes of the sandbox the kernel has killed for
	// memory so far, and whether that is known. It is called around each run and
	// must be cheap.
	OOMKills(ctx context.Context) (n int64, known bool)
	// SetDeadline has the sandbox end at that time, in place of the deadline it had; zero is
	// never. Info tells it then, and List of any process. With an error it may be either.
	SetDeadline(ctx context.Context, at time.Time) error
	// Destroy ends the sandbox and removes all of it. It is idempotent.
	Destroy(ctx context.Context) error
	// Commit makes an image named tag of the machine's image and files, a tar of its
	// working directory whose names begin with that directory's path, and returns the
	// image's id, and what it has left out of the files, each with its reason. The tar may be hostile. The tag must be new unless overwrite is the same.
	// It fails with ErrUnsupported where no images are made of sandboxes.
	Commit(ctx context.Context, tag, overwrite string, files io.Reader) (id string, skipped []string, err error)
	// Close releases this handle. On the machine that Create returned it is
	// Destroy; on an attached one the sandbox lives on. A machine that ends with its agent,
	// which takes less time than to remove it, calls endAgent before: it asks the agent, over
	// the caller's connection, and reports whether the agent has acknowledged that it ends. It
	// may be nil. What is left to remove may then go after Close returns.
	Close(endAgent func() bool) error
	// Done is closed when the sandbox has ended, for whatever reason.
	Done() <-chan struct{}
	// End reports how the sandbox has ended. It is zero while the sandbox lives.
	End() End
}

// An End is what is known of how a machine has ended.
type End struct {
	// Reason goes on after "the sandbox has ended: ", such as "the pod was deleted". It is
	// empty where the owner closed the sandbox, and where the reason is not known.
	Reason string
	// KilledForMemory reports whether all of it was killed because it reached its memory limit.
	KilledForMemory bool
}

// Spec is what a machine is created from.
type Spec struct {
	// ID is unique, of [a-z0-9-], at most 40 bytes.
	ID string
	// Image is the root filesystem: "" or "host" for the host's own read-only
	// toolchains, a registry reference, the directory of an OCI layout, or the file
	// of a `docker save` tar.
	Image string
	// Language is the language the sandbox is opened for; a hint, e.g. for the
	// default image.
	Language string
	// Limits are what the machine must hold to.
	Limits Limits
	// Env is added to the default environment that Guest reports, as NAME=VALUE;
	// it stays with the sandbox for those who attach to it.
	Env []string
	// Labels are kept with the machine and returned by List.
	Labels map[string]string
	// Deadline, when set, is when the machine ends by itself.
	Deadline time.Time
	// IdleTimeout, when set, is after how long without a call of its agent and without a
	// running process the machine ends by itself.
	IdleTimeout time.Duration
	// BestEffort allows a limit in Limits.Required that cannot be enforced.
	BestEffort bool
	// Progress, when set, gets reports of long steps. It must not block.
	Progress func(Progress)
	// Logger gets errors that no caller gets; nil is none.
	Logger *slog.Logger
	// Layers are mounted into the sandbox: prepared caches and installed libraries.
	Layers []Layer
	// WritableRoot lets code write to the whole root filesystem, which is its own: what it writes is gone with the
	// machine, and counts against the disk limit. Only backends that are OwnRoots have it.
	WritableRoot bool
	// User is what code runs as, as "NAME", "UID" or either with ":GROUP", where the names are those of the root filesystem; empty:
	// an unprivileged one. It may be root, with power over files, users and processes of the sandbox only. Only backends that are
	// OwnRoots have another.
	User string
	// Sudo lets code become root by a program sudo, without a password. It needs User.
	Sudo bool
	// Workdir is the absolute path of the working directory, which is made with the machine; empty: the backend's. Only
	// backends that are OwnRoots have another.
	Workdir string
	// KeepFiles makes Workdir a directory of the container or pod that the machine enters: what is in it is there, and
	// stays when the machine ends. Only backends that are FileKeepers have it.
	KeepFiles bool
	// GPUs are "all", a number, or ids and names of the Container Device Interface (CDI) with commas between; empty: none.
	// Only backends that are GPUs have them.
	GPUs string
	// Mounts are directories and files of the host. A backend that cannot mount them fails with
	// ErrUnsupported.
	Mounts []Mount
	// Volumes are volumes that exist. Only backends that are Volumes have them.
	Volumes []VolumeMount
}

// A Layer is a read-only directory that appears inside the sandbox.
type Layer struct {
	Source string // what Layers.Get returned, or a directory of the host where the sandbox is local
	Target string // absolute path inside
	// Writable puts a private writable layer on top of it; what is written
	// counts against the disk limit.
	Writable bool
}

// Limits of a machine. Zero means no limit.
type Limits struct {
	Memory int64   `json:"memory_bytes"` // bytes, of the whole sandbox
	CPUs   float64 `json:"cpus"`         // e.g. 0.5
	PIDs   int64   `json:"pids"`         // processes and threads
	Disk   int64   `json:"disk_bytes"`   // bytes, of all that can be written
	// Required names the limits ("memory", "cpus", "pids", "disk") that the
	// caller asked for: when one cannot be enforced, Create fails with
	// ErrNotEnforced. The others are applied as far as possible.
	Required []string `json:"-"`
}

// Guest describes the inside of a machine.
type Guest struct {
	Env     []string // default environment: PATH, HOME, TMPDIR, locale, the image's own
	Workdir string   // the writable working directory
	// StartDir is where a command starts when no directory is given: the image's own
	// working directory. Empty means Workdir.
	StartDir string
	TempDir  string
	// Host reports whether the root filesystem is the host's own toolchains.
	Host bool
	// Image is the image's resolved name, or "host".
	Image string
	Arch  string // GOARCH
	// ProxyPort is the port of its loopback on which the proxy of a network is, where it shares that with others; 0: any.
	ProxyPort uint16
}

// Usage is what a machine uses.
type Usage struct {
	MemoryKnown bool
	Memory      int64 // bytes now
	MemoryPeak  int64 // 0 if not known
	CPUKnown    bool
	CPU         time.Duration
}

// Info describes a machine in a list.
type Info struct {
	ID       string    `json:"id"`
	Backend  string    `json:"backend"`
	Image    string    `json:"image"`
	Language string    `json:"language"`
	Created  time.Time `json:"created"`
	Deadline time.Time `json:"deadline,omitzero"`
	// IdleTimeout is after how long without use it ends; 0: never.
	IdleTimeout time.Duration     `json:"idle_timeout_ns,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Paused: nothing runs in it until it is resumed, and its deadline does not come.
	Paused bool `json:"paused,omitzero"`
	// Limits are those it was created with.
	Limits Limits `json:"limits"`
	Owner  string `json:"owner"` // e.g. "pid 1234"
	// Mounts are what the sandbox has of the host, with Source as it was resolved.
	Mounts []Mount `json:"mounts,omitempty"`
	// Volumes are those that the sandbox has.
	Volumes []VolumeMount `json:"volumes,omitempty"`
}

// Leftover is something GC found.
type Leftover struct {
	Kind    string // "sandbox", "cgroup", "container", ...
	Name    string
	Removed bool
	Reason  string // why it could not be removed
}

// Capabilities lists, control by control, what is enforced.
type Capabilities struct {
	Backend   string    `json:"backend"`
	Isolation string    `json:"isolation,omitempty"`
	Controls  []Control `json:"controls"`
}

// A Control is one thing that is enforced or is not.
type Control struct {
	Name     string `json:"name"` // "memory", "cpus", "pids", "disk", "network", "agent", "seccomp", "landlock", ...
	Enforced bool   `json:"enforced"`
	By       string `json:"by,omitempty"`     // "cgroup v2", "seccomp", ...
	Detail   string `json:"detail,omitempty"` // e.g. the ABI in force
	Why      string `json:"why,omitempty"`    // why it is not, or only partly, enforced
	Fix      string `json:"fix,omitempty"`    // what to do about it
}

// NotAsked is the Why of a limit that the caller lifted.
const NotAsked = "no limit was asked for"

// NotEnforced are the names of the controls that are not enforced.
func (c Capabilities) NotEnforced() []string {
	var names []string
	for _, k := range c.Controls {
		if !k.Enforced {
			names = append(names, k.Name)
		}
	}
	return names
}

// String is one line: "local (namespaces): 16 of 18 controls enforced; not enforced: disk, landlock".
func (c Capabilities) String() string {
	missing := c.NotEnforced()
	line := fmt.Sprintf("%d of %d controls enforced", len(c.Controls)-len(missing), len(c.Controls))
	if len(missing) > 0 {
		line += "; not enforced: " + strings.Join(missing, ", ")
	}
	if c.Isolation != "" {
		return fmt.Sprintf("%s (%s): %s", c.Backend, c.Isolation, line)
	}
	return c.Backend + ": " + line
}

// Get returns the control of that name.
func (c Capabilities) Get(name string) (Control, bool) {
	for _, k := range c.Controls {
		if k.Name == name {
			return k, true
		}
	}
	return Control{}, false
}
