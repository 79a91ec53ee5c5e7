// Package engine runs sandboxes as containers of an engine that speaks Docker's API.
// Packages docker and podman are this package with a connection to their engine.
//
// The guest agent is the container's main process. It comes from a read-only volume
// that is filled once per engine and agent version, and the stream to it is the
// container's own stdin and stdout: no call of the engine is on the path of a run. The
// engine closes that stdin when the owner's process goes, so that the agent ends and
// the engine removes the container, whatever became of the owner.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// A Flavor is what differs from engine to engine.
type Flavor struct {
	// Name is the backend's name.
	Name string
	// Host finds out what the engine can hold containers to. It is called once, before
	// the first container is made, and must be quick.
	Host func(context.Context, *client.Client) (Host, error)
	// Adjust changes a container's configuration to what the engine understands; nil
	// means nothing. It is called after everything but Options.Raw.
	Adjust func(*container.Config, *container.HostConfig)
	// TmpfsOwner says that the engine takes uid= and gid= for a tmpfs. Where the image has
	// a directory of that name, its mode may win over the one that is asked for.
	TmpfsOwner bool
	// VolumeOptions are of the driver of a volume for the caller, so that the engine leaves its
	// owner and mode as they are; nil: it does.
	VolumeOptions map[string]string
	// Auth returns the X-Registry-Auth value for an image reference; nil means none.
	Auth func(ctx context.Context, ref string) (string, error)
	// LimitsFix is what to do where the engine may not raise limits of processes (setrlimit); empty
	// where that is not known.
	LimitsFix string
}

// A Host is what an engine holds its containers to.
type Host struct {
	// Limits say of memory, cpus and pids, in that order, whether the engine holds
	// them, and by what. What is not enforced is not asked of the engine.
	Limits []backend.Control
	// UserNamespace says that root inside is not root outside.
	UserNamespace bool
	// Seccomp says that the engine has a system call filter of its own.
	Seccomp bool
	// Runtime is the program that makes containers, such as "runc".
	Runtime string
	// NoStats says that what the engine says of a container's usage is not true.
	NoStats bool
	// Devices turns device requests into those that the engine understands, and fails where there are none; nil: it
	// understands them, or refuses them itself.
	Devices func([]container.DeviceRequest) ([]container.DeviceRequest, error)
}

// Options say how sandboxes are made on an engine. The zero value is the safe default.
type Options struct {
	// Images is the image of a language, by its name, in place of the default one.
	Images map[string]string
	// Build makes the image from a Dockerfile. It and Spec.Image exclude each other.
	Build *Build
	// KeepImage keeps an image that was pulled, loaded or built for a sandbox because
	// its caller named it; otherwise it is removed when the sandbox is closed, unless
	// something else uses it. A language's default image is always kept.
	KeepImage bool
	// Container is the id or name of an existing container to work in. It is started
	// when it is stopped, and never stopped or removed. The limits and the isolation
	// are its own.
	Container string
	// Settings are laid over the safe defaults.
	Settings settings.Settings
	// Raw, when set, changes what is asked of the engine last, for what Settings has no
	// field for. Capabilities do not know of it.
	Raw func(*container.Config, *container.HostConfig) error
	// Micromamba, when set, is the environment that every program is started in.
	Micromamba *Micromamba
}

