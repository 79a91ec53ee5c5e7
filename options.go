package llmsandbox

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/limit"
)

// Options say how a sandbox is opened. The zero value is a Python sandbox on the
// default backend with the default limits and no network.
type Options struct {
	// Template is the name of a [Template]. Open takes from it what these Options leave at zero, see
	// [Options.WithTemplate]. Language is empty or that of the template.
	Template string
	// Language is the name or an alias of the language that Run executes unless
	// it is given another; empty means python.
	Language string
	// Backend runs the sandbox; nil means the embedded local one.
	Backend backend.Backend `json:"-"`
	// Image is the root filesystem: empty or "host" for the host's own read-only
	// toolchains, an image's registry reference, the directory of an OCI layout, or
	// the file of a `docker save` tar.
	Image string
	// Limits are what the kernel enforces. A zero field takes its default of
	// [DefaultLimits]; [Unlimited] lifts it.
	Limits Limits
	// BestEffort lets a limit that was asked for, and that this machine cannot
	// enforce, pass; Capabilities then tells so. Without it Open fails with
	// ErrNotEnforced.
	BestEffort bool
	// Env is added to the sandbox's environment, which otherwise holds a fixed
	// PATH, HOME, TMPDIR and a UTF-8 locale, nothing of the host.
	Env map[string]string
	// Network is what the sandbox may reach; the zero value is nothing.
	Network Network
	// Secrets are usable by requests to their hosts without ever being inside.
	Secrets []Secret
	// Libraries of the sandbox's language are installed before it opens, or taken from
	// the cache of installed libraries: see [Sandbox.Install].
	Libraries []string
	// Environment is the environment whose packages the sandbox has, and no others of its machine
	// or image: a name such as [DataScience] or that of an own environment, or the path of a lock
	// (.toml). It is installed before the sandbox opens unless it is installed already, as
	// Install says. Libraries are added to it. See [Environments].
	Environment string
	// Imports are modules, such as "numpy" and "matplotlib.pyplot", that Python imports while the sandbox is
	// opened. Runs and kernels are forked from the interpreter that has them: see [Sandbox.Prepare]. A run
	// with variables or a directory of its own, or one that would find a file of its own in place of such a
	// module, imports what it needs itself. When a module cannot be imported, Open fails with ErrInvalid.
	// A Zygote imports them once for many sandboxes.
	Imports []string
	// Install says how libraries and the environment are installed.
	Install InstallOptions
	// Mounts are directories and files of the host that code can read in the sandbox, and write to
	// without changing the host's. The docker and podman backends have no MountCopyOnWrite, and
	// the kubernetes backend has no mounts: Open fails with ErrUnsupported there.
	Mounts []Mount
	// Volumes are volumes that exist, see [CreateVolume], in which files stay when the sandbox is closed. Other sandboxes can have them at the same
	// time: what code does in a volume, such as making links and sockets, those see. Set-user-ID bits and devices in them have no effect, and they do not
	// count against Limits.Disk: nothing bounds what code can write to one but the file system that it is on. Reset leaves them alone. The local backend
	// has them, with User only as root of the machine, and not with the isolation process, and so do docker and podman, where files belong to users by
	// number, and kubernetes, as claims, but for existing containers and pods; elsewhere Open fails with ErrUnsupported.
	Volumes []VolumeMount
	// Artifacts say what results carry beside the output, unless a run says otherwise.
	Artifacts ArtifactOptions `json:"-"`
	// Policy is what code and libraries are checked against before they get near the
	// sandbox.
	Policy Policy `json:"-"`
	// Labels are kept with the sandbox and returned by List.
	Labels map[string]string
	// Lifetime ends the sandbox after so long, whatever runs in it; 0 means never.
	// [Sandbox.SetDeadline] changes when.
	Lifetime time.Duration
	// IdleTimeout ends the sandbox when nothing has used it for so long: no run, command, process,
	// cell or file operation of any handle. An open kernel without a cell is no use of it, nor is a
	// connection. 0 means never.
	IdleTimeout time.Duration
	// WritableRoot lets code write everywhere, not only to the working directory and /tmp: all files of the root
	// filesystem belong to it. What is written is seen by this sandbox only, counts against Limits.Disk, and is gone when it
	// is closed. The local backend has it, as root of the machine or with an Image. In containers the files belong to root, so that it
	// needs User, and Limits.Disk does not hold for it, on kubernetes only by eviction. Elsewhere Open fails with ErrUnsupported.
	WritableRoot bool
	// User is what code runs as: "root", another name of the sandbox's /etc/passwd, or a number, each with ":GROUP" if its group is
	// another. The users of the sandbox, root included, are not users of the host. Root has the capabilities over files, users and processes of
	// the sandbox, and none over mounts, networks or the system. Empty means an unprivileged user. File operations have the user's
	// rights, but on the local backend no capabilities. That has users as root of the machine, or with subordinate ids and an Image. On docker, podman and kubernetes, root is the
	// engine's or node's own, which is root of the host unless it maps users; kubernetes takes no names but root, and its namespace
	// must allow root. Elsewhere Open fails with ErrUnsupported.
	User string
	// Sudo gives code a program sudo, with which it becomes root of the sandbox without a password: all that root may do there, it may. Without
	// User, code is an unprivileged user at first. no_new_privs is off then, as sudo could gain nothing with it. Only the local backend has it, where it has User.
	Sudo bool
	// Workdir is the absolute path of the working directory, such as "/srv/project", which Open makes with its parents.
	// It is private and counts against Limits.Disk; empty means the backend's, which is /sandbox. With an Image, the local backend
	// needs WritableRoot for it, the docker and podman ones that the image has no such directory, and on kubernetes it hides what the image has
	// there; elsewhere Open fails with ErrUnsupported.
	Workdir string
	// KeepFiles makes Workdir a directory of the existing container or pod that the backend's options name (Container or Pod), made
	// with its parents if it is not there: code works with the files that are there, and all files stay when the sandbox is closed.
	// Libraries are installed below it, into .llmsandbox/lib, by programs in the container, and stay, too. It has neither Environment nor
	// Resettable. Where a sandbox has a container or pod of its own, and on the local backend, Open fails with ErrUnsupported.
	KeepFiles bool
	// GPUs are the GPUs of the engine's or node's host that code may use: "all", a number such as "1", or ids and CDI names with commas
	// between, such as "0,1" or "nvidia.com/gpu=0"; empty means none. The kubernetes backend takes a number only, and the
	// local one none: Open fails with ErrUnsupported then. It was not tried on hardware.
	GPUs string
	// Resettable has Open look at what it has made, so that [Sandbox.Reset] can do it again. With WritableRoot or User, a reset opens
	// it again.
	Resettable bool
	// Supervisor, when set, opens and owns the sandbox in a process of its own, so that the sandbox
	// lives on when this process ends. Open then returns a handle as [Attach] does: Close leaves
	// the sandbox alone. It is available on Linux.
	Supervisor *Supervisor `json:"-"`
	// ID names the sandbox; empty lets Open choose. It is of [a-z0-9-], at most
	// 40 bytes.
	ID string
	// Progress is called with reports of long steps, such as an image being pulled. It is called
	// from other goroutines and must not block.
	Progress func(backend.Progress) `json:"-"`
	// Logger gets what goes wrong without a caller that gets the error: a stream into the
	// sandbox that is lost and made again, files and earlier sandboxes that could not be removed. It gets
	// neither code nor output nor secrets. nil logs nothing.
	Logger *slog.Logger `json:"-"`
}

