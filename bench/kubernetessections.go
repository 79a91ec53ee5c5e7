package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

// sections are what is measured on a cluster.
func (c *podCluster) sections() []section {
	return []section{
		{"kubernetes: one-shot", c.oneShots},
		{"kubernetes: run in an open sandbox", c.openRuns},
		{"kubernetes: forked runs and kernels", c.forks},
		{"kubernetes: requests", c.requests},
		{"kubernetes: many at once", c.manyAtOnce},
	}
}

func (c *podCluster) oneShots(ctx context.Context, all *env, rounds int) error {
	const ephemeral = "kubectl run --rm"
	turn := 0
	var sb *llmsandbox.Sandbox
	flags := []string{"run", "--backend", "kubernetes", "--image", c.image, "--best-effort", "-l", "python", "-c", one}
	if c.kubeconfig != "" {
		flags = append(flags, "--kubeconfig", c.kubeconfig)
	}
	t, err := measure(ctx, engineRounds(rounds),
		timed(ephemeral, func(ctx context.Context) error {
			turn++
			return c.ephemeral(ctx, fmt.Sprintf("llmsandbox-bench-%d-%d", os.Getpid(), turn))
		}),
		timed("Open+Run", func(ctx context.Context) (err error) {
			if sb, err = c.open(ctx, c.backend); err != nil {
				return err
			}
			return ok(sb.Run(ctx, one, nil))
		}),
		timed("Close", func(context.Context) error { return sb.Close() }),
		program("llmsandbox run -c", append([]string{all.command}, flags...)...),
	)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("Open+Run as a ratio to "+ephemeral, 1, t.ratio("Open+Run", ephemeral))
	return nil
}

func (c *podCluster) openRuns(ctx context.Context, all *env, rounds int) (err error) {
	sb, err := c.openWith(ctx, c.backend, free)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	name, remove, err := c.shell(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	_, err = all.runsIn(ctx, rounds, sb, 8, timed("kubectl exec", func(ctx context.Context) error { return c.run(ctx, "exec", name, "--", "python3", "-c", one) }))
	return err
}

// requests counts what sandboxes ask of the API server, one after another.
func (c *podCluster) requests(ctx context.Context, _ *env, _ int) error {
	const n = 5
	return c.counted(ctx, n, func(do func() error) error {
		for range n {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
}

// manyAtOnce opens many, runs in each, and tells how many were served, when, and why the
// others were not. It counts requests, too.
func (c *podCluster) manyAtOnce(ctx context.Context, _ *env, _ int) error {
	const n = 50
	start := time.Now()
	var mu sync.Mutex
	var served []float64
	refused := map[string]int{}
	err := c.counted(ctx, n, func(do func() error) error {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				err := do()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused[reason(err)]++
					return
				}
				served = append(served, time.Since(start).Seconds())
			})
		}
		wg.Wait()
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d asked for at once: %d served, opened, run and closed after %.1f s (median) and %.1f s (the last)\n",
		n, len(served), percentile(served, 50), percentile(served, 100))
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		fmt.Printf("%d refused: %s\n", refused[why], why)
	}
	return nil
}

// counted has something done with sandboxes of a backend whose requests are counted, and
// prints how many there were.
func (c *podCluster) counted(ctx context.Context, n int, do func(one func() error) error) (err error) {
	counter, err := newCounter(c.kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, counter.close()) }()
	b, err := kubernetes.New(&counter.options)
	if err != nil {
		return err
	}
	if err := do(func() error { return c.whole(ctx, b) }); err != nil {
		return err
	}
	counts := counter.counts()
	sum := 0
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%-44s %10d %14.2f a sandbox\n", what, counts[what], float64(counts[what])/float64(n))
		sum += counts[what]
	}
	fmt.Printf("%-44s %10d %14.2f a sandbox\n", "requests in all", sum, float64(sum)/float64(n))
	aimAtMost("requests to the API server for each sandbox", 10, float64(sum)/float64(n))
	return nil
}

// own are the names in an error that differ from sandbox to sandbox.
var own = regexp.MustCompile(`sb-[0-9a-f]+|[0-9a-f]{32,}`)

func reason(err error) string { return own.ReplaceAllString(err.Error(), "...") }
