package llmsandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// Kernels lists the kernels whose process runs in the sandbox, those of other handles too.
// The info has no Version and Flavor.
func (s *Sandbox) Kernels(ctx context.Context) ([]KernelInfo, error) {
	return agentlink.Call(ctx, s.link, "list the kernels", func(c *agentclient.Client) ([]KernelInfo, error) {
		processes, err := c.Processes(ctx)
		var infos []KernelInfo
		for _, p := range processes {
			if tag, ok := parseKernelTag(p.Tag); ok && p.Running {
				infos = append(infos, KernelInfo{ID: tag.kernel, Language: tag.language})
			}
		}
		return infos, err
	})
}

// AttachKernel takes over a kernel of the sandbox by its id, with all that its cells have
// defined: one that was detached, or whose handle is another one's or is gone. It fails with
// fs.ErrNotExist when there is none. A handle that has the kernel until then gets ErrDetached.
//
// When a cell runs just then, its output and its requests for input go on as running says
// (nil: without input), its timeout counts anew (0: none), and [Kernel.Wait] returns it.
//
// opts mean what they do in [Sandbox.Kernel], most of them for a process that is started
// later. It has no Libraries: use [Sandbox.Install].
func (s *Sandbox) AttachKernel(ctx context.Context, id string, opts *KernelOptions, running *CellOptions) (*Kernel, error) {
	if opts != nil && len(opts.Libraries) > 0 {
		return nil, fmt.Errorf("attach to kernel %s: %w: it runs, and finds no libraries that are installed now: use Install, then Restart", id, ErrInvalid)
	}
	k, err := s.attachKernel(ctx, id, opts, running)
	if err != nil {
		return nil, fmt.Errorf("attach to kernel %s: %w", id, err)
	}
	return k, nil
}

func (s *Sandbox) attachKernel(ctx context.Context, id string, opts *KernelOptions, running *CellOptions) (*Kernel, error) {
	if err := s.link.Alive(); err != nil {
		return nil, err
	}
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := client.Processes(ctx)
	if err != nil {
		return nil, s.link.Explain(ctx, err)
	}
	var tag kernelTag
	at := slices.IndexFunc(processes, func(p agentproto.ProcessInfo) bool {
		t, ok := parseKernelTag(p.Tag)
		if ok = ok && p.Running && t.kernel == id; ok {
			tag = t
		}
		return ok
	})
	if at < 0 {
		return nil, fmt.Errorf("%w: see Kernels for those there are", fs.ErrNotExist)
	}
	l, err := all.Get(tag.language)
	if err != nil {
		return nil, err
	}
	k, err := s.newKernel(l, opts)
	if err != nil {
		return nil, err
	}
	k.id, k.info = id, KernelInfo{ID: id, Language: l.Name}
	c, err := k.newCell(running, 0)
	if err != nil {
		return nil, err
	}
	d := k.newDriver(ctx, client, tag)
	d.adopted = true
	if tag.artifacts {
		d.collection = s.newCollection(l, tag.run, k.artifacts, "", func(string) string { return "" })
	}
	d.process, err = client.Attach(ctx, agentproto.AttachRequest{
		ID: processes[at].ID, OutOffset: agentproto.FirstKept, ErrOffset: agentproto.FirstKept, ControlOffset: agentproto.FirstKept,
	})
	if err != nil {
		return nil, s.link.Explain(ctx, err)
	}
	k.driver = d
	if err := s.kernels.add(k); err != nil {
		d.process.Detach()
		return nil, err
	}
	k.readDescription(ctx, client, tag)
	k.resumed = make(chan struct{})
	go k.resume(c, d)
	<-c.begun
	return k, nil
}

// resume sees the cell to its end that runs when the kernel is attached to, if one does, and
// then gives the turn.
func (k *Kernel) resume(c *cellRun, d *driver) {
	defer k.give()
	defer close(k.resumed)
	c.resumes = true
	c.driver = d
	if cell, err := c.run(context.Background(), ""); !c.idle {
		k.attached, k.attachedErr = cell, err
	}
}