// Mount is a directory or file of the host in a sandbox; see [backend.Mount].
type Mount = backend.Mount

// MountMode is the mode of a [Mount].
type MountMode = backend.MountMode

// The modes of a Mount.
const (
	MountReadOnly    = backend.MountReadOnly
	MountCopyOnWrite = backend.MountCopyOnWrite
)

// Unlimited lifts a limit of [Limits].
const Unlimited = -1

// Limits bound a sandbox and its runs. Zero means the default; Unlimited, none.
type Limits struct {
	Memory  int64         `json:"memory_bytes,omitzero"` // bytes, of the whole sandbox
	CPUs    float64       `json:"cpus,omitzero"`         // e.g. 0.5 for half a CPU, of the whole sandbox
	PIDs    int64         `json:"pids,omitzero"`         // processes and threads, of the whole sandbox
	Disk    int64         `json:"disk_bytes,omitzero"`   // bytes, of all that can be written in the sandbox
	Timeout time.Duration `json:"timeout_ns,omitzero"`   // wall time of one run, its compilation included
	Output  int64         `json:"output_bytes,omitzero"` // bytes, of stdout and stderr of one run together
}

// DefaultLimits are what a zero field of Limits means.
func DefaultLimits() Limits {
	return Limits{
		Memory:  512 << 20,
		CPUs:    1,
		PIDs:    128,
		Disk:    1 << 30,
		Timeout: 60 * time.Second,
		Output:  10 << 20,
	}
}

