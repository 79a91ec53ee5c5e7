package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

const one = "print(1)"

func oneShots(ctx context.Context, e *env, rounds int) (err error) {
	warm, end, err := e.warmRuns(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	all := []contender{
		program("python3 -c, bare", e.python, "-c", one),
		program("llmsandbox run -c", e.command, "run", "-l", "python", "-c", one),
		warm,
		timed("Open+Run+Close", openRunClose(llmsandbox.Options{BestEffort: true}, one)),
		timed("Open+Close", func(ctx context.Context) error {
			sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{BestEffort: true})
			if err != nil {
				return err
			}
			return sb.Close()
		}),
		{"Close", func(ctx context.Context) (time.Duration, error) {
			sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{BestEffort: true})
			if err != nil {
				return 0, err
			}
			if err := ok(sb.Run(ctx, one, nil)); err != nil {
				return 0, errors.Join(err, sb.Close())
			}
			start := time.Now()
			err = sb.Close()
			return time.Since(start), err
		}},
	}
	if e.bwrap != nil {
		all = append(all, program("bwrap --unshare-all", append(e.bwrap, e.python, "-c", one)...))
	}
	if e.docker != nil {
		all = append(all, e.docker.timed("docker run --rm", "run", "--rm", "--network", "none", e.docker.image, "python3", "-c", one))
	}
	return compare(ctx, rounds, all...)
}

func openRunClose(o llmsandbox.Options, code string) func(context.Context) error {
	return func(ctx context.Context) error {
		sb, err := llmsandbox.Open(ctx, &o)
		if err != nil {
			return err
		}
		return errors.Join(ok(sb.Run(ctx, code, nil)), sb.Close())
	}
}

// writableRoots compares with the default what code writes outside of it, too.
func writableRoots(ctx context.Context, _ *env, rounds int) error {
	if os.Geteuid() != 0 {
		fmt.Println("only root has the host's toolchains writable: left out")
		return nil
	}
	writes := func(o llmsandbox.Options, dir string) func(context.Context) error {
		return openRunClose(o, fmt.Sprintf("import os\nos.makedirs(%[1]q)\nfor i in range(1000):\n    with open(%[1]q + '/%%d' %% i, 'w') as f: f.write('x')", dir))
	}
	plain, writable := llmsandbox.Options{BestEffort: true}, llmsandbox.Options{BestEffort: true, WritableRoot: true}
	root, both, sudo := plain, writable, plain
	root.User, both.User, sudo.Sudo = "root", "root", true
	return errors.Join(
		compare(ctx, rounds, timed("Open+Run+Close", openRunClose(plain, one)), timed("with a writable root", openRunClose(writable, one)),
			timed("as root", openRunClose(root, one)), timed("as root of a writable root", openRunClose(both, one)), timed("with sudo", openRunClose(sudo, one))),
		compare(ctx, rounds, timed("1,000 files in /sandbox", writes(plain, "/sandbox/many")), timed("in /usr of a writable root", writes(writable, "/usr/many"))))
}

func openRuns(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	return compare(ctx, rounds,
		program("python3 -c, bare", e.python, "-c", one),
		timed("Run", func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) }),
		program("/bin/true, bare", "/bin/true"),
		timed("Exec /bin/true", func(ctx context.Context) error { return ok(sb.Exec(ctx, []string{"/bin/true"}, nil)) }),
	)
}

func manyAtOnce(ctx context.Context, e *env, rounds int) error {
	const n = 50
	together := func(do func() error) error {
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() { errs[i] = do() })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	bare := program("", e.python, "-c", one)
	rounds = max(rounds/8, 3)
	err := compare(ctx, rounds,
		timed(fmt.Sprintf("%d bare interpreters at once", n), func(ctx context.Context) error {
			return together(func() error { _, err := bare.do(ctx); return err })
		}),
		timed(fmt.Sprintf("%d × Open+Run+Close at once", n), func(ctx context.Context) error {
			return together(func() error {
				return openRunClose(llmsandbox.Options{BestEffort: true}, one)(ctx)
			})
		}))
	if err != nil {
		return err
	}
	start, count := time.Now(), 0
	for time.Since(start) < 3*time.Second {
		sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{BestEffort: true})
		if err != nil {
			return err
		}
		if err := sb.Close(); err != nil {
			return err
		}
		count++
	}
	fmt.Printf("%.0f sandboxes opened and closed per second, one after another\n", float64(count)/time.Since(start).Seconds())
	return nil
}

func idleMemory(ctx context.Context, _ *env, _ int) error {
	if err := idleMemoryOf(ctx, "after one run", open, one); err != nil {
		return err
	}
	o, has := stackOptions(ctx)
	if !has {
		return nil
	}
	o.Imports = stackModules
	if err := idleMemoryOf(ctx, "with "+stack, func(ctx context.Context) (*llmsandbox.Sandbox, error) { return llmsandbox.Open(ctx, &o) }, ""); err != nil {
		return err
	}
	z, err := llmsandbox.NewZygote(ctx, &o)
	if err != nil {
		return err
	}
	return errors.Join(idleMemoryOf(ctx, "the same from a zygote", z.Open, ""), z.Close())
}

