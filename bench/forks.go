package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/pool"
)

// stack is what a short data analysis imports, of the system's Python.
const (
	stack        = "import numpy, pandas, matplotlib.pyplot"
	systemPython = "/usr/bin/python3"
)

var stackModules = []string{"numpy", "pandas", "matplotlib.pyplot"}

// stackOptions are of a sandbox with the stack; false: this machine has not got it.
func stackOptions(ctx context.Context) (llmsandbox.Options, bool) {
	if exec.CommandContext(ctx, systemPython, "-c", stack).Run() != nil {
		fmt.Println("the system's Python cannot", stack+": left out")
		return llmsandbox.Options{}, false
	}
	return llmsandbox.Options{BestEffort: true, Limits: llmsandbox.Limits{Memory: 1 << 30}, Env: map[string]string{"PATH": "/usr/bin:/bin"}}, true
}

// forks measures runs and kernels in an open sandbox that are forked from an interpreter which has
// imported modules.
func forks(ctx context.Context, e *env, rounds int) error {
	plain, err := llmsandbox.Open(ctx, &llmsandbox.Options{BestEffort: true})
	if err != nil {
		return err
	}
	defer plain.Close()
	if err := plain.Prepare(ctx); err != nil {
		return err
	}
	if err := compare(ctx, rounds, program("python3 -c, bare", e.python, "-c", one),
		timed("Run in an open sandbox, forked", func(ctx context.Context) error { return ok(plain.Run(ctx, one, nil)) })); err != nil {
		return err
	}
	o, has := stackOptions(ctx)
	if !has {
		return nil
	}
	return forkRounds(ctx, rounds, o, program(stack+", bare", systemPython, "-c", stack))
}

func (e *containerEngine) forks(ctx context.Context, _ *env, rounds int) error {
	o, has := stackOptions(ctx)
	if !has {
		return nil
	}
	o.Env, o.Backend, o.Image, o.Labels = nil, e.backend, e.image, map[string]string{keptLabel: ""}
	return forkRounds(ctx, engineRounds(rounds), o, program(stack+", bare", systemPython, "-c", stack))
}

func (c *podCluster) forks(ctx context.Context, _ *env, rounds int) error {
	o, has := stackOptions(ctx)
	if !has {
		return nil
	}
	o.Env, o.Backend, o.Image = nil, c.backend, c.image
	return forkRounds(ctx, engineRounds(rounds), o, program(stack+", bare", systemPython, "-c", stack))
}

func forkRounds(ctx context.Context, rounds int, o llmsandbox.Options, bare contender) error {
	o.Imports = stackModules
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return err
	}
	defer sb.Close()
	return compare(ctx, rounds, bare,
		timed("Run in an open sandbox, forked", func(ctx context.Context) error { return ok(sb.Run(ctx, stack, nil)) }),
		timed("a kernel opened, its first cell, closed", func(ctx context.Context) error {
			k, err := sb.Kernel(ctx, "python", &llmsandbox.KernelOptions{Plain: true})
			if err != nil {
				return err
			}
			return errors.Join(cellOK(k.Run(ctx, stack, nil)), k.Close())
		}))
}

// zygotes measures new sandboxes into which an interpreter is forked.
func zygotes(ctx context.Context, e *env, rounds int) error {
	if err := zygoteRounds(ctx, rounds, llmsandbox.Options{BestEffort: true}, one, program("python3 -c, bare", e.python, "-c", one)); err != nil {
		return err
	}
	o, has := stackOptions(ctx)
	if !has {
		return nil
	}
	o.Imports = stackModules
	return zygoteRounds(ctx, rounds, o, stack, program(stack+", bare", systemPython, "-c", stack))
}

