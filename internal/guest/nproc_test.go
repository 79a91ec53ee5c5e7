//go:build linux

package guest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// nprocUser is a user of this test's own: RLIMIT_NPROC counts all processes of a user.
const nprocUser = 54321

// bomb forks until it may not, says how often it could and why it could not, and stays.
const bomb = `exec python3 -uc 'import os,time
n=0
while True:
  try:
    if os.fork()==0: time.sleep(600)
  except OSError as e:
    os.write(1, ("%d %s\n" % (n, type(e).__name__)).encode()); break
  n+=1
time.sleep(600)'`

// raise says the limit, and what comes of raising it.
const raise = `exec python3 -c 'import resource as r
print(r.getrlimit(r.RLIMIT_NPROC), end=" ")
try: r.setrlimit(r.RLIMIT_NPROC, (1000, 1000)); print("raised")
except Exception as e: print(type(e).__name__)'`

// TestProcessLimitOfAUser: where nothing else counts processes, an agent of the code's own
// user without any privilege holds a limit by RLIMIT_NPROC. It binds the code and not the
// agent, which starts programs whatever the code does.
func TestProcessLimitOfAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		need(t, "only root can start an agent as a user that has no other processes")
	}
	const limit = 64
	a := startAgent(t, mode{
		name: "limited", args: []string{"--rlimit", "nproc=" + strconv.Itoa(limit)},
		attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nprocUser, Gid: nprocUser}},
	})
	// The threads of the agent and one subreaper a program are the user's too.
	const own = 24 + agentproto.SpareThreads
	for range 2 {
		p, err := a.client.Start(t.Context(), sh(bomb))
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 1)
		go func() {
			buf := make([]byte, 64)
			n, err := p.Stdout().Read(buf)
			if err != nil {
				said <- err.Error()
			}
			said <- string(buf[:n])
		}()
		select {
		case s := <-said:
			text, why, _ := strings.Cut(strings.TrimSpace(s), " ")
			if n, err := strconv.Atoi(text); err != nil || n > limit || n < limit-own || why != "BlockingIOError" {
				t.Errorf("the bomb said %q, want %d to %d forks and BlockingIOError", s, limit-own, limit)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the fork bomb printed nothing, want its count")
		}
		if r := a.run(sh(raise)); r.out != "(64, 64) ValueError\n" {
			t.Errorf("beside the bomb: %+v, want out = \"(64, 64) ValueError\\n\"", r)
		}
		if r := a.run(sh("(exit 7); echo forked")); strings.Contains(r.out, "forked") {
			t.Errorf("beside the bomb a program forks: %+v, want out without \"forked\"", r)
		}
		if err := a.client.Kill(t.Context(), p.ID()); err != nil {
			t.Fatal(err)
		}
		if r, err := collect(t.Context(), p); err != nil || r.exit.Reason != agentproto.KilledByRequest {
			t.Errorf("%+v, %v, want no error, Reason = KilledByRequest", r, err)
		}
		if r := a.run(sh("for i in 1 2 3; do (exit 3) & done; wait; (exit 7); echo $?")); r.out != "7\n" {
			t.Errorf("after the bomb: %+v, want out = \"7\\n\"", r)
		}
	}
}

// TestNoThreadCanBeMade: an agent goes on where the code has taken all processes that there
// may be, whatever its clients ask for and on how many CPUs. A Go program that needs a
// thread then, and has no spare one, is ended.
func TestNoThreadCanBeMade(t *testing.T) {
	if os.Geteuid() != 0 {
		need(t, "only root can limit an agent of another user")
	}
	stuck := mountStuck(t)
	asUser := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nprocUser, Gid: nprocUser}}
	defer stuck.release() // or the agent cannot even be killed
	a := startAgent(t, mode{name: "limited", attr: asUser, env: []string{"GOMAXPROCS=64"}})
	// A program starts once the agent has all it needs.
	if r := a.run(sh("true")); r.exit.Code != 0 {
		t.Fatalf("%+v, want Code = 0", r)
	}
	limit := exec.Command("prlimit", "--pid", strconv.Itoa(a.cmd.Process.Pid), "--nproc=1:1")
	limit.SysProcAttr = asUser
	if out, err := limit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := a.client.Start(t.Context(), sh("true")); err == nil {
		t.Error("a program has started: processes are not limited: got no error, want an error")
	}
	var looking sync.WaitGroup
	for i := range 50 {
		looking.Go(func() {
			if _, err := a.client.Stat(t.Context(), fmt.Sprintf("%s/%d", stuck.dir, i)); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	select {
	case <-stuck.waiting:
	case <-time.After(20 * time.Second):
		t.Fatal("no process reads the file system, want one that waits in it")
	}
	// Soon as many wait as may.
	for err := error(nil); !errors.Is(err, context.DeadlineExceeded); {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = a.client.Stat(short, "/")
		if cancel(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.client.Ping(ctx); err != nil {
		t.Fatalf("the agent has ended: %v", err)
	}
	stuck.release()
	looking.Wait()
	var archives sync.WaitGroup
	for range 50 {
		archives.Go(func() {
			if _, err := a.client.TarOut(t.Context(), "/usr/share/doc/bash", "", io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	archives.Wait()
	if err := a.client.Ping(t.Context()); err != nil {
		t.Errorf("the agent has ended: %v", err)
	}
}
