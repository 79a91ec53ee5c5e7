//go:build linux

package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
)

// childVariable makes this program another owner: its value is a backend's address. One
// that is killed cannot do it in the process of a test.
const childVariable = "LLMSANDBOX_ENGINE_OWNER"

// ownerChild is called by TestMain. An owner opens a sandbox, tells its id, and closes it
// when its input ends.
func ownerChild() {
	address := os.Getenv(childVariable)
	if address == "" {
		return
	}
	if err := ownUntilEOF(address); err != nil {
		fmt.Fprintln(os.Stderr, "another owner:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func ownUntilEOF(address string) error {
	b, err := backendAt(address, engine.Options{})
	if err != nil {
		return err
	}
	sb, err := llmsandbox.Open(context.Background(), llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true})
	if err != nil {
		return err
	}
	fmt.Println(sb.ID())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, sb.Close())
}

// An owner is another process with a sandbox.
type owner struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	close func() error // ends its input
}

// startOwner starts an owner on the engine at a host.
func startOwner(t *testing.T, b *engine.Backend, host string) *owner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd: exec.Command(self, "-test.run=^$")}
	o.cmd.Env = append(os.Environ(), childVariable+"="+b.Name()+" "+host)
	o.cmd.Stderr = os.Stderr
	in, err := o.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cmd.Process.Kill(); _ = o.cmd.Wait() }) // both fail of one that has ended
	o.lines, o.close = bufio.NewScanner(out), in.Close
	return o
}

// id is the owner's sandbox, once it is open.
func (o *owner) id(t *testing.T) string {
	t.Helper()
	if !o.lines.Scan() {
		t.Fatalf("the other owner has opened no sandbox: %v", o.lines.Err())
	}
	return strings.TrimSpace(o.lines.Text())
}

// end lets the owner close its sandbox.
func (o *owner) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(o.close(), o.cmd.Wait()); err != nil {
		t.Errorf("the other owner: %v", err)
	}
}
