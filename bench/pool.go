package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/pool"
)

func pools(ctx context.Context, e *env, rounds int) error {
	err := poolRounds(ctx, rounds, pool.Config{Options: llmsandbox.Options{BestEffort: true}}, one,
		program("python3 -c, bare", e.python, "-c", one))
	if err != nil {
		return err
	}
	for _, l := range []struct {
		language, code string
		bare           []string
	}{
		{"javascript", "console.log(1)", []string{"node", "-e"}},
		{"ruby", "puts 1", []string{"ruby", "-e"}},
		{"r", "cat(1)", []string{"Rscript", "-e"}},
	} {
		path, err := exec.LookPath(l.bare[0])
		if err != nil {
			fmt.Println(l.bare[0], "is not installed: left out")
			continue
		}
		// This variable of many machines has Node.js read certificates at each start.
		bare := program(strings.Join(l.bare, " ")+", bare", "env", "-u", "NODE_EXTRA_CA_CERTS", path, l.bare[1], l.code)
		if err := poolRounds(ctx, rounds, pool.Config{Options: llmsandbox.Options{BestEffort: true, Language: l.language}}, l.code, bare); err != nil {
			return err
		}
	}
	if err := poolOfCompilers(ctx, e, rounds); err != nil {
		return err
	}
	o, has := stackOptions(ctx)
	if !has {
		return nil
	}
	o.Imports = stackModules
	return poolRounds(ctx, rounds, pool.Config{Options: o}, stack, program(stack+", bare", systemPython, "-c", stack))
}

// poolOfCompilers has Java's compiler wait for its code.
func poolOfCompilers(ctx context.Context, e *env, rounds int) error {
	p := compiledPrograms[0]
	if _, err := exec.LookPath("javac"); err != nil {
		fmt.Println("javac is not installed: left out")
		return nil
	}
	dir := filepath.Join(e.dir, "pool-java")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, p.file), []byte(p.code), 0o600)); err != nil {
		return err
	}
	bare := program(p.bare[0]+", bare", "env", "-C", dir, "sh", "-c", p.bare[0])
	return poolRounds(ctx, max(rounds/2, 1), pool.Config{Options: llmsandbox.Options{BestEffort: true, Language: p.language}}, p.code, bare)
}

func (e *containerEngine) pools(ctx context.Context, all *env, rounds int) error {
	return poolRounds(ctx, engineRounds(rounds), pool.Config{Options: llmsandbox.Options{BestEffort: true, Backend: e.backend, Image: e.image, Labels: map[string]string{keptLabel: ""}}}, one,
		program("python3 -c, bare", all.python, "-c", one))
}

// poolRounds measures what a warm sandbox of a pool takes whose interpreter has imported modules, and
// what it spares.
func poolRounds(ctx context.Context, rounds int, c pool.Config, code string, bare contender) (err error) {
	changed := make(chan struct{}, 1)
	c.Max, c.Min, c.Prepare = 4, 2, true
	c.Hooks = []pool.Hooks{{Changed: func(pool.Key, pool.State, pool.State) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}}}
	p, err := pool.New(&c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	// No contender pays for filling the pool again.
	full := func() error {
		for s := p.Stats(); s.Idle < c.Min || s.Total > s.Idle; s = p.Stats() {
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	warm := func(do func(context.Context, *pool.Lease) error, whole bool) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			if err := full(); err != nil {
				return 0, err
			}
			start := time.Now()
			l, err := p.Acquire(ctx, nil)
			took := time.Since(start)
			if err != nil {
				return 0, err
			}
			err = do(ctx, l)
			l.Release()
			if whole {
				took = time.Since(start)
			}
			return took, errors.Join(err, full())
		}
	}
	hello := func(ctx context.Context, l *pool.Lease) error { return ok(l.Sandbox().Run(ctx, code, nil)) }
	err = compare(ctx, rounds, bare,
		timed("Open+Run+Close", func(ctx context.Context) error {
			sb, err := llmsandbox.Open(ctx, &c.Options)
			if err != nil {
				return err
			}
			return errors.Join(ok(sb.Run(ctx, code, nil)), sb.Close())
		}),
		contender{"Acquire of a warm one", warm(func(context.Context, *pool.Lease) error { return nil }, false)},
		contender{"Acquire+Run+Release, warm", warm(hello, true)})
	if err != nil {
		return err
	}
	s := p.Stats()
	fmt.Printf("%d of %d acquisitions found a warm sandbox\n", s.Hits, s.Hits+s.Misses)
	return nil
}
