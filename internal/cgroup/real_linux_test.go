package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestChildIsBornInTheGroupAndTheThreadGoesBack(t *testing.T) {
	g := newGroup(t, Limits{Memory: 64 << 20, CPUs: 1, PIDs: 20})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := os.ReadFile("/proc/self/cgroup")
	c := start(t, g, "groups")
	out, err := c.end()
	if err != nil {
		t.Fatal(err)
	}
	want := 3
	if g.s.Version == V2 {
		want = 1
	}
	group := "/" + g.name
	if g.s.scopes {
		group = "/" + g.unit(c.Process.Pid)
	}
	if n := strings.Count(out, group); n < want {
		t.Fatalf("child is in %d groups, want %d:\n%s", n, want, out)
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		after, err := os.ReadFile("/proc/self/task/" + task.Name() + "/cgroup")
		if err == nil && string(after) != string(before) {
			t.Errorf("thread %s stayed, want an error or after = %q:\n%s", task.Name(), string(before), after)
		}
	}
}

func TestMemoryIsHeldAndTheKillCounted(t *testing.T) {
	g := newGroup(t, Limits{Memory: 96 << 20})
	if n, err := g.OOMKills(); !g.s.scopes && (err != nil || n != 0) { // a scope begins with its process
		t.Fatalf("OOMKills = %d, %v, want 0, no error", n, err)
	}
	c := start(t, g, "parent of memory")
	if line, err := c.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "signal: killed ") {
		t.Fatalf("%q, %v, want killed", line, err)
	}
	if n, err := g.OOMKills(); err != nil || n != 1 {
		t.Fatalf("%d kills (%v), want 1", n, err)
	}
	u, err := g.Usage()
	if err != nil || !u.MemoryKnown || u.MemoryPeak > 97<<20 || u.MemoryPeak < 48<<20 {
		t.Fatalf("%+v %v, want no error, MemoryKnown true, MemoryPeak <= 97 MiB, MemoryPeak >= 48 MiB", u, err)
	}
	if _, err := c.end(); err != nil {
		t.Fatal(err)
	}
}

func TestSwapIsNotUsed(t *testing.T) {
	if swaps, err := os.ReadFile("/proc/swaps"); err != nil || strings.Count(string(swaps), "\n") < 2 {
		t.Skip("no swap here; the machines of test/vm have some")
	}
	g := newGroup(t, Limits{Memory: 96 << 20})
	c := start(t, g, "parent of memory") // 256 MiB, of which swap could hold all
	if line, err := c.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "signal: killed ") {
		t.Errorf("%q, %v, want killed: it has found memory in the swap", line, err)
	}
	if g.swapUnlimited {
		t.Error("the group does not limit swap: g.swapUnlimited = true, want false")
	}
	if _, err := c.end(); err != nil {
		t.Fatal(err)
	}
}

func TestProcessesAreHeldAndDestroyEndsThem(t *testing.T) {
	g := newGroup(t, Limits{PIDs: 40, Reserve: 10, Memory: 256 << 20})
	c := start(t, g, "forks")
	line, _ := c.out.ReadString('\n') // it may be that not even the runtime's threads could start
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err == nil && (n == 0 || n > 50) {
		t.Fatalf("%d children under a limit of 50 tasks, want 1 to 50", n)
	}
	c.in.Close()
	c.Wait()
	if err := g.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := g.s.Stale(g.name); len(left) != 0 {
		t.Fatalf("left: %q, want none", left)
	}
}

func TestCPUIsHeld(t *testing.T) {
	g := newGroup(t, Limits{CPUs: 0.2})
	c := start(t, g, "parent of spin")
	begin := time.Now()
	line, err := c.out.ReadString('\n')
	wall := time.Since(begin) // throttled, it overruns its second by far on a slow machine
	cpu, perr := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(line, "exit status 0 ")))
	if err != nil || perr != nil || cpu > wall/2 {
		t.Fatalf("%q (%v, %v) in %v at 0.2 CPUs, want no error, cpu <= %v", line, err, perr, wall, wall/2)
	}
	if u, err := g.Usage(); err != nil || !u.CPUKnown || u.CPU == 0 {
		t.Fatalf("u = %v, err = %v, want no error, CPUKnown true, CPU != 0", u, err)
	}
	if _, err := c.end(); err != nil {
		t.Fatal(err)
	}
}

func TestKill(t *testing.T) {
	g := newGroup(t, Limits{PIDs: 40})
	c := start(t, g, "sleep")
	if err := errors.Join(g.each(kill)...); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if ws := c.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Fatalf("ProcessState = %v, want Signal = syscall.SIGKILL", c.ProcessState)
	}
}

