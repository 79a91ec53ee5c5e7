package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/docker/docker-credential-helpers/client"
)

const (
	// maxHelperOutput bounds what is read of a credential helper, in bytes.
	maxHelperOutput = 1 << 20
	// helperGrace is how long a helper's output is waited for once it has ended.
	helperGrace = time.Second
)

// helperProgram runs a credential helper for as long as ctx lasts.
func helperProgram(ctx context.Context, program string) client.ProgramFunc {
	return func(args ...string) client.Program {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.WaitDelay = helperGrace
		return &helperRun{cmd: cmd}
	}
}

type helperRun struct{ cmd *exec.Cmd }

// Input is what the helper reads.
func (h *helperRun) Input(in io.Reader) { h.cmd.Stdin = in }

// Output is what the helper printed. Helpers print their errors there too; what one
// that failed says on stderr is added.
func (h *helperRun) Output() ([]byte, error) {
	var out, said capped
	h.cmd.Stdout, h.cmd.Stderr = &out, &said
	err := h.cmd.Run()
	if err != nil && said.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), err
}

// capped is a buffer that refuses to grow over maxHelperOutput.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > maxHelperOutput {
		return 0, errors.New("too much output")
	}
	return c.Buffer.Write(p)
}
