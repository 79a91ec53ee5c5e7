package testfaults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// ownerVariable makes a test program another owner; its value is where.
const ownerVariable = "LLMSANDBOX_TEST_OWNER"

// Own is for TestMain to call: in a process that StartOwner started it does not return. It
// opens a sandbox there, tells its id, and closes it when its input ends, and then what it
// was opened on.
func Own(open func(where string) (*llmsandbox.Sandbox, io.Closer, error)) {
	where := os.Getenv(ownerVariable)
	if where == "" {
		return
	}
	if err := ownUntilEOF(where, open); err != nil {
		fmt.Fprintln(os.Stderr, "another owner:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func ownUntilEOF(where string, open func(string) (*llmsandbox.Sandbox, io.Closer, error)) error {
	sb, on, err := open(where)
	if err != nil {
		return err
	}
	fmt.Println(sb.ID())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, sb.Close(), on.Close())
}

// An Owner is another process with a sandbox.
type Owner struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Scanner
	id    string
}

// StartOwner starts an owner. It ends with the test, if not before.
func StartOwner(t testing.TB, where string) *Owner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &Owner{cmd: exec.Command(self, "-test.run=^$")}
	o.cmd.Env = append(os.Environ(), ownerVariable+"="+where)
	o.cmd.Stderr = os.Stderr
	if o.in, err = o.cmd.StdinPipe(); err != nil {
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
	o.lines = bufio.NewScanner(out)
	return o
}

// ID is the owner's sandbox, once it is open.
func (o *Owner) ID(t testing.TB) string {
	t.Helper()
	if o.id == "" {
		if !o.lines.Scan() {
			t.Fatalf("the other owner has opened no sandbox: %v, want o.lines.Scan() = true", o.lines.Err())
		}
		o.id = strings.TrimSpace(o.lines.Text())
	}
	return o.id
}

// End lets the owner close its sandbox.
func (o *Owner) End(t testing.TB) {
	t.Helper()
	if err := errors.Join(o.in.Close(), o.cmd.Wait()); err != nil {
		t.Errorf("the other owner: %v", err)
	}
}

// Signal sends the owner a signal.
func (o *Owner) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := o.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the owner as kill -9 does.
func (o *Owner) Kill(t testing.TB) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.cmd.Wait() // it was killed
}
