package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// errNoKernel is of a kernel that there is not.
var errNoKernel = errclass.Of(fs.ErrNotExist, errors.New("there is no such kernel: it has ended, or never was"))

// OpenKernel opens a kernel in a sandbox of a project. The service keeps it: callers do not close it.
func (s *Service) OpenKernel(ctx context.Context, project, id, language string, opts *llmsandbox.KernelOptions) (*llmsandbox.Kernel, error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, err
	}
	k, err := h.sandbox.Kernel(ctx, language, opts)
	if err != nil {
		return nil, err
	}
	h.kernelsMu.Lock()
	defer h.kernelsMu.Unlock()
	if h.kernels == nil {
		h.kernels = map[string]*llmsandbox.Kernel{}
	}
	h.kernels[k.Info().ID] = k
	return k, nil
}

// Kernel returns a kernel of a project's sandbox, which the service keeps. It fails with fs.ErrNotExist.
func (s *Service) Kernel(ctx context.Context, project, id, kernel string) (*llmsandbox.Kernel, error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, err
	}
	// Of two that attach at the same time, the second would take the kernel from the first.
	h.kernelsMu.Lock()
	defer h.kernelsMu.Unlock()
	if k := h.kernels[kernel]; k != nil {
		return k, nil
	}
	k, err := h.sandbox.AttachKernel(ctx, kernel, nil, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoKernel
	case err != nil:
		return nil, err
	}
	if h.kernels == nil {
		h.kernels = map[string]*llmsandbox.Kernel{}
	}
	h.kernels[kernel] = k
	return k, nil
}

// CloseKernel ends a kernel with all that it has started.
func (s *Service) CloseKernel(ctx context.Context, project, id, kernel string) error {
	k, err := s.Kernel(ctx, project, id, kernel)
	if err != nil {
		return err
	}
	if h, err := s.get(ctx, project, id); err == nil {
		h.kernelsMu.Lock()
		delete(h.kernels, kernel)
		h.kernelsMu.Unlock()
	}
	return k.Close()
}

// detach lets kernels of a sandbox that lives on go on without the service, once the cells that run have ended.
func (h *handle) detach(ctx context.Context) error {
	h.kernelsMu.Lock()
	defer h.kernelsMu.Unlock()
	var errs []error
	for id, k := range h.kernels {
		if err := k.Detach(ctx); err != nil && !errors.Is(err, llmsandbox.ErrKernelClosed) {
			errs = append(errs, fmt.Errorf("let go of kernel %s: %w", id, err))
		}
	}
	h.kernels = nil
	return errors.Join(errs...)
}
