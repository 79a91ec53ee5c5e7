package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/docker/docker-credential-helpers/client"
)

const (
	// maxHelperOutput bounds what is read of a credential helper, and maxHelperShown
	// what of it an error shows, in bytes.
	maxHelperOutput = 64 << 10
	maxHelperShown  = 1 << 10
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
	switch {
	case err == nil:
		return out.buf.Bytes(), nil
	case out.full || said.full:
		err = fmt.Errorf("more than %d bytes of output", maxHelperOutput)
	case said.buf.Len() > 0:
		err = fmt.Errorf("%w: %s", err, said.beginning())
	}
	return out.beginning(), err
}

// capped keeps what is written, and refuses more than maxHelperOutput. It has no
// ReadFrom, by which a copy would get past Write.
type capped struct {
	buf  bytes.Buffer
	full bool
}

func (c *capped) Write(p []byte) (int, error) {
	if c.buf.Len()+len(p) > maxHelperOutput {
		c.full = true
		return 0, io.ErrShortWrite
	}
	return c.buf.Write(p)
}

// beginning is what an error shows.
func (c *capped) beginning() []byte {
	b := bytes.TrimSpace(c.buf.Bytes())
	return b[:min(len(b), maxHelperShown)]
}