// TestFreeze: what is frozen uses no processor, goes on afterwards, and can be ended; by handles of other processes, too.
func TestFreeze(t *testing.T) {
	for _, how := range []string{"by its maker", "by another"} {
		t.Run(how, func(t *testing.T) {
			g := newGroup(t, Limits{PIDs: 40, Memory: 256 << 20})
			c := start(t, g, "parent of spin on")
			by := g
			if how == "by another" {
				var err error
				if by, err = g.s.Open(g.name, c.Process.Pid); err != nil {
					t.Fatal(err)
				}
			}
			used := func() time.Duration {
				u, err := g.Usage()
				if err != nil || !u.CPUKnown {
					t.Fatalf("%+v, %v, want no error, CPUKnown true", u, err)
				}
				return u.CPU
			}
			goesOn := func() {
				t.Helper()
				for before, end := used(), time.Now().Add(time.Minute); used() < before+20*time.Millisecond; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("it has not gone on after a minute")
					}
				}
			}
			goesOn()
			for range 3 {
				if err := by.Freeze(t.Context()); err != nil {
					t.Fatal(err)
				}
				frozen := used()
				time.Sleep(100 * time.Millisecond)
				// The kernel may still count what was before.
				if now := used(); now > frozen+10*time.Millisecond {
					t.Errorf("frozen, it has used %v more, want next to nothing", now-frozen)
				}
				if err := by.Thaw(); err != nil {
					t.Fatal(err)
				}
				goesOn()
			}
			if err := by.Freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := g.Destroy(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err == nil {
				t.Error("frozen and destroyed, it has ended without an error, want it killed")
			}
			if left := g.s.Stale(g.name); len(left) != 0 {
				t.Errorf("left: %q, want none", left)
			}
		})
	}
}

// TestFrozenIsCollected: what a dead owner has frozen can be removed by its name.
func TestFrozenIsCollected(t *testing.T) {
	g := newGroup(t, Limits{PIDs: 40})
	if g.s.scopes {
		t.Skip("systemd removes its scopes by itself")
	}
	c := start(t, g, "parent of spin on")
	if err := g.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := g.s.Remove(t.Context(), g.name); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	if left := g.s.Stale(g.name); len(left) != 0 {
		t.Errorf("left: %q, want none", left)
	}
}

// TestTidyRemovesOldEmptyGroups: what a dead owner of an unknown state directory left goes,
// what is young or in use stays.
func TestTidyRemovesOldEmptyGroups(t *testing.T) {
	old, young, used := newGroup(t, Limits{PIDs: 40}), newGroup(t, Limits{PIDs: 40}), newGroup(t, Limits{PIDs: 40})
	if old.s.scopes {
		t.Skip("systemd removes its scopes by itself")
	}
	sleeper := start(t, used, "sleep")
	defer func() { sleeper.Process.Kill(); sleeper.Wait() }()
	for _, g := range []*Group{old, used} {
		for _, dir := range g.dirs {
			past := time.Now().Add(-2 * abandonedAge)
			if err := os.Chtimes(dir, past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := old.s.Tidy(); err != nil {
		t.Fatal(err)
	}
	for g, want := range map[*Group]int{old: 0, young: 1, used: 1} {
		if got := g.s.Stale(g.name); len(got) != want {
			t.Errorf("%s: %d groups are left, want %d", g.name, len(got), want)
		}
	}
}

func TestStaleAndRemove(t *testing.T) {
	g := newGroup(t, Limits{PIDs: 40})
	if g.s.scopes {
		t.Skip("systemd removes its scopes by itself")
	}
	if got := g.s.Stale(g.name); len(got) != 1 {
		t.Fatalf("got = %v, want len(got) = 1", got)
	}
	if err := g.s.Remove(t.Context(), g.name); err != nil {
		t.Fatal(err)
	}
	if got := g.s.Stale(g.name); len(got) != 0 {
		t.Fatalf("got = %v, want no got", got)
	}
}

func TestCreateDestroyAndTidyByManyAtOnce(t *testing.T) {
	support(t)
	var wg sync.WaitGroup
	for i := range 8 {
		s := detect("/", os.Geteuid()) // as in as many processes
		wg.Go(func() {
			for range 30 {
				g, err := s.Create(t.Context(), fmt.Sprintf("cgtest-%d-many-%d", os.Getpid(), i), Limits{Memory: 64 << 20, CPUs: 1, PIDs: 64})
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(g.Destroy(t.Context()), s.Tidy()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCreateDestroy(b *testing.B) {
	s := support(b)
	for b.Loop() {
		g, err := s.Create(context.Background(), "cgbench", Limits{Memory: 64 << 20, CPUs: 1, PIDs: 64})
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Destroy(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is the cost of a group around a process, beside that of the process.
func BenchmarkStart(b *testing.B) {
	s := support(b)
	for _, c := range []struct {
		name  string
		group bool
	}{{"bare", false}, {"group", true}} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				cmd := exec.Command("/bin/sleep", "60")
				fork := func(fd int) (int, error) {
					cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: fd >= 0, CgroupFD: max(fd, 0)}
					if err := cmd.Start(); err != nil {
						return 0, err
					}
					return cmd.Process.Pid, nil
				}
				if !c.group {
					if _, err := fork(-1); err != nil {
						b.Fatal(err)
					}
					cmd.Process.Kill()
					cmd.Wait()
					continue
				}
				g, err := s.Create(context.Background(), fmt.Sprintf("cgbench-%d-%d", os.Getpid(), n), Limits{Memory: 64 << 20, CPUs: 1, PIDs: 64})
				if err != nil {
					b.Fatal(err)
				}
				if err := g.Start(context.Background(), fork); err != nil {
					b.Fatal(err)
				}
				cmd.Process.Kill()
				cmd.Wait()
				if err := g.Destroy(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
