package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// A Kernel is an interpreter in a sandbox of the server that keeps its state between cells, as [llmsandbox.Kernel] is. It is safe for concurrent use: cells,
// and what is asked about them, queue in the order in which they come to the server. It lives as long as its sandbox, or until Close; then all fails
// with llmsandbox.ErrKernelClosed.
type Kernel struct {
	sandbox *Sandbox
	info    llmsandbox.KernelInfo

	closed, detached atomic.Bool
}

// Kernel opens a kernel of a language (empty: the sandbox's) as [llmsandbox.Sandbox.Kernel] does. opts may be nil; the API has of them Env, Dir, Libraries
// and Plain.
func (s *Sandbox) Kernel(ctx context.Context, lang string, opts *llmsandbox.KernelOptions) (*Kernel, error) {
	o := cmp.Or(opts, &llmsandbox.KernelOptions{})
	if err := only("KernelOptions", *o, "Env", "Dir", "Libraries", "Plain"); err != nil {
		return nil, err
	}
	body := &apitypes.NewKernel{Language: lang, Env: o.Env, Dir: o.Dir, Libraries: o.Libraries, Plain: o.Plain}
	var made apitypes.Kernel
	if err := s.ask(ctx, &request{method: http.MethodPost, path: "/kernels", body: body, want: http.StatusCreated}, &made); err != nil {
		return nil, fmt.Errorf("open a kernel: %w", err)
	}
	return s.kernel(&made)
}

// kernel is a handle on what the server describes.
func (s *Sandbox) kernel(k *apitypes.Kernel) (*Kernel, error) {
	if !isID(k.ID) {
		return nil, malformed("a kernel has the id %q", cut(k.ID, maxID))
	}
	return &Kernel{sandbox: s, info: llmsandbox.KernelInfo(*k)}, nil
}

// Kernels lists the kernels whose process runs in the sandbox. The info has no Version and Flavor.
func (s *Sandbox) Kernels(ctx context.Context) ([]llmsandbox.KernelInfo, error) {
	var list apitypes.Kernels
	err := s.fact(ctx, "/kernels", &list)
	return apitypes.All(list.Kernels, func(k apitypes.Kernel) llmsandbox.KernelInfo { return llmsandbox.KernelInfo(k) }), err
}

