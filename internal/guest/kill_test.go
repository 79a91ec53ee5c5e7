//go:build linux

package guest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// escapes are ways to outlive a kill; each leaves a sleep with the marker as its
// argument if it succeeds.
var escapes = map[string]string{
	"child":        `sleep MARK & wait`,
	"setsid":       `setsid sleep MARK & sleep MARK`,
	"double fork":  `(setsid sh -c 'sleep MARK & sleep 0.2') & sleep MARK`,
	"nohup":        `nohup sleep MARK >/dev/null 2>&1 & sleep MARK`,
	"ignores TERM": `trap '' TERM INT HUP QUIT; while :; do sleep MARK; done`,
	"subreaper": `exec python3 -c 'import ctypes,os,time
ctypes.CDLL(None).prctl(36,1,0,0,0)
if os.fork()==0:
  os.setsid()
  if os.fork()==0: os.execvp("sleep",["sleep","MARK"])
  os._exit(0)
time.sleep(MARK)'`,
	"stopped": `sleep MARK & kill -STOP $!; sleep MARK`,
	"threads": `exec python3 -c 'import subprocess,threading,time
for i in range(8): threading.Thread(target=lambda: subprocess.call(["sleep","MARK"])).start()'`,
	"hopper": `exec python3 -c 'import os,sys
os.environ["X"]="MARK"
while True:
  if os.fork(): os._exit(0)
  os.setsid()' MARK`,
}

func TestTimeoutLeavesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		n := 0
		for name, script := range escapes {
			n++
			mark := fmt.Sprintf("7%d%03d", time.Now().UnixNano()%1e6, n)
			req := sh(strings.ReplaceAll(script, "MARK", mark))
			req.TimeoutMillis = 500
			r := a.run(req)
			if left := alive(mark); len(left) > 0 {
				t.Errorf("%s: left: %q, want none", name, left)
			}
			if name == "hopper" {
				continue // its first process ends by itself
			}
			if r.exit.Reason != agentproto.KilledTimeout || r.exit.Signal != 9 {
				t.Errorf("%s: %+v, want Reason = KilledTimeout, Signal = 9", name, r)
			}
		}
	})
}

// TestTimeoutFromNow: a timeout that is set later counts from then, in place of the first.
func TestTimeoutFromNow(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		req := sh("sleep 600 & echo; read -r line; sleep 600")
		req.TimeoutMillis = 600_000
		p, err := a.client.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.client.KillAfter(t.Context(), p.ID(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		r, err := collect(t.Context(), p)
		if err != nil || r.exit.Reason != agentproto.KilledTimeout || r.exit.Signal != 9 {
			t.Errorf("%+v: %v, want no error, Reason = KilledTimeout, Signal = 9", r, err)
		}
		// What has ended leaves alone what it was asked to leave.
		req = sh("sleep 600 & echo $!")
		req.KeepChildren = true
		if p, err = a.client.Start(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		kept, err := collect(t.Context(), p)
		if err != nil || kept.exit.Code != 0 {
			t.Fatalf("%+v: %v, want no error, Code = 0", kept, err)
		}
		if err := a.client.KillAfter(t.Context(), p.ID(), time.Millisecond); err != nil {
			var gone *agentproto.Error
			if !errors.As(err, &gone) || gone.Code != agentproto.CodeNotFound {
				t.Error(err)
			}
		}
		if r := a.run(sh("sleep 0.2; kill -0 " + strings.TrimSpace(kept.out))); r.exit.Code != 0 {
			t.Errorf("a child that was to be kept: %+v, want Code = 0", r)
		}
		a.run(sh("kill -9 " + strings.TrimSpace(kept.out)))
	})
}

func TestForkBomb(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		if a.client.Info().CodeUID == 0 {
			t.Skip("root's processes are not limited in number by RLIMIT_NPROC")
		}
		mark := fmt.Sprintf("bomb%d", time.Now().UnixNano())
		req := sh(`exec python3 -c 'import os
while True:
  try: os.fork(); os.setsid()
  except OSError: pass' ` + mark)
		req.TimeoutMillis = 700
		req.Rlimits = []agentproto.Rlimit{{Resource: 6, Value: 100}}
		start := time.Now()
		r := a.run(req)
		if left := alive(mark); len(left) > 0 || r.exit.Reason != agentproto.KilledTimeout {
			t.Errorf("left: %d, %+v, want no left, Reason = KilledTimeout", len(left), r.exit)
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("took %v, want at most 2m", took)
		}
		if r := a.run(sh("echo ok")); r.out != "ok\n" {
			t.Errorf("afterwards: %+v, want out = \"ok\\n\"", r)
		}
	})
}

