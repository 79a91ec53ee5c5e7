//go:build linux

package engine

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

//go:embed testdata/probe.py
var probe string

// TestAgentIsClosedToCode: code of the agent's own uid can neither look into it nor do
// anything to it, with our filter and without.
func TestAgentIsClosedToCode(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		for name, args := range map[string][]string{"filter": {"--seccomp", "/llmsandbox/seccomp"}, "no filter": nil} {
			t.Run(name, func(t *testing.T) {
				c := runAgent(t, e, nil, args)
				control, _ := c.exec(t, "python3", "-c", probe, agentToken, agentAddress, "control")
				for _, want := range []string{"child environ\n", "child mem\n", "child fd\n", "child exe\n", "child write\n"} {
					if !strings.Contains(control, want) {
						t.Errorf("the probe cannot even look into its own child: %q, want it to contain %q", control, want)
					}
				}
				out, exit := c.exec(t, "python3", "-c", probe, agentToken, agentAddress, "agent")
				if out != "done\n" || !exit.Known {
					t.Errorf("code succeeded in, want out = \"done\\n\", Known true:\n%s%+v", out, exit)
				}
				if out, _ := c.exec(t, "env"); out != "PATH=/usr/local/bin:/usr/bin:/bin\n" {
					t.Errorf("a program's environment is not what was asked for: %q, want \"PATH=/usr/local/bin:/usr/bin:/bin\\n\"", out)
				}
			})
		}
	})
}

// TestBridgeIsClosedToCode: code that looks at every new process never sees the token in
// one that the engine starts to reach the agent.
func TestBridgeIsClosedToCode(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		c := runAgent(t, e, nil, nil)
		p, err := c.client.Start(t.Context(), agentproto.StartRequest{Stdin: true, Argv: []string{"python3", "-uc", `
import os, select, sys
token, seen, bridges = sys.argv[1].encode(), 0, set()
print("looking")
while not select.select([0], [], [], 0)[0]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"connect" in open("/proc/%s/cmdline" % pid, "rb").read():
                bridges.add(pid)
            seen += token in open("/proc/%s/environ" % pid, "rb").read()
        except OSError:
            pass
print(len(bridges) > 0, seen)
`, agentToken}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(p.Stdout())
		if line, err := out.ReadString('\n'); line != "looking\n" {
			t.Fatalf("%q, %v, want \"looking\\n\"", line, err)
		}
		for range 10 {
			bridge := dockerCommand(t.Context(), e, "exec", "-i", c.name, "/llmsandbox/agent", "connect", "@"+agentAddress)
			if err := connectTo(t, bridge, agentToken).Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		if line, err := out.ReadString('\n'); line != "True 0\n" {
			t.Errorf("saw bridges, and the token: %q, %v, want \"True 0\\n\"", line, err)
		}
	})
}

// TestOwnerKilled: a sandbox whose owner is killed ends by itself.
func TestOwnerKilled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		c := runAgent(t, e, nil, nil)
		if _, err := c.client.Start(t.Context(), agentproto.StartRequest{Argv: []string{"/bin/sh", "-c", "yes"}}); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-c.gone; err != nil {
			t.Error(err)
		}
	})
}

