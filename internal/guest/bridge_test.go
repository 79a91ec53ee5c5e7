//go:build linux

package guest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TestBridgeAndToken: an agent that listens is reached through a bridge process, by
// a client with the token, and ends when no client was connected for the grace time.
func TestBridgeAndToken(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("secret")
	w.Close()
	agent := exec.Command(agentBinary, "serve", "--listen", socket, "--token-fd", "3", "--grace", "1")
	agent.ExtraFiles = []*os.File{r}
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
	}
	for _, c := range []struct {
		token string
		ok    bool
	}{{"secret", true}, {"secreT", false}, {"secret", true}} {
		client, err := bridge(t, socket, c.token)
		if (err == nil) != c.ok {
			t.Fatalf("token %q: %v, want success = %v", c.token, err, c.ok)
		}
		if !c.ok {
			continue
		}
		// Longer than the grace time, which counts only while no client is connected.
		if r, err := runOn(t.Context(), client, sh("sleep 1.2; echo through")); err != nil || r.out != "through\n" {
			t.Errorf("%+v, %v, want no error, out = \"through\\n\"", r, err)
		}
		client.Close()
	}
	select {
	case err := <-ended:
		if got := agentproto.End(agent.ProcessState.ExitCode()); got != agentproto.EndAlone {
			t.Errorf("it ended with %d, %v; want %d", got, err, agentproto.EndAlone)
		}
	case <-time.After(10 * time.Second):
		t.Error("the agent still runs after the grace time, want it ended")
		agent.Process.Kill()
	}
}

func bridge(t *testing.T, socket, token string) (*agentclient.Client, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(fds[0], true)
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	cmd := exec.Command(agentBinary, "connect", socket)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { ours.Close(); cmd.Wait() })
	if _, err := ours.WriteString(token); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return agentclient.Connect(ctx, ours)
}
