package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
)

// A containerEngine is one engine, as its own command and the library reach it.
type containerEngine struct {
	name    string
	command []string // up to its sub-command
	remove  []string // the sub-command that removes a container with no grace
	client  *client.Client
	backend backend.Backend
	image   string // of the containers and of the sandboxes alike
}

// newDocker connects to the engine that the docker command uses.
func newDocker(ctx context.Context, image string) (*containerEngine, error) {
	c, err := docker.NewClient(nil)
	if err != nil {
		return nil, err
	}
	b, err := docker.New(&docker.Options{Client: c})
	return newEngine(ctx, &containerEngine{name: docker.Name, command: []string{"docker"}, remove: []string{"rm", "-f"},
		client: c, backend: b, image: image}, err)
}

// newPodman connects to the service that CONTAINER_HOST names.
func newPodman(ctx context.Context, image string) (*containerEngine, error) {
	c, err := podman.NewClient(nil)
	if err != nil {
		return nil, err
	}
	b, err := podman.New(&podman.Options{Client: c})
	return newEngine(ctx, &containerEngine{name: podman.Name, command: []string{"podman", "--remote"}, remove: []string{"rm", "-f", "-t", "0"},
		client: c, backend: b, image: image}, err)
}

// newEngine checks that all is there that will be measured.
func newEngine(ctx context.Context, e *containerEngine, err error) (*containerEngine, error) {
	if err == nil {
		_, err = e.client.Ping(ctx, client.PingOptions{})
	}
	if err == nil {
		_, err = e.client.ImageInspect(ctx, e.image)
	}
	if err == nil {
		_, err = exec.LookPath(e.command[0])
	}
	if err != nil {
		return nil, errors.Join(err, e.client.Close())
	}
	return e, nil
}

func (e *containerEngine) close() error { return e.client.Close() }

// argv is the engine's own command with some arguments.
func (e *containerEngine) argv(args ...string) []string { return slices.Concat(e.command, args) }

// run executes the engine's own command; what it prints goes nowhere.
func (e *containerEngine) run(ctx context.Context, args ...string) error {
	argv := e.argv(args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv[:min(len(argv), 4)], " "), err, said.String())
	}
	return nil
}

// timed is a contender of the engine's own command.
func (e *containerEngine) timed(name string, args ...string) contender {
	return timed(name, func(ctx context.Context) error { return e.run(ctx, args...) })
}

// shell is a container of the engine's own, for its other commands to work on.
func (e *containerEngine) shell(ctx context.Context) (name string, remove func() error, err error) {
	name = fmt.Sprintf("llmsandbox-bench-%d", os.Getpid())
	err = e.run(ctx, "run", "-d", "--network", "none", "--name", name, e.image, "python3", "-c", "import time; time.sleep(3600)")
	return name, func() error { return e.run(context.WithoutCancel(ctx), slices.Concat(e.remove, []string{name})...) }, err
}

// ownLabel is by which the sandboxes of this process are found on the engine. Of those
// that are opened once for a whole section it is keptLabel.
var (
	ownLabel  = fmt.Sprint("bench-", os.Getpid())
	keptLabel = fmt.Sprint("bench-kept-", os.Getpid())
)

// open opens a sandbox with the default limits, for one turn.
func (e *containerEngine) open(ctx context.Context) (*llmsandbox.Sandbox, error) {
	return e.openWith(ctx, ownLabel, llmsandbox.Limits{})
}

// keep opens a sandbox for measuring what goes on in it.
func (e *containerEngine) keep(ctx context.Context) (*llmsandbox.Sandbox, error) {
	return e.openWith(ctx, keptLabel, free)
}

// free lifts the limits that would be measured instead.
var free = llmsandbox.Limits{CPUs: llmsandbox.Unlimited, Output: llmsandbox.Unlimited, Memory: 2 << 30}

func (e *containerEngine) openWith(ctx context.Context, label string, l llmsandbox.Limits) (*llmsandbox.Sandbox, error) {
	return llmsandbox.Open(ctx, &llmsandbox.Options{
		Backend: e.backend, Image: e.image, BestEffort: true, Labels: map[string]string{label: ""}, Limits: l,
	})

}