// idleMemoryOf measures sandboxes that are idle, after a run of code if there is some.
func idleMemoryOf(ctx context.Context, name string, open func(context.Context) (*llmsandbox.Sandbox, error), code string) error {
	const n = 20
	var sum int64
	known := 0
	for range n {
		sb, err := open(ctx)
		if err != nil {
			return err
		}
		defer sb.Close()
		if code != "" {
			if err := ok(sb.Run(ctx, code, nil)); err != nil {
				return err
			}
		}
		u, err := sb.Usage(ctx)
		if err != nil {
			return err
		}
		if u.MemoryKnown {
			sum += u.Memory
			known++
		}
	}
	if known == 0 {
		fmt.Println("not known here: no memory cgroup")
		return nil
	}
	fmt.Printf("%.1f MiB charged to the sandbox's cgroup %s, mean of %d\n", float64(sum)/float64(known)/(1<<20), name, known)
	return nil
}

// captured compares runs with the capture of artifacts and without it: programs that make
// none, which must not feel it, and one that writes a file.
func captured(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	off := &llmsandbox.ArtifactOptions{Off: true}
	run := func(lang, code string, o *llmsandbox.ArtifactOptions) func(context.Context) error {
		return func(ctx context.Context) error {
			return ok(sb.Run(ctx, code, &llmsandbox.RunOptions{Language: lang, Artifacts: o}))
		}
	}
	err = compare(ctx, rounds,
		timed("Run of bash, no capture", run("bash", "echo 1", off)),
		timed("Run of bash, nothing made", run("bash", "echo 1", nil)),
		timed("Run of bash, a file made", run("bash", "echo 1 > artifacts/made.txt", nil)),
	)
	if err != nil {
		return err
	}
	return compare(ctx, rounds,
		timed("Run of Python, no capture", run("python", one, off)),
		timed("Run of Python, nothing plotted", run("python", one, nil)),
	)
}

// runsIn measures what a run of Python costs in an open sandbox, and how it is entered
// otherwise. aim is what Run may take more than the bare interpreter, in milliseconds.
func (e *env) runsIn(ctx context.Context, rounds int, sb *llmsandbox.Sandbox, aim float64, otherwise ...contender) (*table, error) {
	contenders := append([]contender{
		timed("Exec of the same argv", func(ctx context.Context) error { return ok(sb.Exec(ctx, []string{"python3", "-c", one}, nil)) }),
		timed("Run", func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) }),
		timed("Exec /bin/true", func(ctx context.Context) error { return ok(sb.Exec(ctx, []string{"/bin/true"}, nil)) }),
	}, otherwise...)
	python := e.sameVersion(ctx, sb)
	if python == "" {
		fmt.Println("bare: left out (this machine has no python3 of the version in the image)")
	} else {
		contenders = append([]contender{program("bare", python, "-c", one)}, contenders...)
	}
	t, err := measure(ctx, rounds, contenders...)
	if err != nil {
		return nil, err
	}
	t.print()
	if python != "" {
		aimAtMost("Run less the bare interpreter, ms", aim, t.more("Run", "bare"))
	}
	return t, nil
}

// trivial is a cell that does next to nothing, in each language.
var trivial = []struct{ language, code string }{
	{"python", "1 + 1"}, {"javascript", "1 + 1"}, {"bash", ":"}, {"ruby", "1 + 1"}, {"r", "1 + 1"}, {"java", "1 + 1"},
}

// kernels measures what it takes to open a kernel, and the round trip of a cell.
func kernels(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	plain := &llmsandbox.KernelOptions{Plain: true}
	opened := func(cell string) func(context.Context) error {
		return func(ctx context.Context) error {
			k, err := sb.Kernel(ctx, "python", plain)
			if err != nil {
				return err
			}
			defer k.Close()
			if cell == "" {
				return nil
			}
			return cellOK(k.Run(ctx, cell, nil))
		}
	}
	err = compare(ctx, rounds,
		timed("bare python3 -c pass", func(ctx context.Context) error { return exec.CommandContext(ctx, e.python, "-c", "pass").Run() }),
		timed("a Python kernel, opened and closed", opened("")),
		timed("the same with a first cell", opened("1 + 1")),
	)
	if err != nil {
		return err
	}
	all := []contender{timed("Run of Python", func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) })}
	for _, c := range trivial {
		k, err := sb.Kernel(ctx, c.language, plain)
		if err != nil {
			fmt.Printf("left out: %v\n", err)
			continue
		}
		defer k.Close()
		all = append(all, timed("a cell of "+c.language, func(ctx context.Context) error { return cellOK(k.Run(ctx, c.code, nil)) }))
	}
	return compare(ctx, rounds, all...)
}

// cellOK turns a cell that did not end well into an error.
func cellOK(c *llmsandbox.Cell, err error) error {
	if err == nil && !c.OK() {
		err = fmt.Errorf("status %s: %s%s", c.Status, c.Reason, c.Stderr)
	}
	return err
}
