package pool

import (
	"context"
	"errors"

	"github.com/llmsandbox/llmsandbox"
)

// box is what a pool needs of a sandbox.
type box interface {
	ID() string
	Done() <-chan struct{}
	// Ping waits for a sign of life from inside.
	Ping(context.Context) error
	Reset(context.Context) error
	Close() error
}

type opener func(context.Context, llmsandbox.Options) (box, error)

// warm is a real one.
type warm struct {
	*llmsandbox.Sandbox
	prepared bool // its interpreter is started ahead
}

func (w warm) Ping(ctx context.Context) error {
	_, err := w.Stat(ctx, w.Workdir())
	return err
}

func (w warm) Reset(ctx context.Context) error {
	if err := w.Sandbox.Reset(ctx); err != nil {
		return err
	}
	return w.prepare(ctx)
}

// prepare starts the interpreter. That there is no way, or no interpreter, is for the one who
// runs something to hear.
func (w warm) prepare(ctx context.Context) error {
	if !w.prepared {
		return nil
	}
	err := w.Prepare(ctx)
	if errors.Is(err, llmsandbox.ErrUnsupported) || errors.Is(err, llmsandbox.ErrToolchain) {
		return nil
	}
	return err
}

// opening opens real ones.
func opening(prepared bool) opener {
	return func(ctx context.Context, o llmsandbox.Options) (box, error) {
		sb, err := llmsandbox.Open(ctx, &o)
		if err != nil {
			return nil, err
		}
		w := warm{sb, prepared}
		if err := w.prepare(ctx); err != nil {
			return nil, errors.Join(err, sb.Close())
		}
		return w, nil
	}
}
