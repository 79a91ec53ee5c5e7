//go:build linux

package guest_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
	"github.com/llmsandbox/llmsandbox/internal/guest/notify"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// envOutside, when set, makes this binary an agent in no namespaces of its own on its standard input: one with that uid,
// or, for 0, one whose code has a uid of its own.
const envOutside = "LLMSANDBOX_TEST_OUTSIDE"

// No process outside has these.
const (
	ownUID    = 12346
	sharedUID = 12347
)

func serveOutside(uid string) error {
	id, err := strconv.Atoi(uid)
	if err != nil {
		return err
	}
	opts := guest.Options{CodeUID: uint32(id), CodeGID: uint32(id), NoPIDNamespace: true, Watch: watchOf(os.Getenv(envWatch))}
	if err := confineOutside(&opts, seccomp.ProcessOptions{TCP: os.Getenv(envPort) != "", Shared: id != 0}); err != nil {
		return err
	}
	switch {
	case id == 0:
		opts.CodeUID, opts.CodeGID = ownUID, ownUID
	case id != os.Getuid():
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(id, id, id), syscall.Setresuid(id, id, id)); err != nil {
			return err
		}
	}
	if err := unix.SetNonblock(0, true); err != nil {
		return err
	}
	agent, err := guest.New(opts)
	if err != nil {
		return err
	}
	defer agent.Shutdown()
	go func() { _ = agent.ServeConn(os.NewFile(0, "stdin"), 0) }()
	<-agent.Quit()
	return nil
}

// envWork and envPort, when set, are the directory that the code may write to, and the proxy's port.
const (
	envWork = "LLMSANDBOX_TEST_OUTSIDE_WORK"
	envPort = "LLMSANDBOX_TEST_OUTSIDE_PORT"
)

// confineOutside confines code in no namespaces of its own, which may read everything.
func confineOutside(opts *guest.Options, o seccomp.ProcessOptions) (err error) {
	work := os.Getenv(envWork)
	if work == "" {
		return nil
	}
	port, _ := strconv.ParseUint(os.Getenv(envPort), 10, 16)
	opts.Notify = notify.Options{Writable: []string{work}, Port: uint16(port), Connect: func(family int) (int, error) {
		var to unix.Sockaddr = &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
		if family == unix.AF_INET6 {
			to = &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
		}
		socket, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(socket, to)
		}
		return socket, errors.Join(err, unix.SetNonblock(socket, true))
	}}
	if opts.Notify.Filter, err = seccomp.Notify(runtime.GOARCH, o); err != nil {
		return err
	}
	if opts.Seccomp, err = seccomp.Process(runtime.GOARCH, o); err != nil {
		return err
	}
	rules := landlock.Rules{ReadExec: []string{"/"}, ReadWrite: []string{work}, Special: []string{"/dev/null"}, LimitTCP: true}
	if o.TCP {
		rules.Ports = []uint16{uint16(port)}
	}
	opts.Landlock, err = landlock.NewRuleset(rules)
	opts.UseLandlock = true
	return err
}

// eachOutside tries an agent in no namespaces of its own, whose code has a uid of its own or shares the agent's.
func eachOutside(t *testing.T, f func(t *testing.T, a *testAgent, uid uint32)) {
	for name, uid := range outsideUIDs() {
		t.Run(name, func(t *testing.T) { f(t, startOutside(t, uid), cmp.Or(uid, ownUID)) })
	}
}

// outsideUIDs are what an agent can be tried as.
func outsideUIDs() map[string]uint32 {
	if os.Getuid() != 0 {
		return map[string]uint32{"shared": uint32(os.Getuid())}
	}
	return map[string]uint32{"own": 0, "shared": sharedUID}
}

// outsideBinary is this binary, or one like it without cgo, which the race detector brings: with that, a Go program cannot
// change the users of all of its threads.
var outsideBinary = sync.OnceValues(func() (string, error) {
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPPID, 0, 0, 0); errno == 0 {
		return os.Executable()
	}
	binary := filepath.Join(filepath.Dir(agentBinary), "outside.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests without cgo: %w\n%s", err, out)
	}
	return binary, nil
})

func startOutside(t *testing.T, uid uint32, env ...string) *testAgent {
	t.Helper()
	if lacks := landlock.Lacks(landlock.ABI()); len(lacks) > 0 {
		need(t, fmt.Sprintf("the kernel lacks %q", lacks))
	}
	self, err := outsideBinary()
	if err != nil {
		t.Fatal(err)
	}
	return startAgent(t, mode{name: "outside", bin: self, env: append(env, envOutside+"="+strconv.Itoa(int(uid)))})
}