func TestBackgroundChildren(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		mark := fmt.Sprintf("8%d", time.Now().UnixNano()%1e9)
		// The child holds stdout open.
		start := time.Now()
		r := a.run(sh("echo main; setsid sleep " + mark + " & exit 5"))
		if r.out != "main\n" || r.exit.Code != 5 || r.exit.Reason != agentproto.NotKilled || time.Since(start) > 2*time.Second {
			t.Errorf("killed children: %v %+v, want out = \"main\\n\", Code = 5, Reason = NotKilled, time.Since(start) <= 2s", time.Since(start), r)
		}
		if left := alive(mark); len(left) > 0 {
			t.Errorf("left: %q, want none", left)
		}
		req := sh("echo main; setsid sleep " + mark + " & exit 5")
		req.KeepChildren = true
		r = a.run(req)
		if r.out != "main\n" || r.exit.Code != 5 {
			t.Errorf("kept children: %+v, want out = \"main\\n\", Code = 5", r)
		}
		// One that is about to become another program shows no command line.
		left := alive(mark)
		for start := time.Now(); len(left) == 0 && time.Since(start) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
			left = alive(mark)
		}
		if len(left) != 1 {
			t.Errorf("not kept: %q, want len(left) = 1", left)
		}
		if err := a.client.Kill(t.Context(), r.id); err != nil {
			t.Error(err)
		}
		if left := alive(mark); len(left) > 0 {
			t.Errorf("left after kill: %q, want none", left)
		}
	})
}

func TestKillAndShutdown(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		mark := fmt.Sprintf("9%d", time.Now().UnixNano()%1e9)
		p, err := a.client.Start(t.Context(), sh("nohup setsid sleep "+mark+" & sleep "+mark))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := p.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := alive(mark); len(left) > 0 {
			t.Errorf("left: %q, want none", left)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit.Reason != agentproto.KilledByRequest || exit.Signal != 9 {
			t.Errorf("%+v, %v, want no error, Reason = KilledByRequest, Signal = 9", exit, err)
		}
		if _, err := a.client.Start(t.Context(), sh("setsid sleep "+mark+" & sleep "+mark)); err != nil {
			t.Fatal(err)
		}
		if err := a.client.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if left := alive(mark); len(left) > 0 {
			t.Errorf("left after shutdown: %q, want none", left)
		}
	})
}

// TestSubreaperKilled: code that shares the agent's uid can kill its subreaper.
// Then its outcome is lost, and nothing of it is left.
func TestSubreaperKilled(t *testing.T) {
	a := startAgent(t, modes()[0])
	mark := fmt.Sprintf("6%d", time.Now().UnixNano()%1e9)
	req := sh("setsid sleep " + mark + " & echo before; read go; kill -9 $PPID; sleep " + mark)
	req.Stdin = true
	p, err := a.client.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	// Only now, or the subreaper dies before it has reported the start.
	p.Stdin().Write([]byte("go\n"))
	r, err := collect(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if r.exit.Known || r.out != "before\n" {
		t.Errorf("%+v, want Known false, out = \"before\\n\"", r)
	}
	if left := alive(mark); len(left) > 0 {
		t.Errorf("left: %q, want none", left)
	}
	if r := a.run(sh("echo ok")); r.out != "ok\n" {
		t.Errorf("afterwards: %+v, want out = \"ok\\n\"", r)
	}
}

func TestZombieStorm(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		r := a.run(sh(`exec python3 -c 'import os
for i in range(1500):
  p=os.fork()
  if p==0:
    if os.fork()==0: os._exit(0)
    os._exit(0)
  os.waitpid(p,0)
print("done")'`))
		if r.out != "done\n" || r.exit.Code != 0 {
			t.Errorf("%+v, want out = \"done\\n\", Code = 0", r)
		}
	})
}
