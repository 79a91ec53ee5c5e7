package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// started returns the kernel's driver, having started it where there is none that
// lives. The caller has the turn.
func (k *Kernel) started(ctx context.Context) (*driver, error) {
	k.mu.Lock()
	d := k.driver
	k.mu.Unlock()
	if d != nil {
		select {
		case <-d.gone:
			k.bury(ctx, d)
		default:
			return d, nil
		}
	}
	d, err := k.start(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.driver = d
	closed := k.closed
	k.mu.Unlock()
	if closed {
		d.kill()
		<-d.gone
		return nil, k.alive()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyGrace, fmt.Errorf("it was not ready after %v", readyGrace))
	defer cancel()
	if err := k.ready(ctx, d); err != nil {
		d.kill()
		<-d.gone
		return nil, err
	}
	return d, nil
}

// bury notes that a driver has ended, and ends one whose stream was lost: nobody can
// make use of its state any more. The caller has the turn.
func (k *Kernel) bury(ctx context.Context, d *driver) {
	k.unsaid = k.unsaid || !d.told
	d.told = true
	if d.lost == nil {
		return
	}
	client, err := k.sandbox.link.get(ctx)
	if err == nil && client.Info().Instance == d.instance {
		d.kill()
	}
}

// start starts a driver's process.
func (k *Kernel) start(ctx context.Context) (*driver, error) {
	s := k.sandbox
	client, err := s.link.get(ctx)
	if err != nil {
		return nil, err
	}
	for tried := 0; ; tried++ {
		req, caught, err := k.request(ctx)
		if err != nil {
			return nil, err
		}
		d := &driver{
			collection: caught, instance: client.Info().Instance,
			sandbox: s, encoded: k.language.Kernel.Base64, events: make(chan kernel.Event),
			gone: make(chan struct{}), ooms: watchOOM(ctx, s.machine),
		}
		s.dropAhead(ctx)
		d.process, err = client.Start(ctx, req)
		if err == nil {
			go d.follow()
			return d, nil
		}
		var ae *agentproto.Error
		if !errors.As(err, &ae) || ae.Code != agentproto.CodeNotFound {
			return nil, s.explain(ctx, err)
		}
		if tried == maxProgramAlternatives || !s.programs.reject(req.Argv[0]) {
			return nil, fmt.Errorf("%s is not in this sandbox: %w: %s", req.Argv[0], ErrToolchain, k.install())
		}
	}
}

// request is what starts a driver.
func (k *Kernel) request(ctx context.Context) (req agentproto.StartRequest, caught *collection, err error) {
	s := k.sandbox
	env, err := s.libraryEnviron(ctx, k.run.environ)
	if err != nil {
		return req, nil, err
	}
	libraries, err := s.libraryFolders(ctx, k.language.Name)
	if err != nil {
		return req, nil, err
	}
	guest := s.machine.Guest()
	id := s.runs.next()
	dir := path.Join(guest.Workdir, ".kernel-"+id)
	plan, err := k.language.Kernel.Plan(language.KernelSource{
		ID: id, Dir: dir, Workdir: guest.Workdir, TempDir: guest.TempDir, Plain: k.opts.Plain,
		Libraries:   libraries,
		MemoryLimit: s.limits.Memory, CPULimit: s.limits.CPUs, Program: s.programs.choose,
		Proxy: s.proxyAddress(), TrustStore: s.trustStore(),
	})
	if err != nil {
		return req, nil, fmt.Errorf("prepare the %s kernel: %w", k.language.Title, err)
	}
	step := plan.Steps[0]
	env = environ.Override(env, step.Env)
	if !k.artifacts.Off {
		caught = s.newCollection(k.language, id, k.artifacts, "", func(name string) string { return environ.Value(env, name) })
		plan.Files = append(plan.Files, caught.files()...)
		env = environ.Override(env, caught.env())
	}
	req = agentproto.StartRequest{
		Argv: step.Argv, Env: env,
		Dir: k.run.dir, Tag: "kernel-" + k.language.Name, Control: true,
		Files: inlineFiles(plan.Files), RemoveAfter: append(plan.Cleanup, dir),
	}
	if step.Dir != "" {
		req.Dir = step.Dir
	}
	return req, caught, nil
}

func (k *Kernel) install() string {
	if k.language.Kernel.Install != "" {
		return k.language.Kernel.Install
	}
	return k.language.Install
}