// AttachKernel finds a kernel of the sandbox by its id; others that have it keep it. It fails with fs.ErrNotExist when there is none. The API has
// nothing for opts, nor for a cell that runs just then: opts and running are nil. The kernel's info has no Version and Flavor.
func (s *Sandbox) AttachKernel(ctx context.Context, id string, opts *llmsandbox.KernelOptions, running *llmsandbox.CellOptions) (*Kernel, error) {
	err := cmp.Or(only("KernelOptions", *cmp.Or(opts, &llmsandbox.KernelOptions{})), only("CellOptions", *cmp.Or(running, &llmsandbox.CellOptions{})))
	if err != nil {
		return nil, err
	}
	list, err := s.Kernels(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(i llmsandbox.KernelInfo) bool { return i.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("attach to kernel %q: %w: see Kernels for those there are", id, fs.ErrNotExist)
	}
	return s.kernel(new(apitypes.Kernel(list[at])))
}

// Info describes the kernel.
func (k *Kernel) Info() llmsandbox.KernelInfo { return k.info }

// request is one about the kernel.
func (k *Kernel) request(method, path string) (*request, error) {
	switch {
	case k.detached.Load():
		return nil, fmt.Errorf("kernel %s: %w: use AttachKernel", k.info.ID, llmsandbox.ErrDetached)
	case k.closed.Load():
		return nil, fmt.Errorf("kernel %s: %w", k.info.ID, llmsandbox.ErrKernelClosed)
	}
	return k.sandbox.request(method, "/kernels/"+k.info.ID+path)
}

// call asks the kernel for something; v gets the answer, nil is for what has none.
func (k *Kernel) call(ctx context.Context, method, path string, body, v any) error {
	r, err := k.request(method, path)
	if err != nil {
		return err
	}
	if r.body = body; v == nil {
		r.want = http.StatusNoContent
	}
	return k.sandbox.client.call(ctx, r, v)
}

// Run runs a cell as [llmsandbox.Kernel.Run] does. opts may be nil; the API has no Stdin that is asked for, and no Timeout of Unlimited. Output is as in
// [Sandbox.Run], and so is what comes with an error; when ctx ends, the server interrupts the cell.
func (k *Kernel) Run(ctx context.Context, code string, opts *llmsandbox.CellOptions) (*llmsandbox.Cell, error) {
	o := cmp.Or(opts, &llmsandbox.CellOptions{})
	err := only("CellOptions", *o, "Stdout", "Stderr", "Timeout")
	var seconds float64
	if err == nil {
		seconds, err = timeout("CellOptions.Timeout", o.Timeout)
	}
	var r *request
	if err == nil {
		r, err = k.request(http.MethodPost, "/cells")
	}
	if err != nil {
		return failedCell(llmsandbox.StatusSetupFailed, err)
	}
	r.body = &apitypes.NewCell{Code: code, Timeout: seconds}
	out := forwards{{w: o.Stdout}, {w: o.Stderr}}
	last, err := k.sandbox.client.follow(ctx, r, func(kind llmsandbox.EventKind, text string) bool {
		out.write(string(kind), text)
		return true
	})
	var cell llmsandbox.Cell
	if err == nil {
		err = last.result(&cell)
	}
	switch {
	case err != nil:
		return failedCell(r.failure(err), err)
	case cell.Status == "" || cell.OK() && cell.ExitCode > 0:
		err = malformed("a cell has the status %q and the exit code %d", cut(string(cell.Status), maxLocation), cell.ExitCode)
		return failedCell(llmsandbox.StatusLost, err)
	case cell.Status == llmsandbox.StatusLost:
		err = lost(fmt.Errorf("the server has lost the cell: %s", cell.Reason))
	}
	return &cell, errors.Join(err, out[0].err, out[1].err)
}

func failedCell(status llmsandbox.Status, err error) (*llmsandbox.Cell, error) {
	return &llmsandbox.Cell{Status: status, ExitCode: -1, Reason: err.Error()}, err
}

// Complete completes the code at a cursor, counted in code points.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (llmsandbox.Completion, error) {
	var c apitypes.Completion
	err := k.call(ctx, http.MethodPost, "/complete", &apitypes.Place{Code: code, Cursor: cursor}, &c)
	return llmsandbox.Completion(c), err
}

// Inspect describes what stands at a cursor, counted in code points. It is empty when nothing is known.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor int) (string, error) {
	var about apitypes.Inspection
	err := k.call(ctx, http.MethodPost, "/inspect", &apitypes.Place{Code: code, Cursor: cursor}, &about)
	return about.Text, err
}

// Variables lists what cells have defined.
func (k *Kernel) Variables(ctx context.Context) ([]llmsandbox.Variable, error) {
	var list apitypes.Variables
	err := k.call(ctx, http.MethodGet, "/variables", nil, &list)
	return list.Variables, err
}

// Reset forgets what cells have defined, as [llmsandbox.Kernel.Reset] does.
func (k *Kernel) Reset(ctx context.Context) error {
	return k.call(ctx, http.MethodPost, "/reset", nil, nil)
}

// Interrupt interrupts the cell that runs, if one does; its Run returns what became of it.
func (k *Kernel) Interrupt(ctx context.Context) error {
	return k.call(ctx, http.MethodPost, "/interrupt", nil, nil)
}

// Restart ends the kernel's process, with all that cells have defined or started, and starts a new one.
func (k *Kernel) Restart(ctx context.Context) error {
	return k.call(ctx, http.MethodPost, "/restart", nil, nil)
}

// Detach lets the kernel go on without this handle, all of which fails with llmsandbox.ErrDetached from now on.
func (k *Kernel) Detach(context.Context) error {
	k.detached.Store(true)
	return nil
}

// Close ends the kernel and all it started, unless it was detached; one that has ended already is no error. It takes at most a minute, and may be called more than once.
func (k *Kernel) Close() error {
	if k.detached.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := k.call(ctx, http.MethodDelete, "", nil, nil)
	gone := errors.Is(err, llmsandbox.ErrKernelClosed) || errors.Is(err, llmsandbox.ErrNotFound) || errors.Is(err, llmsandbox.ErrClosed) && k.sandbox.owned
	if err == nil || gone {
		k.closed.Store(true)
		return nil
	}
	return err
}
