//go:build linux

package guest_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// agentBinary is the agent that the tests run, built as it is shipped.
var agentBinary string

func TestMain(m *testing.M) {
	if uid, ok := os.LookupEnv(envOutside); ok {
		if err := serveOutside(uid); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "agent-test")
	if err != nil {
		panic(err)
	}
	os.Chmod(dir, 0o755)
	agentBinary = filepath.Join(dir, "llmsandbox-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", agentBinary, "github.com/llmsandbox/llmsandbox/cmd/llmsandbox-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the agent: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// An agent under test: the process, and a way to get further streams to it.
type testAgent struct {
	t      testing.TB
	cmd    *exec.Cmd
	socket string
	stdio  int // our end of its stdin and stdout
	client *agentclient.Client
}

type mode struct {
	name  string
	args  []string
	bin   string   // in place of the agent
	env   []string // beside the test's own
	attr  *syscall.SysProcAttr
	outer bool // /proc is the one of outside
}

// modes are the privileges that an agent is tried with.
func modes() []mode {
	all := []mode{{name: "same-user"}}
	if os.Geteuid() == 0 {
		namespaces := mode{name: "namespaces", args: []string{"--uid", "1000", "--gid", "1000"}, attr: &syscall.SysProcAttr{
			Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
			UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: 200000, Size: 65536}},
			GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: 200000, Size: 65536}},
			GidMappingsEnableSetgroups: true,
			Credential:                 &syscall.Credential{},
		}}
		outer := namespaces
		outer.name, outer.outer = "outer-proc", true
		all = append(all,
			// Its code has a user that no container has: how many processes a user has counts all over the machine.
			mode{name: "root", args: []string{"--uid", "54318", "--gid", "54318"}},
			mode{name: "ordinary", attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}},
			namespaces, outer,
		)
	}
	return all
}

func eachMode(t *testing.T, f func(t *testing.T, a *testAgent)) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) { f(t, startAgent(t, m)) })
	}
}

func startAgent(t testing.TB, m mode) *testAgent {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent-sock")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o777)
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &testAgent{t: t, socket: filepath.Join(dir, "s")}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(fds[0], true)
	a.stdio = fds[0]
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	args := append([]string{"serve", "--stdio", "--grace", "60", "--workdir", "/", "--listen", a.socket}, m.args...)
	a.cmd = exec.Command(cmp.Or(m.bin, agentBinary), args...)
	if m.attr != nil && m.attr.Cloneflags != 0 && !m.outer {
		script := `mount -t proc proc /proc && exec "$0" "$@"`
		a.cmd = exec.Command("/bin/sh", append([]string{"-c", script, agentBinary}, args...)...)
	}
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = theirs, theirs, os.Stderr
	a.cmd.Env = append(os.Environ(), m.env...)
	a.cmd.SysProcAttr = m.attr
	if err := a.cmd.Start(); err != nil {
		theirs.Close()
		ours.Close()
		need(t, fmt.Sprintf("cannot start an agent in mode %s: %v", m.name, err))
	}
	theirs.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a.client, err = agentclient.Connect(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.client.Close()
		a.cmd.Process.Kill()
		a.cmd.Wait()
	})
	return a
}

func need(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// dial opens a further stream to the agent.
func (a *testAgent) dial() *agentclient.Client {
	a.t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: a.socket}); err != nil {
		a.t.Fatal(err)
	}
	unix.SetNonblock(fd, true)
	c, err := agentclient.Connect(a.t.Context(), os.NewFile(uintptr(fd), "dialled"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { c.Close() })
	return c
}

func sh(script string) agentproto.StartRequest {
	return agentproto.StartRequest{
		Argv: []string{"sh", "-c", script},
		Env:  []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/tmp"},
	}
}

type result struct {
	out, err string
	exit     agentproto.Exit
	id       uint64
}

func (a *testAgent) run(req agentproto.StartRequest) result {
	a.t.Helper()
	r, err := runOn(a.t.Context(), a.client, req)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

func runOn(ctx context.Context, c *agentclient.Client, req agentproto.StartRequest) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	p, err := c.Start(ctx, req)
	if err != nil {
		return result{}, err
	}
	return collect(ctx, p)
}

func collect(ctx context.Context, p *agentclient.Process) (result, error) {
	var out, errs strings.Builder
	done := make(chan struct{})
	go func() { io.Copy(&errs, p.Stderr()); close(done) }()
	io.Copy(&out, p.Stdout())
	<-done
	exit, err := p.Wait(ctx)
	return result{out: out.String(), err: errs.String(), exit: exit, id: p.ID()}, err
}

// alive reports whether any process has marker in its command line.
func alive(marker string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		text, _ := os.ReadFile(d + "/cmdline")
		if strings.Contains(string(text), marker) && d != fmt.Sprintf("/proc/%d", os.Getpid()) {
			found = append(found, d+" "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}
