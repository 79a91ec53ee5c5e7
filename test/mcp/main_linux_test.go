package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

// command is the directory with the llmsandbox command, which clients find in their PATH.
var command string

func TestMain(m *testing.M) { os.Exit(withCommand(m)) }

func withCommand(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcp")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if command, err = testcommand.In(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// missing skips a test, or fails it where everything ought to be there.
func missing(t *testing.T, what string, err error) {
	t.Helper()
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("skipped, %s: %v", what, err)
}

// environment is a client's: with the command in its PATH and a state directory of the test's
// own, whose path must be short for sockets.
func environment(t *testing.T) (env []string, state string) {
	t.Helper()
	state, err := os.MkdirTemp("", "lsb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) }) // what the test is about is not this directory
	return append(os.Environ(), "PATH="+command+":"+os.Getenv("PATH"), "LLMSANDBOX_STATE_DIR="+state), state
}

// nothingLeft checks that no sandbox is there.
func nothingLeft(t *testing.T, env []string) {
	t.Helper()
	ls := exec.Command(filepath.Join(command, "llmsandbox"), "ls")
	ls.Env = env
	if out, err := ls.CombinedOutput(); err != nil || strings.Count(string(out), "\n") != 1 { // the heading
		t.Errorf("sandboxes are left: %v: %s, want no error, strings.Count(string(out), \"\\n\") = 1", err, out)
	}
}

// run runs a client to its end.
func run(t *testing.T, env []string, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, t.TempDir(), &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// A httpServer is the command that serves HTTP.
type httpServer struct {
	address string // with the scheme
	key     string
	stop    func()
}

// serving is the line of a server that serves.
var serving = regexp.MustCompile(`serving on (\S+); the key, until it ends, is (\S+)\n`)

// serve starts the command and returns when it serves; the test's end stops it.
func serve(t *testing.T, env []string) httpServer {
	t.Helper()
	cmd := exec.Command(filepath.Join(command, "llmsandbox"), "serve", "--listen", "127.0.0.1:0", "--best-effort", "--warm", "0")
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	var reading sync.WaitGroup
	s := httpServer{stop: sync.OnceFunc(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		reading.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v: %s", err, &rest)
		}
	})}
	t.Cleanup(s.stop)
	var said []byte
	for buffer := make([]byte, 4096); ; {
		n, err := pipe.Read(buffer)
		said = append(said, buffer[:n]...)
		if found := serving.FindSubmatch(said); found != nil {
			s.address, s.key = string(found[1]), string(found[2])
			reading.Go(func() { _, _ = io.Copy(&rest, pipe) }) // its end is the process's
			return s
		}
		if err != nil {
			t.Fatalf("the server did not start: %v: %s", err, said)
		}
	}
}
