package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/internal/e2b"
)

//go:embed e2b.py
var e2bProgram string

// e2bSDK measures what E2B's own SDK takes with the server, against requests of its API for the same.
func e2bSDK(ctx context.Context, e *env, rounds int) (err error) {
	const most = 100 // sandboxes at once
	s, err := startServer(ctx, e.command, "--e2b", "--disk", "1g", "--max-sandboxes", fmt.Sprint(2*most), "--max-requests-per-second", "0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	sdk, err := newReference(ctx, e.dir, "e2b", "==2.63.0", e2bProgram, "e2b-code-interpreter==2.11.5")
	if err != nil {
		fmt.Println("left out:", err)
		return nil
	}
	defer func() { err = errors.Join(err, sdk.close()) }()
	_, version, err := sdk.ask("connect", []string{s.address, e2b.Key(s.key)})
	if err != nil {
		return err
	}
	fmt.Println("e2b", version)
	if err := s.sdkCommands(ctx, sdk, rounds); err != nil {
		return err
	}
	if err := s.sdkFiles(ctx, sdk, e.dir, max(rounds/8, 3)); err != nil {
		return err
	}
	if err := s.sdkMany(ctx, sdk, most); err != nil {
		return err
	}
	fmt.Println("E2B says of its own that a sandbox starts in about 150 ms, in a microVM of its cloud")
	return nil
}

// asked is a contender that the SDK does and measures itself.
func (r *reference) asked(name, operation string, argument any) contender {
	return contender{name, func(context.Context) (time.Duration, error) {
		took, _, err := r.ask(operation, argument)
		return took, err
	}}
}

// shell has a sandbox do what the SDK's commands.run("true") has it do.
func (s *server) shell(ctx context.Context, path string) error {
	var res struct{ Status string }
	err := s.post(ctx, path+"/exec", map[string]any{"argv": []string{"/bin/bash", "-l", "-c", "true"}}, &res)
	if err == nil && res.Status != "ok" {
		err = fmt.Errorf("true: status %s", res.Status)
	}
	return err
}

func (s *server) sdkCommands(ctx context.Context, sdk *reference, rounds int) error {
	path, err := s.create(ctx)
	if err != nil {
		return err
	}
	created, made := "API: create, exec true", ""
	first := `SDK: create, commands.run("true")`
	command, exec := `SDK: commands.run("true")`, "API: exec true"
	t, err := measure(ctx, rounds,
		timed(created, func(ctx context.Context) error {
			if made, err = s.create(ctx); err != nil {
				return err
			}
			return s.shell(ctx, made)
		}),
		contender{"(removed)", func(ctx context.Context) (time.Duration, error) {
			return 0, s.send(ctx, http.MethodDelete, made, nil, nil)
		}},
		sdk.asked(first, "create", nil),
		sdk.asked("(removed)", "tidy", nil),
		timed(exec, func(ctx context.Context) error { return s.shell(ctx, path) }),
		sdk.asked(command, "command", nil),
	)
	if err != nil {
		return err
	}
	t.names = []string{created, first, exec, command}
	t.print()
	return s.send(ctx, http.MethodDelete, path, nil, nil)
}

// sdkFiles measures a file up and down, each as a stream.
func (s *server) sdkFiles(ctx context.Context, sdk *reference, dir string, rounds int) error {
	const size = 100 << 20
	file := filepath.Join(dir, "up")
	if err := os.WriteFile(file, []byte(strings.Repeat("0123456789abcdef", size/16)), 0o600); err != nil {
		return err
	}
	return compare(ctx, rounds, sdk.asked("SDK: files.write, 100 MiB", "up", file), sdk.asked("SDK: files.read as a stream, 100 MiB", "down", size))
}

// sdkMany measures sandboxes that are made at once, each with a command.
func (s *server) sdkMany(ctx context.Context, sdk *reference, n int) error {
	t := newTable("API: create, exec true", `SDK: create, commands.run("true")`)
	paths, times := make([]string, n), make([]float64, n)
	start := time.Now()
	var all errgroup.Group
	for i := range n {
		all.Go(func() error {
			start := time.Now()
			path, err := s.create(ctx)
			if err != nil {
				return err
			}
			paths[i], err = path, s.shell(ctx, path)
			times[i] = float64(time.Since(start).Microseconds()) / 1000
			return err
		})
	}
	err := all.Wait()
	took := time.Since(start)
	for _, path := range paths {
		if path != "" {
			err = errors.Join(err, s.send(ctx, http.MethodDelete, path, nil, nil))
		}
	}
	if err != nil {
		return err
	}
	theirs, words, err := sdk.ask("many", n)
	if err != nil {
		return err
	}
	fmt.Printf("%d at once: all of the API after %v, all of the SDK after %v\n", n, took.Round(time.Millisecond), theirs.Round(time.Millisecond))
	var sdkTimes []float64
	if err := json.Unmarshal([]byte(words), &sdkTimes); err != nil {
		return err
	}
	t.times[t.names[0]], t.times[t.names[1]] = times, sdkTimes
	t.print()
	_, _, err = sdk.ask("tidy", nil)
	return err
}