// bystander starts a process outside of the sandbox.
func bystander(t *testing.T, uid uint32) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// bombs are what code can do to outlive a kill of one process after the other.
var bombs = map[string]string{
	"wide": `import os
while True:
  try:
    if os.fork() == 0: os.setsid()
  except OSError: pass`,
	"hopper": `import os
while True:
  if os.fork(): os._exit(0)
  os.setsid()`,
	"killers": `import os, signal
for i in range(3): os.fork()
os.setsid()
while True:
  try: os.kill(-1, signal.SIGUSR1)
  except OSError: pass`,
}

func startBomb(t *testing.T, a *testAgent, script string) (mark string) {
	t.Helper()
	mark = fmt.Sprintf("bomb%d", time.Now().UnixNano())
	req := agentproto.StartRequest{
		Argv: []string{"python3", "-c", "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN); print(flush=True)\n" + script, mark},
		Env:  sh("").Env, KeepChildren: true, Rlimits: []agentproto.Rlimit{{Resource: 6, Value: 150}},
	}
	p, err := a.client.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdout().Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	return mark
}

func survived(t *testing.T, all ...*exec.Cmd) {
	t.Helper()
	for _, cmd := range all {
		if pid, err := unix.Wait4(cmd.Process.Pid, nil, unix.WNOHANG, nil); pid != 0 || err != nil {
			t.Errorf("a process outside has ended: %d, %v", pid, err)
		}
	}
}

func TestKillerLeavesNothing(t *testing.T) {
	for name, script := range bombs {
		t.Run(name, func(t *testing.T) {
			eachOutside(t, func(t *testing.T, a *testAgent, uid uint32) {
				same, own := bystander(t, uid), bystander(t, uint32(os.Getuid()))
				mark := startBomb(t, a, script)
				if err := a.client.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				if left := alive(mark); len(left) > 0 {
					t.Errorf("left after shutdown: %q, want none", left)
				}
				if err := a.cmd.Wait(); err != nil {
					t.Errorf("the agent: %v, want it to have ended by itself", err)
				}
				survived(t, same, own)
			})
		})
	}
}

// TestAgentKilled: what an agent has started ends with it, also when that is killed, whatever the code has tried before.
func TestAgentKilled(t *testing.T) {
	for name, script := range bombs {
		t.Run(name, func(t *testing.T) {
			eachOutside(t, func(t *testing.T, a *testAgent, uid uint32) {
				same, own := bystander(t, uid), bystander(t, uint32(os.Getuid()))
				_, _ = runOn(t.Context(), a.client, sh("kill -9 -1")) // it may kill what would tell of its start
				if r := a.run(sh("echo ok")); r.out != "ok\n" {
					t.Errorf("after kill -1: %+v, want out = \"ok\\n\"", r)
				}
				mark := startBomb(t, a, script)
				if err := a.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				a.cmd.Wait()
				left := alive(mark)
				for start := time.Now(); len(left) > 0 && time.Since(start) < 20*time.Second; left = alive(mark) {
				}
				if len(left) > 0 {
					t.Errorf("left after the agent: %q, want none", left)
				}
				survived(t, same, own)
			})
		})
	}
}

func TestSignalsStayInside(t *testing.T) {
	eachOutside(t, func(t *testing.T, a *testAgent, uid uint32) {
		outside := bystander(t, uid)
		kept := sh("sleep 600 & echo $!")
		kept.KeepChildren = true
		inside := strings.TrimSpace(a.run(kept).out)
		script := fmt.Sprintf("kill -9 %d; kill -9 %d; kill -0 %s && echo reached", outside.Process.Pid, a.cmd.Process.Pid, inside)
		if r := a.run(sh(script)); r.out != "reached\n" {
			t.Errorf("%+v, want out = \"reached\\n\"", r)
		}
		survived(t, outside)
		// The sleep and its subreaper are left.
		n, err := a.client.Count(t.Context())
		for start := time.Now(); n > 2 && time.Since(start) < 5*time.Second; n, err = a.client.Count(t.Context()) {
		}
		if err != nil || n != 2 {
			t.Errorf("%d processes, %v, want 2", n, err)
		}
	})
}