func zygoteRounds(ctx context.Context, rounds int, o llmsandbox.Options, code string, bare contender) (err error) {
	z, err := llmsandbox.NewZygote(ctx, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	whole := func(open func(context.Context) (*llmsandbox.Sandbox, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			sb, err := open(ctx)
			if err != nil {
				return err
			}
			return errors.Join(ok(sb.Run(ctx, code, nil)), sb.Close())
		}
	}
	plain := o
	plain.Imports = nil
	if err := compare(ctx, rounds, bare,
		timed("Open+Run+Close", whole(func(ctx context.Context) (*llmsandbox.Sandbox, error) { return llmsandbox.Open(ctx, &plain) })),
		timed("Open+Run+Close from a zygote", whole(z.Open))); err != nil {
		return err
	}
	return poolRounds(ctx, rounds, pool.Config{Options: o, Zygote: true}, code, bare)
}

// crowd has many ask a pool of warm sandboxes at once, and measures how long each waits for its result.
func crowd(ctx context.Context, _ *env, rounds int) error {
	return errors.Join(crowdOf(ctx, rounds, "a pool that has them", false), crowdOf(ctx, rounds, "one with a zygote", true))
}

func crowdOf(ctx context.Context, rounds int, name string, zygote bool) error {
	const n = 100
	ready, idle := make(chan struct{}, 1), 0
	var counting sync.Mutex
	p, err := pool.New(&pool.Config{
		Options: llmsandbox.Options{BestEffort: true}, Max: n, Min: n, Prepare: true, Zygote: zygote, RefillInterval: time.Millisecond,
		Hooks: []pool.Hooks{{Changed: func(_ pool.Key, from, to pool.State) {
			counting.Lock()
			defer counting.Unlock()
			if from == pool.Idle {
				idle--
			}
			if to == pool.Idle {
				idle++
			}
			if idle == n {
				select {
				case ready <- struct{}{}:
				default:
				}
			}
		}}},
	})
	if err != nil {
		return err
	}
	defer p.Close(context.WithoutCancel(ctx))
	var took []time.Duration
	for range max(rounds/8, 1) {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		var all sync.WaitGroup
		times, errs := make([]time.Duration, n), make([]error, n)
		start := time.Now()
		for i := range n {
			all.Go(func() {
				res, err := p.Run(ctx, one, nil)
				times[i], errs[i] = time.Since(start), ok(res, err)
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		took = append(took, times...)
	}
	slices.Sort(took)
	fmt.Printf("%d asked for at once from %s, %d times: result after %v (median), %v (p95)\n",
		n, name, len(took)/n, took[len(took)/2].Round(time.Millisecond), took[len(took)*95/100].Round(time.Millisecond))
	return nil
}

// warmRuns is the command with a sandbox that waits for it, which is made ready outside of what is timed. The
// state directory is its own; end ends what still waits there.
func (e *env) warmRuns(ctx context.Context) (c contender, end func() error, err error) {
	state, err := os.MkdirTemp(e.dir, "warm-")
	if err != nil {
		return c, nil, err
	}
	command := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, e.command, args...)
		cmd.Env = append(os.Environ(), "LLMSANDBOX_STATE_DIR="+state)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return out, err
	}
	ready := func() error {
		for {
			out, err := command("ls")
			if err != nil || bytes.Contains(out, []byte(" warm ")) {
				return err
			}
		}
	}
	run := []string{"run", "--warm", "--json", "-l", "python", "-c", one}
	if _, err = command(run...); err != nil {
		return c, nil, err
	}
	c = contender{"llmsandbox run --warm -c", func(ctx context.Context) (time.Duration, error) {
		if err := ready(); err != nil {
			return 0, err
		}
		start := time.Now()
		out, err := command(run...)
		took := time.Since(start)
		if err == nil && !bytes.Contains(out, []byte(`"warm": true`)) {
			err = fmt.Errorf("no sandbox has waited: %s", out)
		}
		return took, errors.Join(err, ready()) // the next contender does not pay for the next one
	}}
	return c, func() error {
		ids, err := command("ls", "--quiet")
		if err == nil {
			_, err = command(append([]string{"rm"}, strings.Fields(string(ids))...)...)
		}
		return err
	}, nil
}
