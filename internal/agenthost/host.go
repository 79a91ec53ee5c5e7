// Package agenthost has what is the same of all sandboxes whose agent is reached through
// a service that runs containers, such as an engine or a cluster. A backend for one more
// of these writes a [Host], starts the agent with [ServeArgs], and returns a [Session].
package agenthost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// A Host is the container, pod or the like that one sandbox's agent runs in, as one handle
// sees it. Its methods may be called concurrently where they do not say otherwise.
type Host interface {
	// Connect opens a stream to the agent, which it has shown the agent's token. ctx ends at
	// the latest with the session. The error wraps ErrGone when the sandbox has ended.
	Connect(ctx context.Context) (Stream, error)
	// Await returns true once the sandbox has ended. It returns false when ctx has ended, or
	// when an end cannot be noticed at present: then it is called again after the next
	// Connect that succeeds. There is one call at a time.
	Await(ctx context.Context) bool
	// End says how the sandbox has ended, as far as that is known, and the exit code of its
	// container; 0 where that is not known.
	End() (end backend.End, code int)
	// RecordDeadline writes down for List and GC when the sandbox ends, which info says. It
	// is called before the agent has that deadline, and again when it has. It is not called
	// where the host was entered.
	RecordDeadline(ctx context.Context, info backend.Info, agentHas bool) error
	// Usage and Commit are those of backend.Machine.
	Usage(ctx context.Context) (backend.Usage, error)
	Commit(ctx context.Context, tag, overwrite string, files io.Reader) (id string, skipped []string, err error)
	// Remove ends the sandbox and removes what is left of it. Where agentEnded, the agent
	// has acknowledged that it ends: what goes with it need not be removed. There is one call
	// at a time, none after one that has succeeded, and none where the host was entered.
	Remove(ctx context.Context, agentEnded bool) error
	// Release gives up what this handle holds. Await has returned, and is not called again.
	Release()
}

// ErrGone is why a host cannot be connected to any more.
var ErrGone = errors.New("its container is gone or stopped")

// A Stream is a byte stream to an agent.
type Stream interface {
	io.ReadWriteCloser
	// Said is what the agent, or the service in its place, said on stderr.
	Said() string
}

// An Agent is what is needed to connect to an agent in a container.
type Agent struct {
	File   string // the path of its program
	Socket string // what it listens on, see Socket
	Token  string // what it wants to be shown
}

// Socket is the abstract socket that an agent listens on: it needs no file system, and code
// cannot unlink it.
func Socket(id string) string { return "@llmsandbox-" + id }

// A Description is what is known of a sandbox without asking it. It has most of the methods
// of backend.Machine that return it.
type Description struct {
	Sandbox  backend.Info
	Inside   backend.Guest
	Enforced backend.Capabilities
}

func (d *Description) ID() string                         { return d.Sandbox.ID }
func (d *Description) Guest() backend.Guest               { return d.Inside }
func (d *Description) Capabilities() backend.Capabilities { return d.Enforced }

// A Place is what a sandbox enters, as messages name it.
type Place string

// The places there are.
const (
	Container Place = "container"
	Pod       Place = "pod"
)

// Refuse returns what of spec the place cannot be given, since it was made without it. The
// error wraps backend.ErrInvalid, backend.ErrUnsupported for a mount, or backend.ErrNotEnforced for a limit.
func (p Place) Refuse(spec backend.Spec) error {
	if spec.Image != "" {
		return fmt.Errorf("image %s: %w: an existing %s has its image already", spec.Image, backend.ErrInvalid, p)
	}
	if len(spec.Limits.Required) > 0 && !spec.BestEffort {
		return fmt.Errorf("%s: %w: the limits of an existing %s are its own: leave it out, or ask for best effort", spec.Limits.Required[0], backend.ErrNotEnforced, p)
	}
	if spec.WritableRoot || spec.User != "" {
		return fmt.Errorf("WritableRoot and User: %w: an existing %s has its own root file system and user: leave them out, and run single commands as another user", backend.ErrInvalid, p)
	}
	if spec.Workdir != "" && !spec.KeepFiles {
		return fmt.Errorf("working directory %s: %w: the files of an existing %s are its own: say that those of this directory are to stay (KeepFiles, --keep-files), or leave it out", spec.Workdir, backend.ErrInvalid, p)
	}
	if spec.GPUs != "" {
		return fmt.Errorf("GPUs %s: %w: an existing %s has its devices already: leave them out", spec.GPUs, backend.ErrInvalid, p)
	}
	return hostmount.Unsupported(spec.Mounts, "nothing of this machine can be mounted into an existing "+string(p))
}

