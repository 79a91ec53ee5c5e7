package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox"
)

// env is what all measurements share.
type env struct {
	python  string // the interpreter that the sandboxes use, as the host sees it
	command string // the llmsandbox command
	bwrap   []string
	docker  []string
	dir     string
}

// newEnv looks for the contenders and says which are missing.
func newEnv(ctx context.Context, command string) (*env, error) {
	e := &env{command: command}
	var err error
	if e.dir, err = os.MkdirTemp("", "llmsandbox-bench-"); err != nil {
		return nil, err
	}
	if e.command == "" {
		e.command = filepath.Join(e.dir, "llmsandbox")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", e.command, "./cmd/llmsandbox").CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("build the command: %w: %s", err, out), e.close())
		}
	}
	out, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the bare interpreter: %w", err), e.close())
	}
	e.python = strings.TrimSpace(string(out))
	if _, err := exec.LookPath("bwrap"); err == nil {
		e.bwrap = []string{"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}
	} else {
		fmt.Println("bwrap is not installed: left out")
	}
	if image := os.Getenv("BENCH_DOCKER_IMAGE"); image != "" && exec.CommandContext(ctx, "docker", "info").Run() == nil {
		e.docker = []string{"docker", "run", "--rm", image}
	} else {
		fmt.Println("docker: left out (needs a daemon, and BENCH_DOCKER_IMAGE naming an image with python3)")
	}
	return e, nil
}

func (e *env) close() error { return os.RemoveAll(e.dir) }

// program is a contender that executes a program to its end.
func program(name string, argv ...string) contender {
	return timed(name, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// open opens a sandbox for measuring: without limits that would be measured instead.
func open(ctx context.Context) (*llmsandbox.Sandbox, error) {
	return llmsandbox.Open(ctx, llmsandbox.Options{
		Language: "python", BestEffort: true,
		Limits: llmsandbox.Limits{CPUs: llmsandbox.Unlimited, Output: llmsandbox.Unlimited, Disk: 2 << 30},
	})
}

// ok turns a run that did not end well into an error.
func ok(res *llmsandbox.Result, err error) error {
	if err == nil && !res.OK() {
		err = fmt.Errorf("status %s: %s%s", res.Status, res.Error, res.Stderr)
	}
	return err
}
