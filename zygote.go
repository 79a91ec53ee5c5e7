package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Zygote is an interpreter of Python that has imported modules, in a sandbox of its own, and is forked into each
// sandbox that it opens: that takes the time of a fork, and little memory, where Open with Options.Imports imports them again.
// The new sandbox is isolated and limited as any is, and its code finds nothing of other sandboxes. It may be used concurrently.
//
// The sandbox of the interpreter has no mounts, no volumes, no network and no placeholders of secrets, so modules find none of them while they are
// imported. The others have those of the options.
//
// The modules run in all of its sandboxes, and before they do with privileges over them: those of a hostile package could
// see and change what the others do. What is forked from one Zygote has the same addresses and string hashes: see RunOptions.FreshLayout.
type Zygote struct {
	opts    Options
	backend backend.Zygotes

	starting sync.Mutex // held to start an interpreter
	mu       sync.Mutex
	current  *interpreter // nil: the last one has ended
	all      map[*interpreter]struct{}
	closed   bool
}

// An interpreter of a Zygote, which is replaced when it ends. Its sandbox is closed when it has been replaced
// and the sandboxes are gone into which it was forked, since they end with it.
type interpreter struct {
	sandbox *Sandbox
	tag     string
	users   int  // sandboxes, and those being opened; guarded by the Zygote's mu
	retired bool // guarded by it too
}

// NewZygote starts one for sandboxes with these options. It fails with ErrUnsupported where the backend cannot fork
// into sandboxes, which only the local one can, for other languages than Python, and for options with Supervisor, Resettable,
// WritableRoot, User, Sudo or ID; else as Open does.
func NewZygote(ctx context.Context, opts *Options) (*Zygote, error) {
	o, err := cmp.Or(opts, &Options{}).WithTemplate()
	if err != nil {
		return nil, err
	}
	b, err := backendOrDefault(o.Backend)
	if err != nil {
		return nil, err
	}
	zygotes, ok := b.(backend.Zygotes)
	if !ok {
		return nil, fmt.Errorf("start a zygote: %w: the %s backend cannot fork a process of one sandbox into another: use the local one", ErrUnsupported, b.Name())
	}
	if o.Supervisor != nil || o.Resettable || o.WritableRoot || o.User != "" || o.Sudo || o.ID != "" {
		return nil, fmt.Errorf("start a zygote: %w: its sandboxes have no supervisor, no root that can be written to, no users, ids of their own, and cannot be reset: leave these options out", ErrUnsupported)
	}
	o.Backend = b
	z := &Zygote{opts: o, backend: zygotes, all: map[*interpreter]struct{}{}}
	in, err := z.take(ctx)
	if err != nil {
		return nil, err
	}
	z.leave(in)
	return z, nil
}

// take returns the interpreter, a new one if there is none. It stays until leave is called.
func (z *Zygote) take(ctx context.Context) (*interpreter, error) {
	z.starting.Lock()
	defer z.starting.Unlock()
	z.mu.Lock()
	in := z.current
	if in != nil {
		in.users++
	}
	closed := z.closed
	z.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("open a sandbox from a zygote: %w: the zygote is closed", ErrNotFound)
	}
	if in != nil {
		return in, nil
	}
	own := z.opts
	own.Labels, own.Mounts, own.Volumes, own.Lifetime, own.IdleTimeout = nil, nil, nil, 0, 0
	sb, err := open(ctx, &own, &opening{zygote: true, create: func(ctx context.Context, _ backend.Backend, spec backend.Spec) (backend.Machine, error) {
		return z.backend.CreateZygote(ctx, spec)
	}, prepare: func(ctx context.Context, s *Sandbox) error {
		if s.language.Ahead == nil || !s.language.Ahead.Forks {
			return fmt.Errorf("start a zygote: %w: %s has no interpreter that forks", ErrUnsupported, s.language.Title)
		}
		return s.Prepare(ctx)
	}})
	if err != nil {
		return nil, err
	}
	in = &interpreter{sandbox: sb, tag: sb.ahead.held.tag, users: 1}
	z.mu.Lock()
	z.current, z.all[in] = in, struct{}{}
	closed = z.closed
	z.mu.Unlock()
	if closed {
		return nil, errors.Join(fmt.Errorf("open a sandbox from a zygote: %w: the zygote is closed", ErrNotFound), sb.Close())
	}
	return in, nil
}

// retire has the next sandbox get another interpreter.
func (z *Zygote) retire(in *interpreter) {
	z.mu.Lock()
	defer z.mu.Unlock()
	in.retired = true
	if z.current == in {
		z.current = nil
	}
}

func (z *Zygote) leave(in *interpreter) {
	z.mu.Lock()
	in.users--
	over := in.retired && in.users == 0
	if over {
		delete(z.all, in)
	}
	z.mu.Unlock()
	if over {
		in.sandbox.link.Warn("the sandbox of a zygote that has ended could not be closed", in.sandbox.Close())
	}
}

// Open opens a sandbox, of an id of its own. When the interpreter has ended, it starts another one first.
func (z *Zygote) Open(ctx context.Context) (*Sandbox, error) {
	for first := true; ; first = false {
		in, err := z.take(ctx)
		if err != nil {
			return nil, err
		}
		sb, err := z.openFrom(ctx, in)
		if err == nil {
			go func() {
				<-sb.machine.Done()
				z.leave(in)
			}()
			return sb, nil
		}
		gone := errors.Is(err, backend.ErrZygoteEnded) || in.sandbox.link.Alive() != nil
		if gone {
			z.retire(in)
		}
		z.leave(in)
		if !gone || !first || ctx.Err() != nil {
			return nil, err
		}
	}
}

func (z *Zygote) openFrom(ctx context.Context, in *interpreter) (*Sandbox, error) {
	o := z.opts
	o.Labels = maps.Clone(o.Labels)
	return open(ctx, &o, &opening{create: func(ctx context.Context, _ backend.Backend, spec backend.Spec) (backend.Machine, error) {
		return z.backend.CreateFrom(ctx, spec, in.sandbox.machine, in.tag)
	}, prepare: func(ctx context.Context, s *Sandbox) error {
		a := s.findAhead(ctx)
		if a == nil {
			return errors.New("the interpreter that was forked into it is not there")
		}
		s.ahead.give(a, false)
		return nil
	}})
}

// Close ends it, and with it the sandboxes that it has opened.
func (z *Zygote) Close() error {
	z.mu.Lock()
	z.closed = true
	all := z.all
	z.all, z.current = map[*interpreter]struct{}{}, nil
	z.mu.Unlock()
	var errs []error
	for in := range all {
		errs = append(errs, in.sandbox.Close())
	}
	return errors.Join(errs...)
}
