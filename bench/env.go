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
	docker  *containerEngine // nil when there is none
	podman  *containerEngine
	cluster *podCluster
	dir     string
}

// newEnv looks for the contenders and says which are missing.
func newEnv(ctx context.Context, o options) (*env, error) {
	e := &env{command: o.command}
	var err error
	if e.dir, err = os.MkdirTemp("", "llmsandbox-bench-"); err != nil {
		return nil, err
	}
	if e.command == "" {
		e.command = filepath.Join(e.dir, "llmsandbox")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", e.dir+"/", "./cmd/llmsandbox", "./cmd/llmsandbox-kubernetes").CombinedOutput(); err != nil {
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
	if e.docker, err = newDocker(ctx, o.image); err != nil {
		fmt.Println("docker: left out:", err)
	}
	if o.podman == "" {
		fmt.Println("podman: left out: no -podman HOST")
	} else if e.podman, err = newPodman(ctx, o.image); err != nil {
		fmt.Println("podman: left out:", err)
	}
	if e.cluster, err = newCluster(ctx, o); err != nil {
		fmt.Println("kubernetes: left out:", err)
	}
	return e, nil
}

func (e *env) close() error {
	err := os.RemoveAll(e.dir)
	for _, c := range []*containerEngine{e.docker, e.podman} {
		if c != nil {
			err = errors.Join(err, c.close())
		}
	}
	return err
}

// sameVersion is a python3 of this machine that is of the version in the sandbox, or "".
func (e *env) sameVersion(ctx context.Context, sb *llmsandbox.Sandbox) string {
	const version = "import sys; print(sys.version.split()[0])"
	inside, err := sb.Exec(ctx, []string{"python3", "-c", version}, nil)
	if ok(inside, err) != nil {
		return ""
	}
	for _, python := range []string{e.python, "/usr/bin/python3"} {
		out, err := exec.CommandContext(ctx, python, "-c", version).Output()
		if err == nil && string(out) == inside.Stdout {
			return python
		}
	}
	return ""
}

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
	return llmsandbox.Open(ctx, &llmsandbox.Options{
		Language: "python", BestEffort: true,
		Limits: llmsandbox.Limits{CPUs: llmsandbox.Unlimited, Output: llmsandbox.Unlimited, Disk: 2 << 30},
	})

}

// ok turns a run that did not end well into an error.
func ok(res *llmsandbox.Result, err error) error {
	if err == nil && !res.OK() {
		err = fmt.Errorf("status %s: %s%s", res.Status, res.Reason, res.Stderr)
	}
	return err
}
