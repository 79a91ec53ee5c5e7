package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// lifetimeSlack is how much later than the session its sandbox ends by itself, if
// no server is left to end it.
const lifetimeSlack = time.Minute

// A workspace is what a session holds: a sandbox, and an interpreter in it that keeps what
// code defines.
type workspace struct {
	language *language.Language
	sandbox  *llmsandbox.Sandbox
	kernel   *llmsandbox.Kernel // nil where the sandbox has none for the language
	why      string             // there is no kernel

	installing ctxlock.Mutex
	steps      atomic.Pointer[progress] // of the call that may take long
	used       atomic.Bool              // the interpreter has state
}

// openWorkspace opens a sandbox for so long, and its interpreter where there is one.
func (s *Server) openWorkspace(ctx context.Context, l *language.Language, libraries []string, ttl time.Duration, steps *progress) (*workspace, error) {
	w := &workspace{language: l, installing: ctxlock.New()}
	w.steps.Store(steps)
	defer w.steps.Store(nil)
	o := s.sandboxes.options(l.Name, libraries)
	o.Progress = w.tell
	o.Lifetime = ttl + lifetimeSlack
	var err error
	if w.sandbox, err = llmsandbox.Open(ctx, &o); err != nil {
		return nil, err
	}
	// What a cell may install is what install_libraries may. The plain shell opens at once.
	w.kernel, err = w.sandbox.Kernel(ctx, l.Name, &llmsandbox.KernelOptions{Plain: true, AllowInstall: !s.cfg.NoLibraries})
	switch {
	case err == nil:
	case errors.Is(err, llmsandbox.ErrToolchain), errors.Is(err, llmsandbox.ErrUnsupported):
		w.why = s.message(err)
	default:
		s.sandboxes.remove(w.sandbox)
		return nil, fmt.Errorf("start the interpreter: %w", err)
	}
	return w, nil
}

// ended reports whether the sandbox has ended by itself.
func (w *workspace) ended() bool {
	select {
	case <-w.sandbox.Done():
		return true
	default:
		return false
	}
}

func (w *workspace) tell(step backend.Progress) {
	if steps := w.steps.Load(); steps != nil {
		steps.tell(step)
	}
}

// install installs libraries, and has the interpreter find them. lost means that it had to
// begin anew for that.
func (w *workspace) install(ctx context.Context, libraries []string, steps *progress) (lost bool, err error) {
	if err := w.installing.Lock(ctx); err != nil {
		return false, err
	}
	defer w.installing.Unlock()
	w.steps.Store(steps)
	defer w.steps.Store(nil)
	if err := w.sandbox.Install(ctx, libraries, nil); err != nil || w.kernel == nil {
		return false, err
	}
	if w.language.Name == "python" {
		// It asks for what is there already, and learns where that is.
		cell, err := w.kernel.Run(ctx, "%pip install -q "+strings.Join(libraries, " "), nil)
		if err != nil || cell.OK() {
			return false, err
		}
	}
	return w.used.Load(), w.kernel.Restart(ctx)
}
