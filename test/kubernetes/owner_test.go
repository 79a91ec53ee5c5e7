//go:build linux

package kubernetes

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
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

// ownerVariable makes this program another owner: its value is a place's address, and the
// image after a space. One that is killed cannot do it in the process of a test.
const ownerVariable = "LLMSANDBOX_KUBERNETES_OWNER"

// ownerChild is called by TestMain. An owner opens a sandbox, tells its id, and closes it
// when its input ends.
func ownerChild() {
	image, address, ok := strings.Cut(os.Getenv(ownerVariable), " ")
	if !ok {
		return
	}
	if err := ownUntilEOF(address, image); err != nil {
		fmt.Fprintln(os.Stderr, "another owner:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func ownUntilEOF(address, image string) error {
	p, err := placeAt(address)
	if err != nil {
		return err
	}
	b, err := kubernetes.New(p.options())
	if err != nil {
		return err
	}
	sb, err := llmsandbox.Open(context.Background(), llmsandbox.Options{Backend: b, Language: "bash", Image: image, BestEffort: true})
	if err != nil {
		return err
	}
	fmt.Println(sb.ID())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, sb.Close(), b.Close())
}

// An owner is another process with a sandbox.
type owner struct {
	cmd   *exec.Cmd
	id    string
	close func() error // ends its input
}

// startOwner starts an owner and returns once its sandbox is open.
func (p place) startOwner(t *testing.T) *owner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd: exec.Command(self, "-test.run=^$")}
	o.cmd.Env = append(os.Environ(), ownerVariable+"="+p.node.Images(t)("bash")+" "+p.address(t))
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
	o.close = in.Close
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the other owner has opened no sandbox: %v", lines.Err())
	}
	o.id = strings.TrimSpace(lines.Text())
	return o
}

// kill ends the owner as kill -9 does.
func (o *owner) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.cmd.Wait() // it was killed
}