// NoLayers is why libraries and prepared caches cannot be brought into the place. It wraps
// backend.ErrUnsupported.
func (p Place) NoLayers() error {
	return fmt.Errorf("%w: nothing can be mounted into an existing %s, and no second one made of it: open a sandbox from its image, or keep files in a directory of it, where libraries are installed (KeepFiles, --keep-files)", backend.ErrUnsupported, p)
}

// EnvToken is the variable of the agent's own environment that has its token. Programs
// inside do not get it.
const EnvToken = "LLMSANDBOX_TOKEN"

// Serve says how an agent serves a sandbox.
type Serve struct {
	Stdio   bool   // its first stream is its own stdin and stdout
	Workdir string // of programs
	Filter  string // the path of its system call filter
	// Grace is how long it waits for a connection after it has lost the last one, and
	// FirstGrace for the first one; 0: as long.
	Grace, FirstGrace time.Duration
	// LayerPath is where the layer of that index is mounted whose files are planted into its
	// writable target.
	LayerPath func(int) string
}

// ServeArgs are the arguments of an agent's program after "serve".
func ServeArgs(spec backend.Spec, s Serve) []string {
	args := []string{"--listen", Socket(spec.ID), "--token-env", EnvToken, "--workdir", s.Workdir, "--seccomp", s.Filter, "--grace", seconds(s.Grace)}
	if s.FirstGrace > 0 {
		args = append(args, "--first-grace", seconds(s.FirstGrace))
	}
	if s.Stdio {
		args = append(args, "--stdio")
	}
	if AsRoot(spec) {
		args = append(args, "--users")
	}
	args = append(args, agentclient.TimerArgs(spec.Deadline, spec.IdleTimeout)...)
	for i, l := range spec.Layers {
		if l.Writable {
			args = append(args, "--seed", s.LayerPath(i)+"="+l.Target)
		}
	}
	return args
}

// seconds are whole ones, and not fewer than d.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Record describes a sandbox that is made now.
func Record(spec backend.Spec, name, image, owner string) backend.Info {
	return backend.Info{
		ID: spec.ID, Backend: name, Image: image, Language: spec.Language, Created: time.Now(),
		Deadline: spec.Deadline, IdleTimeout: spec.IdleTimeout, Labels: spec.Labels, Limits: spec.Limits, Owner: owner,
		Mounts: spec.Mounts,
	}
}

// CheckLimits fails when a limit that was asked for is not among what is enforced. The error
// wraps backend.ErrNotEnforced.
func CheckLimits(spec backend.Spec, controls []backend.Control) error {
	for _, c := range controls {
		if !c.Enforced && !spec.BestEffort && slices.Contains(spec.Limits.Required, c.Name) {
			return fmt.Errorf("%s: %w: %s: %s, or ask for best effort", c.Name, backend.ErrNotEnforced, c.Why, c.Fix)
		}
	}
	return nil
}

// LogSweep logs what a sweep that no caller waits for could not remove. The next GC tries again.
func LogSweep(log *slog.Logger, found []backend.Leftover, err error) {
	if log == nil {
		return
	}
	if err != nil {
		log.Warn("leftovers of ended processes could not be looked for", "error", err)
	}
	for _, l := range found {
		if !l.Removed {
			log.Warn("a leftover of an ended process could not be removed", "kind", l.Kind, "name", l.Name, "error", l.Reason)
		}
	}
}
