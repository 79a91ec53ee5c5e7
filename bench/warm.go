package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

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
