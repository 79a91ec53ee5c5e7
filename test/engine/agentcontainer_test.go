//go:build linux

package engine

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

const (
	agentToken   = "0123456789abcdefTOKEN"
	agentAddress = "llmsandbox-agent-test"
)

// agentDir holds the agent, which no user may read, and the filter.
func agentDir(t testing.TB, e *testengine.Engine) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r, err := agentbin.Open(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	binary, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := seccomp.Filter(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "agent"), binary, 0o111), os.WriteFile(filepath.Join(dir, "seccomp"), filter, 0o444),
		os.Chmod(filepath.Join(dir, "agent"), 0o111), os.Chmod(dir, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A file that cannot be read protects the process that runs it from all users but
	// its owner's root: the engine must own it, as it does its volumes.
	data, err := os.Stat(e.DataRoot)
	if err != nil {
		t.Fatal(err)
	}
	owner := data.Sys().(*syscall.Stat_t)
	if err := os.Chown(filepath.Join(dir, "agent"), int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// dockerCommand is the docker command for an engine.
func dockerCommand(ctx context.Context, e *testengine.Engine, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host)
	return cmd
}

// A pipes stream is a command's stdin and stdout.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// connectTo speaks with the agent that a command leads to. The command ends with the test.
func connectTo(t testing.TB, cmd *exec.Cmd, token string) *agentclient.Client {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	if _, err := io.WriteString(in, token); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := agentclient.Connect(ctx, pipes{out, in})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); _ = cmd.Process.Kill() })
	return c
}

// An agentContainer is one whose main process is the agent.
type agentContainer struct {
	name   string
	client *agentclient.Client
	cmd    *exec.Cmd    // the attached docker command
	gone   <-chan error // sent when the container has ended
}

// runAgent starts a container as a backend does: everything read-only, no directory of its
// own, one user for the agent and the code.
func runAgent(t testing.TB, e *testengine.Engine, engineArgs, agentArgs []string) *agentContainer {
	t.Helper()
	image := e.Images(t)("python")
	c := &agentContainer{name: "agent-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	args := append([]string{"run", "-i", "--rm", "--name", c.name, "--network", "none", "--read-only", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--user", "1000:1000", "--volume", agentDir(t, e) + ":/llmsandbox:ro",
		"--env", "LLMSANDBOX_TOKEN=" + agentToken, "--entrypoint", "/llmsandbox/agent"}, engineArgs...)
	args = append(args, image, "serve", "--stdio", "--listen", "@"+agentAddress, "--token-env", "LLMSANDBOX_TOKEN", "--grace", "1")
	c.cmd = dockerCommand(context.Background(), e, append(args, agentArgs...)...)
	c.client = connectTo(t, c.cmd, "")
	gone := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	wait := dockerCommand(ctx, e, "wait", c.name)
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { gone <- wait.Wait(); close(ended) }()
	t.Cleanup(func() { _ = dockerCommand(context.Background(), e, "rm", "-f", c.name).Run(); cancel(); <-ended })
	c.gone = gone
	return c
}

// exec runs a program in the container as code, and returns what it wrote and its end.
func (c *agentContainer) exec(t testing.TB, argv ...string) (string, agentproto.Exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := c.client.Start(ctx, agentproto.StartRequest{Argv: argv, Merge: true, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), exit
}

func onEachEngine(t *testing.T, f func(t *testing.T, e *testengine.Engine)) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) { f(t, engine.start(t)) })
	}
}