// Wait returns what became of the cell that ran when [Sandbox.AttachKernel] took the kernel
// over, once it has ended, as [Kernel.Run] does; nil when none did. A cell that had ended just
// before, so that its end may not have reached the handle that ran it, is returned as well. Its output
// begins where the kernel was attached to. When ctx ends before, the cell goes on.
func (k *Kernel) Wait(ctx context.Context) (*Cell, error) {
	if k.resumed == nil {
		return nil, nil
	}
	select {
	case <-k.resumed:
		return k.attached, k.attachedErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Detach lets the kernel go on without this handle, for [Sandbox.AttachKernel], once the cell
// that runs has ended. The handle then is closed. What background processes have written since
// the last cell is dropped.
func (k *Kernel) Detach(ctx context.Context) error {
	d, err := k.take(ctx)
	if err != nil {
		return fmt.Errorf("detach from the %s kernel: %w", k.language.Title, err)
	}
	k.writeDescription(ctx, d)
	k.leave()
	d.process.Detach()
	<-d.gone
	return nil
}

// leave closes the handle and lets the process live.
func (k *Kernel) leave() {
	k.mu.Lock()
	first := !k.closed
	k.closed, k.detached = true, true
	k.mu.Unlock()
	if first {
		close(k.stopped)
	}
	k.sandbox.kernels.remove(k)
}

// taken tells, once the driver is gone, that its process goes on without this handle.
func (d *driver) taken() bool { return detached(d.lost) }

// detached tells whether err is what a stream of a process ends with that this handle, or
// another one by attaching to it, has left.
func detached(err error) bool {
	return agentlink.Code(err) == agentproto.CodeCancelled || errors.Is(err, agentclient.ErrDetached)
}

// A kernelTag is the agent's tag of a kernel's process, which programs do not see.
type kernelTag struct {
	kernel   string // its id, which a process that is started in its place gets as well
	language string
	run      string // names the process's files
	mark     string // of its cells
	// artifacts tells that they are caught.
	artifacts bool
}

const kernelTagBegin = "kernel"

func (t kernelTag) String() string {
	caught := "-"
	if t.artifacts {
		caught = "artifacts"
	}
	return strings.Join([]string{kernelTagBegin, t.kernel, t.language, t.run, t.mark, caught}, " ")
}

func parseKernelTag(text string) (kernelTag, bool) {
	f := strings.Split(text, " ")
	if len(f) != 6 || f[0] != kernelTagBegin || slices.ContainsFunc(f[1:5], func(s string) bool { return !validID(s) }) {
		return kernelTag{}, false
	}
	return kernelTag{kernel: f[1], language: f[2], run: f[3], mark: f[4], artifacts: f[5] == "artifacts"}, true
}

// maxDescription bounds what is read of a kernel's description: code can write it.
const maxDescription = 4 << 10

// descriptionFile has the KernelInfo of a process whose handle has detached.
func (k *Kernel) descriptionFile(run string) string {
	return path.Join(k.sandbox.machine.Guest().TempDir, ".llmsandbox-kernel-"+run)
}

// writeDescription leaves a description for the next handle, which can do without.
func (k *Kernel) writeDescription(ctx context.Context, d *driver) {
	client, err := k.sandbox.link.Client(ctx)
	if err == nil {
		text, _ := json.Marshal(k.Info()) // strings always have a JSON form
		_, err = client.WriteFile(ctx, k.descriptionFile(d.run), bytes.NewReader(text), agentclient.WriteOptions{Mode: 0o600, Create: true})
	}
	k.sandbox.link.Warn("a kernel's description could not be written", err)
}

// readDescription reads what writeDescription has written.
func (k *Kernel) readDescription(ctx context.Context, client *agentclient.Client, tag kernelTag) {
	text, err := client.ReadAll(ctx, k.descriptionFile(tag.run), maxDescription)
	var info KernelInfo
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		return // no handle has detached, or code has changed it
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.info.Version, k.info.Flavor = info.Version, info.Flavor
}

// probe asks what a driver answers at once where no cell runs. It may get lost: a cell that waits for
// input reads it in place of an answer.
func (d *driver) probe() kernel.Request {
	d.probing = d.last
	return kernel.Request{Op: kernel.OpComplete, ID: d.last, Cursor: new(int)}
}

// probed tells that an event is the answer to the probe, which may come late.
func (d *driver) probed(e kernel.Event) bool {
	return e.Event == kernel.EventReply && e.ID == d.probing && d.probing != 0
}

// giveBack lets the next cell have what came while none ran.
func (c *cellRun) giveBack() {
	for _, s := range []struct {
		from *capture
		to   *kernel.Splitter
	}{{c.out, &c.driver.out}, {c.err, &c.driver.err}} {
		s.to.End()
		if s.from.forward != nil {
			continue // it has had it
		}
		for _, piece := range s.from.pieces {
			_, _ = s.to.Write(piece) // it does not fail
		}
	}
}
