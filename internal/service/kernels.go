package service

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// errNoKernel is of a kernel that there is not.
var errNoKernel = errclass.Of(llmsandbox.ErrKernelClosed, errors.New("there is no such kernel: it has ended, or never was"))

// A heldKernel is a kernel that requests use. Where the sandbox outlives the service, its kernel is let go of when no request uses it any more, since
// a kernel that was not let go of ends with its handle.
type heldKernel struct {
	*llmsandbox.Kernel
	users int
}

// detachTime bounds how long it may take to let go of a kernel in which no cell runs.
const detachTime = 10 * time.Second

// OpenKernel opens a kernel in a sandbox of a project. The caller calls release when it does not use it any more.
func (s *Service) OpenKernel(ctx context.Context, project, id, language string, opts *llmsandbox.KernelOptions) (k *llmsandbox.Kernel, release func(), err error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, nil, err
	}
	if k, err = h.sandbox.Kernel(ctx, language, opts); err != nil {
		return nil, nil, err
	}
	h.kernelsMu.Lock()
	defer h.kernelsMu.Unlock()
	return s.hold(h, &heldKernel{Kernel: k})
}

// Kernel returns a kernel of a project's sandbox. The caller calls release when it does not use it any more. It fails with fs.ErrNotExist.
func (s *Service) Kernel(ctx context.Context, project, id, kernel string) (k *llmsandbox.Kernel, release func(), err error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, nil, err
	}
	// Of two that attach at the same time, the second would take the kernel from the first.
	h.kernelsMu.Lock()
	defer h.kernelsMu.Unlock()
	held := h.kernels[kernel]
	if held == nil {
		k, err := h.sandbox.AttachKernel(ctx, kernel, nil, nil)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, errNoKernel
		case err != nil:
			return nil, nil, err
		}
		held = &heldKernel{Kernel: k}
	}
	return s.hold(h, held)
}

// hold counts one more user. The caller holds kernelsMu.
func (s *Service) hold(h *handle, k *heldKernel) (*llmsandbox.Kernel, func(), error) {
	id := k.Info().ID
	if h.kernels == nil {
		h.kernels = map[string]*heldKernel{}
	}
	h.kernels[id] = k
	k.users++
	return k.Kernel, func() {
		h.kernelsMu.Lock()
		defer h.kernelsMu.Unlock()
		if k.users--; k.users > 0 || h.kernels[id] != k || s.cfg.Supervisor == nil {
			return
		}
		delete(h.kernels, id)
		s.letGo(h, k)
	}, nil
}

// letGo lets a kernel go on without the service. The caller holds kernelsMu.
func (s *Service) letGo(h *handle, k *heldKernel) {
	ctx, cancel := context.WithTimeout(context.Background(), detachTime)
	defer cancel()
	if err := k.Detach(ctx); err != nil && !errors.Is(err, llmsandbox.ErrKernelClosed) && h.lives() {
		s.cfg.Log.Warn("a kernel could not be let go of: it ends with this server", "sandbox", h.sandbox.ID(), "kernel", k.Info().ID, "error", err)
	}
}

// CloseKernel ends a kernel with all that it has started.
func (s *Service) CloseKernel(ctx context.Context, project, id, kernel string) error {
	k, release, err := s.Kernel(ctx, project, id, kernel)
	if err != nil {
		return err
	}
	defer release()
	if h, err := s.get(ctx, project, id); err == nil {
		h.kernelsMu.Lock()
		delete(h.kernels, kernel)
		h.kernelsMu.Unlock()
	}
	return k.Close()
}

// letGoAll lets go of the kernels that requests still use, which are being ended.
func (s *Service) letGoAll(h *handle) {
	h.kernelsMu.Lock()
	defer h.kernelsMu.Unlock()
	for _, k := range h.kernels {
		s.letGo(h, k)
	}
	h.kernels = nil
}