// resolve fills in the defaults and returns the limits a backend must hold to.
// In the result 0 means none.
func (l Limits) resolve() (Limits, backend.Limits, error) {
	def := DefaultLimits()
	var required []string
	pick := func(name, field string, v *int64, d, least, most int64) error {
		allowed := fmt.Sprintf("at least %d", least)
		if most < math.MaxInt64 {
			allowed = fmt.Sprintf("from %d to %d", least, most)
		}
		switch {
		case *v == 0:
			*v = d
		case *v == Unlimited:
			*v = 0
		case *v < least || *v > most:
			return outOfRange(field, *v, allowed)
		default:
			required = append(required, name)
		}
		return nil
	}
	if err := pick("memory", "Memory", &l.Memory, def.Memory, limit.MinMemory, math.MaxInt64); err != nil {
		return l, backend.Limits{}, err
	}
	if err := pick("pids", "PIDs", &l.PIDs, def.PIDs, 1, limit.MaxPIDs); err != nil {
		return l, backend.Limits{}, err
	}
	if err := pick("disk", "Disk", &l.Disk, def.Disk, limit.MinDisk, math.MaxInt64); err != nil {
		return l, backend.Limits{}, err
	}
	if err := pick("output", "Output", &l.Output, def.Output, 1, math.MaxInt64); err != nil {
		return l, backend.Limits{}, err
	}
	if err := l.resolveTimeout(def.Timeout); err != nil {
		return l, backend.Limits{}, err
	}
	switch {
	case l.CPUs == 0:
		l.CPUs = def.CPUs
	case l.CPUs == Unlimited:
		l.CPUs = 0
	case !(l.CPUs >= limit.MinCPUs && l.CPUs <= limit.MaxCPUs): // also catches NaN
		return l, backend.Limits{}, outOfRange("CPUs", l.CPUs, fmt.Sprintf("from %g to %d", limit.MinCPUs, limit.MaxCPUs))
	default:
		required = append(required, "cpus")
	}
	// Output and timeout are held by the agent on every backend.
	kernel := slices.DeleteFunc(required, func(r string) bool { return r == "output" })
	return l, backend.Limits{Memory: l.Memory, CPUs: l.CPUs, PIDs: l.PIDs, Disk: l.Disk, Required: kernel}, nil
}

func (l *Limits) resolveTimeout(def time.Duration) error {
	switch {
	case l.Timeout == 0:
		l.Timeout = def
	case l.Timeout == Unlimited:
		l.Timeout = 0
	case l.Timeout < limit.MinTimeout:
		return outOfRange("Timeout", l.Timeout, fmt.Sprintf("at least %v", limit.MinTimeout))
	}
	return nil
}

// outOfRange is the error of a field of Limits whose value is not allowed.
func outOfRange(field string, v any, allowed string) error {
	return fmt.Errorf("%s is %v: %w: use %s, or Unlimited", "Limits."+field, v, ErrInvalid, allowed)
}

// envList turns an environment into NAME=VALUE lines added to base, later ones
// taking the place of earlier ones.
func envList(base []string, add map[string]string) ([]string, error) {
	if len(add) == 0 {
		return base, nil
	}
	lines := make([]string, 0, len(add))
	for name, value := range add {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, fmt.Errorf("environment variable %q: %w: a name is not empty and holds neither '=' nor NUL, a value no NUL", name, ErrInvalid)
		}
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines) // an interpreter that was started ahead is for one environment
	return environ.Override(base, lines), nil
}