// A Backend makes sandboxes on one engine. It is safe for concurrent use.
type Backend struct {
	flavor  Flavor
	options Options
	client  *client.Client
	images  *image.Store

	known struct { // the answer of flavor.Host; a failure is not kept
		sync.Mutex
		host *Host
	}
	agents sync.Map // the agent's volume, by architecture
	failed sync.Map // when filling a cache failed, by key
	// fillImage is the id of an image that the engine has, for containers that are
	// never started.
	fillImage atomic.Value  // string
	preparing ctxlock.Mutex // held while an image is prepared
	sweep     sync.Once
	swept     sync.WaitGroup
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend; nil options are the defaults. Nothing is asked of the engine yet. It fails with
// backend.ErrInvalid for options that exclude each other.
func New(c *client.Client, f Flavor, opts *Options) (*Backend, error) {
	o := *cmp.Or(opts, &Options{})
	switch {
	case o.Container != "" && o.Build != nil:
		return nil, fmt.Errorf("%w: a Dockerfile cannot be used with an existing container: leave one out", backend.ErrInvalid)
	case o.Container != "" && !reflect.ValueOf(o.Settings).IsZero():
		return nil, fmt.Errorf("%w: runtime options are set when a container is made, not for an existing one", backend.ErrInvalid)
	}
	if err := o.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	if o.Micromamba != nil {
		var err error
		if o, err = o.inMicromamba(); err != nil {
			return nil, err
		}
	}
	return &Backend{
		flavor: f, options: o, client: c,
		images:    &image.Store{Client: c, Auth: f.Auth, Default: defaultImages(o.Images)},
		preparing: ctxlock.New(),
	}, nil
}

// RunTimeout is the runtime option timeout; see [backend.RunTimeout].
func (b *Backend) RunTimeout() time.Duration {
	return time.Duration(value(b.options.Settings.Timeout)) * time.Second
}

// Name is the engine's name.
func (b *Backend) Name() string { return b.flavor.Name }

// Close closes the connections to the engine that are idle. Sandboxes live on.
func (b *Backend) Close() error { return b.client.Close() }

// host asks the engine once what it is and can.
func (b *Backend) host(ctx context.Context) (Host, error) {
	b.known.Lock()
	defer b.known.Unlock()
	if b.known.host == nil {
		h, err := b.flavor.Host(ctx, b.client)
		if err != nil {
			return Host{}, b.explain("ask the engine what it can", err)
		}
		b.known.host = &h
	}
	return *b.known.host, nil
}

// explain explains an engine's error, with what the user can do about it.
func (b *Backend) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	err = dial.Explain(err)
	var unreachable *dial.Error
	switch {
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("%s: %w: %w: llmsandbox doctor --backend %s tells why", what, backend.ErrUnsupported, err, b.flavor.Name)
	case errdefs.IsPermissionDenied(err):
		return fmt.Errorf("%s: %w: the engine refuses it: %w", what, backend.ErrUnsupported, err)
	case b.flavor.LimitsFix != "" && strings.Contains(err.Error(), "rlimit"):
		return fmt.Errorf("%s: %w: %s may not raise limits of processes: %s", what, err, b.flavor.Name, b.flavor.LimitsFix)
	case strings.Contains(err.Error(), "could not select device driver"), strings.Contains(err.Error(), "unresolvable CDI devices"):
		return fmt.Errorf("%s: %w: %w: %s's host lacks these devices, or what gives containers access to them: for NVIDIA's GPUs install their driver and the NVIDIA Container Toolkit there (nvidia-ctk runtime configure, or nvidia-ctk cdi generate for CDI), and restart the engine", what, backend.ErrUnsupported, err, b.flavor.Name)
	case strings.Contains(err.Error(), "no space left on device"):
		return fmt.Errorf("%s: %w: the disk of %s is full: make room there, e.g. with %[3]s system prune", what, err, b.flavor.Name)
	}
	return fmt.Errorf("%s: %s: %w", what, b.flavor.Name, err)
}

// nameTaken reports whether a container was not made because another one has its name.
// Podman 4 answers that as if it had failed itself.
func nameTaken(err error) bool {
	return errdefs.IsConflict(err) || errdefs.IsInternal(err) && strings.Contains(err.Error(), "name is already in use")
}

// volumeTaken reports whether a volume was not made because one of its name was made at the
// same moment. Podman fails then, and the one that is late may take the other's directory away before
// that has its content; where the volume was there before, it is the answer.
func volumeTaken(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "volume already exists") || strings.Contains(text, "creating volume directory") && strings.Contains(text, "no such file")
}

// volumeGone reports whether there is no such volume. Podman says so in other words where it
// is removed at the same moment.
func volumeGone(err error) bool {
	return errdefs.IsNotFound(err) || errdefs.IsInternal(err) && strings.Contains(err.Error(), "no such volume")
}
