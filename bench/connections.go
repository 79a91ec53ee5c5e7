package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed gateway.py
var gatewayProgram string

// httpConnections measures what sandboxes and streams cost the HTTP server, and compares it with the one of Jupyter's kernels.
func httpConnections(ctx context.Context, e *env, rounds int) (err error) {
	s, err := startServer(ctx, e.command)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.gateway(ctx, e, rounds); err != nil {
		return err
	}
	if err := s.idleSandboxes(ctx, e.command); err != nil {
		return err
	}
	return s.streams(ctx, e.command)
}

// create makes a sandbox, and returns its path.
func (s *server) create(ctx context.Context) (path string, err error) {
	var made struct{ ID string }
	err = s.post(ctx, "/v1/sandboxes", map[string]any{"language": "python", "lifetime_seconds": 3600}, &made)
	return "/v1/sandboxes/" + made.ID, err
}

// gateway compares with Jupyter Kernel Gateway: a fresh interpreter for each program, and a cell in one that is kept.
func (s *server) gateway(ctx context.Context, e *env, rounds int) (err error) {
	peer, err := newReference(ctx, e.dir, "jupyter_kernel_gateway", "", gatewayProgram, "ipykernel")
	if err != nil {
		fmt.Println("left out:", err)
		return nil
	}
	defer func() { err = errors.Join(err, peer.close()) }()
	path, err := s.create(ctx)
	if err != nil {
		return err
	}
	var kernel struct{ ID string }
	if err := s.post(ctx, path+"/kernels", map[string]any{}, &kernel); err != nil {
		return err
	}
	ours := func(path string) func(context.Context) error {
		return func(ctx context.Context) error { return s.post(ctx, path, map[string]any{"code": one}, nil) }
	}
	theirs := func(operation string) func(context.Context) (time.Duration, error) {
		return func(context.Context) (time.Duration, error) {
			took, _, err := peer.ask(operation, one)
			return took, err
		}
	}
	run, cell := "Jupyter Kernel Gateway, a kernel for each program", "Jupyter Kernel Gateway, a cell"
	t, err := measure(ctx, max(rounds/4, 5),
		contender{run, theirs("run")},
		timed("POST /v1/run, warm", ours("/v1/run")),
		contender{cell, theirs("cell")},
		timed("POST …/kernels/K/cells", ours(path+"/kernels/"+kernel.ID+"/cells")),
	)
	if err != nil {
		return err
	}
	t.print()
	return s.send(ctx, http.MethodDelete, path, nil, nil)
}

// idleSandboxes measures the memory that the processes of the command take for each sandbox, beside what is in the sandbox.
func (s *server) idleSandboxes(ctx context.Context, command string) error {
	const n = 20
	before, err := pss(command)
	if err != nil {
		return err
	}
	var paths []string
	for range n {
		path, err := s.create(ctx)
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	after, err := pss(command)
	if err != nil {
		return err
	}
	fmt.Printf("%.1f MiB of the server and the supervisors for each sandbox, mean of %d\n", float64(after-before)/n/(1<<20), n)
	for _, path := range paths {
		if err := s.send(ctx, http.MethodDelete, path, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// streams measures the memory that a stream of output takes, and how long it takes until all have a line.
func (s *server) streams(ctx context.Context, command string) error {
	const n = 1000
	path, err := s.create(ctx)
	if err != nil {
		return err
	}
	var p struct{ ID uint64 }
	code := "for _ in range(2): print(input(), flush=True)\ninput()"
	if err := s.post(ctx, path+"/processes", map[string]any{"code": code, "stdin_open": true, "timeout_seconds": 300}, &p); err != nil {
		return err
	}
	program := fmt.Sprintf("%s/processes/%d", path, p.ID)
	before, err := pss(command)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var lines []*bufio.Scanner
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+program+"/output", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+s.key)
		res, err := client.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("stream %d: %s", len(lines), res.Status)
		}
		lines = append(lines, bufio.NewScanner(res.Body))
	}
	for _, text := range []string{"first", "second"} {
		start := time.Now()
		if err := s.send(ctx, http.MethodPost, program+"/stdin", []byte(text+"\n"), nil); err != nil {
			return err
		}
		var all errgroup.Group
		for _, l := range lines {
			all.Go(func() error {
				for l.Scan() {
					if strings.Contains(l.Text(), text) {
						return nil
					}
				}
				return fmt.Errorf("a stream ended without %q: %w", text, l.Err())
			})
		}
		if err := all.Wait(); err != nil {
			return err
		}
		fmt.Printf("%d open streams: all have the %s line after %v\n", n, text, time.Since(start).Round(time.Millisecond))
	}
	after, err := pss(command)
	if err != nil {
		return err
	}
	fmt.Printf("%.0f KiB of the server for each stream\n", float64(after-before)/n/(1<<10))
	return s.send(ctx, http.MethodDelete, path, nil, nil)
}

// pss is the memory of all processes that run a program, in bytes: what several share counts in parts.
func pss(program string) (sum int64, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	for _, link := range all {
		if of, err := os.Readlink(link); err != nil || of != program { // of the processes that have ended since, nothing is known
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(link), "smaps_rollup"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				if err != nil {
					return 0, fmt.Errorf("%s: %w", line, err)
				}
				sum += kib << 10
			}
		}
	}
	return sum, nil
}