// settle waits until the engine has removed what closed sandboxes have left to it. It
// goes on after Close, and would slow down the next contender.
func (e *containerEngine) settle(ctx context.Context) error {
	res, err := e.client.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", fmt.Sprintf(`llmsandbox.labels={%q:""}`, ownLabel)),
	})
	if err != nil {
		return err
	}
	for _, c := range res.Items {
		wait := e.client.ContainerWait(ctx, c.ID, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		select {
		case <-wait.Result:
		case err := <-wait.Error:
			if !errdefs.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// settled is a contender whose sandbox's removal does not count.
func (e *containerEngine) settled(name string, do func(context.Context) error) contender {
	return contender{name, func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := do(ctx)
		d := time.Since(start)
		return d, errors.Join(err, e.settle(ctx))
	}}
}

// sections are what is measured on an engine.
func (e *containerEngine) sections() []section {
	return []section{
		{e.name + ": one-shot", e.oneShots},
		{e.name + ": run in an open sandbox", e.openRuns},
		{e.name + ": output", e.outputs},
		{e.name + ": files", e.files},
		{e.name + ": pool", e.pools},
		{e.name + ": forked runs and kernels", e.forks},
	}
}

// engineRounds is how often what an engine takes part in is done: it takes some ten
// times as long as a sandbox without one.
func engineRounds(rounds int) int { return max(rounds*3/8, 3) }

// whole is the life of a sandbox with one run in it.
func (e *containerEngine) whole(ctx context.Context) error {
	sb, err := e.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(ok(sb.Run(ctx, one, nil)), sb.Close())
}

func (e *containerEngine) oneShots(ctx context.Context, all *env, rounds int) error {
	ephemeral := e.name + " run --rm"
	name := fmt.Sprintf("llmsandbox-bench-%d", os.Getpid())
	var sb *llmsandbox.Sandbox
	t, err := measure(ctx, engineRounds(rounds),
		e.timed(ephemeral, "run", "--rm", "--network", "none", e.image, "python3", "-c", one),
		e.settled("Open+Run+Close", e.whole),
		timed("  until its container is gone, too", func(ctx context.Context) error { return errors.Join(e.whole(ctx), e.settle(ctx)) }),
		e.settled("llmsandbox run -c", func(ctx context.Context) error {
			_, err := program("", all.command, "run", "--backend", e.name, "--image", e.image, "--label", ownLabel+"=", "-l", "python", "-c", one).do(ctx)
			return err
		}),
		timed(e.name+" create, start", func(ctx context.Context) error {
			if err := e.run(ctx, "create", "--network", "none", "--name", name, e.image, "python3", "-c", "import time; time.sleep(3600)"); err != nil {
				return err
			}
			return e.run(ctx, "start", name)
		}),
		e.timed(e.name+" rm -f", slices.Concat(e.remove, []string{name})...),
		timed("Open", func(ctx context.Context) (err error) { sb, err = e.open(ctx); return err }),
		contender{"Close", func(ctx context.Context) (time.Duration, error) {
			if err := ok(sb.Run(ctx, one, nil)); err != nil {
				return 0, errors.Join(err, sb.Close())
			}
			return e.settled("", func(context.Context) error { return sb.Close() }).do(ctx)
		}})
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("Open+Run+Close as a ratio to "+ephemeral, 1.2, t.ratio("Open+Run+Close", ephemeral))
	aimAtMost("Close as a ratio to "+e.name+" rm -f", 0.5, t.ratio("Close", e.name+" rm -f"))
	return nil
}

func (e *containerEngine) openRuns(ctx context.Context, all *env, rounds int) (err error) {
	sb, err := e.keep(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	name, remove, err := e.shell(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	theirs, ours := e.name+" exec", "llmsandbox exec"
	t, err := all.runsIn(ctx, rounds, sb, 5,
		e.timed(theirs, "exec", name, "python3", "-c", one), program(ours, all.command, "exec", "--backend", e.name, sb.ID(), "python3", "-c", one),
		e.timed(theirs+" /bin/true", "exec", name, "/bin/true"), program(ours+" /bin/true", all.command, "exec", "--backend", e.name, sb.ID(), "/bin/true"),
		timed("Attach+Exec+Close /bin/true", func(ctx context.Context) error {
			attached, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: e.backend})
			if err != nil {
				return err
			}
			return errors.Join(ok(attached.Exec(ctx, []string{"/bin/true"}, nil)), attached.Close())
		}))
	if err != nil {
		return err
	}
	for _, argv := range []string{"", " /bin/true"} {
		aimAtMost(ours+argv+" as a ratio to "+theirs, 0.8, t.ratio(ours+argv, theirs+argv))
	}
	return nil
}

func (e *containerEngine) outputs(ctx context.Context, _ *env, rounds int) (err error) {
	const code = "import os\nb = b'x' * (1 << 20)\nfor i in range(40): os.write(1, b)"
	name, remove, err := e.shell(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	open, err := e.keep(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	toWriter := &llmsandbox.RunOptions{Stdout: io.Discard}
	return compare(ctx, max(rounds/10, 3),
		e.timed("40 MB from "+e.name+" run --rm to a pipe", "run", "--rm", "--network", "none", e.image, "python3", "-c", code),
		e.settled("40 MB through Open+Run+Close to a writer", func(ctx context.Context) error {
			sb, err := e.openWith(ctx, ownLabel, free)
			if err != nil {
				return err
			}
			return errors.Join(ok(sb.Run(ctx, code, toWriter)), sb.Close())
		}),
		e.timed("40 MB from "+e.name+" exec to a pipe", "exec", name, "python3", "-c", code),
		timed("40 MB through Run to a writer", func(ctx context.Context) error { return ok(open.Run(ctx, code, toWriter)) }),
	)
}

func (e *containerEngine) files(ctx context.Context, all *env, rounds int) (err error) {
	name, remove, err := e.shell(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	sb, err := e.keep(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	from, to := filepath.Join(all.dir, "100mb"), filepath.Join(all.dir, "back")
	if err := os.WriteFile(from, make([]byte, 100<<20), 0o600); err != nil {
		return err
	}
	// The engine's copy goes to the container's disk, since it cannot reach a tmpfs.
	return compare(ctx, max(rounds/8, 3),
		e.timed("100 MB in by "+e.name+" cp", "cp", from, name+":/100mb"),
		timed("100 MB in by CopyIn", func(ctx context.Context) error { _, err := sb.CopyIn(ctx, from, "/sandbox/100mb"); return err }),
		e.timed("100 MB out by "+e.name+" cp", "cp", name+":/100mb", to),
		timed("100 MB out by CopyOut", func(ctx context.Context) error { _, err := sb.CopyOut(ctx, "/sandbox/100mb", to); return err }),
	)
}