// TestDeadline: a sandbox ends when its time has come, whatever runs and whichever clients are connected.
func TestDeadline(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		at := time.Now().Add(5 * time.Second)
		c := runAgent(t, e, nil, []string{"--deadline", strconv.FormatInt(at.UnixMilli(), 10)})
		p, err := c.client.Start(t.Context(), agentproto.StartRequest{Argv: []string{"/bin/sh", "-c", "sleep 600"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-c.gone; err != nil {
			t.Error(err)
		}
		if early := time.Until(at); early > 0 {
			t.Errorf("it ended %v before its deadline, want at most 0", early)
		}
		if exit, err := p.Wait(t.Context()); err == nil && exit.Known && exit.Signal == 0 {
			t.Errorf("%+v, want an error or Known false or Signal != 0", exit)
		}
	})
}

// TestOOMByAgent: the agent tells of the kernel's kills for memory, and of none where
// there was none.
func TestOOMByAgent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); e.Rootless && err != nil {
			t.Skip("an ordinary user's engine has no memory limit under cgroup v1")
		}
		c := runAgent(t, e, []string{"--memory", "64m", "--memory-swap", "64m"}, nil)
		out, exit := c.exec(t, "/bin/sh", "-c", "kill -9 $$")
		if exit.Signal != 9 || !exit.OOMKnown || exit.OOMKills != 0 {
			t.Errorf("killed by itself: %q, %+v, want Signal = 9, OOMKnown true, OOMKills = 0", out, exit)
		}
		out, exit = c.exec(t, "python3", "-c", "b = []\nwhile True: b.append(bytearray(1 << 20))")
		if exit.Signal != 9 || !exit.OOMKnown || exit.OOMKills == 0 {
			t.Errorf("out of memory: %q, %+v, want Signal = 9, OOMKnown true, OOMKills != 0", out, exit)
		}
		out, exit = c.exec(t, "/bin/sh", "-c", "python3 -c 'b = []\nwhile True: b.append(bytearray(1 << 20))'; exit 4")
		if exit.Code != 4 || exit.OOMKills == 0 {
			t.Errorf("a child out of memory: %q, %+v, want Code = 4, OOMKills != 0", out, exit)
		}
	})
}

// TestBroughtIn: an agent that is started in an existing container takes all that it
// started along, and nothing else.
func TestBroughtIn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		name := "agent-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		other := dockerCommand(t.Context(), e, "run", "-d", "--name", name, "--network", "none", "--volume", agentDir(t, e)+":/llmsandbox:ro",
			e.Images(t)("python"), "sleep", "4444")
		if out, err := other.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Cleanup(func() { _ = dockerCommand(context.Background(), e, "rm", "-f", name).Run() })
		for how, user := range map[string][]string{"as the code": nil, "as root": {"--user", "0"}} {
			args := append([]string{"exec", "-i", "--env", "LLMSANDBOX_TOKEN=" + agentToken}, user...)
			args = append(args, name, "/llmsandbox/agent", "serve", "--stdio", "--listen", "@"+agentAddress,
				"--token-env", "LLMSANDBOX_TOKEN", "--grace", "1")
			if user != nil {
				args = append(args, "--uid", "1000", "--gid", "1000")
			}
			c := &agentContainer{client: connectTo(t, dockerCommand(t.Context(), e, args...), "")}
			// One for which no process waits, in a session of its own.
			p, err := c.client.Start(t.Context(), agentproto.StartRequest{KeepChildren: true, Merge: true,
				Argv: []string{"/bin/sh", "-c", "setsid setsid sleep 5555 </dev/null >/dev/null 2>&1 & echo started"}})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := io.ReadAll(p.Stdout()); err != nil || string(out) != "started\n" {
				t.Fatalf("%q, %v, want no error, out = \"started\\n\"", out, err)
			}
			if err := c.client.Shutdown(t.Context()); err != nil && !errors.Is(err, agentproto.ErrStreamLost) {
				t.Errorf("%s: %v, want no error or agentproto.ErrStreamLost", how, err)
			}
			<-c.client.Done()
			list := `for f in /proc/[0-9]*/cmdline; do tr "\0" " " <$f; echo; done; true`
			runs, err := dockerCommand(t.Context(), e, "exec", name, "/bin/sh", "-c", list).CombinedOutput()
			if err != nil || strings.Contains(string(runs), "5555") || !strings.Contains(string(runs), "sleep 4444") {
				t.Errorf("%s: %v, what runs, want no error, runs without \"5555\", runs containing \"sleep 4444\":\n%s", how, err, runs)
			}
		}
	})
}
