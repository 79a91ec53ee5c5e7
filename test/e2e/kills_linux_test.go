package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

const (
	// killsVariable is how many kills TestInPlaceKills makes; usualKills is for when it is not set.
	killsVariable = "LLMSANDBOX_TEST_KILLS"
	usualKills    = 20
	// seedVariable repeats the choices of an earlier run, though not their moments.
	seedVariable = "LLMSANDBOX_TEST_SEED"
	// killedVariable makes this binary the owner of a sandbox in the directory that it names, which is its id, too.
	killedVariable = "LLMSANDBOX_TEST_KILLED"
)

// killsInPlace are what can be killed, with all processes of an owner's tree that it means. What is not there yet, or any more, is the owner.
var killsInPlace = map[string]func(owner int, agent, parts []int) []int{
	"owner":           func(owner int, _, _ []int) []int { return []int{owner} },
	"agent":           func(_ int, agent, _ []int) []int { return agent },
	"killer":          func(_ int, _, parts []int) []int { return parts[:min(len(parts), 1)] },
	"agent and all":   func(_ int, agent, parts []int) []int { return slices.Concat(agent, parts) },
	"owner and agent": func(owner int, agent, _ []int) []int { return slices.Concat([]int{owner}, agent) },
	"owner and all":   func(owner int, agent, parts []int) []int { return slices.Concat([]int{owner}, agent, parts) },
}

// TestInPlaceKills: whatever of a sandbox without namespaces is killed at whatever moment, nothing is left of it.
func TestInPlaceKills(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(killsVariable))
	if err != nil {
		n = usualKills
	}
	rng := seeded(t)
	dir, err := os.MkdirTemp("", "kills")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // code of another user comes through
		t.Fatal(err)
	}
	// Whoever has lost its parent becomes this process's child: so none is overlooked.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	others := below(os.Getpid())
	whole, _ := killOne(t, dir, others, nil, 0) // how long all of it takes
	kinds := slices.Sorted(maps.Keys(killsInPlace))
	counts, running := map[string]int{}, 0
	for i := range n {
		if t.Failed() {
			break
		}
		kind, moment := kinds[rng.IntN(len(kinds))], time.Duration(rng.Int64N(int64(whole)))
		t.Run(fmt.Sprintf("%d %s %v", i, kind, moment), func(t *testing.T) {
			if _, ran := killOne(t, dir, others, killsInPlace[kind], moment); ran {
				running++
			}
		})
		counts[kind]++
	}
	t.Logf("%v of %d in a run of %v, %d of them while code ran", counts, n, whole, running)
}

// seeded says its seed.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("%s=%d", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// killOne has an owner use a sandbox, kills at that moment, unless kill is nil, and looks for what is left. It returns how long the owner took,
// and whether code ran at that moment.
func killOne(t *testing.T, dir string, others map[int]bool, kill func(owner int, agent, parts []int) []int, moment time.Duration) (took time.Duration, ran bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own := exec.Command(self, "-test.run=^$")
	var says strings.Builder
	own.Stderr = &says
	own.Env = append(os.Environ(), killedVariable+"="+dir, "TMPDIR="+dir)
	began := time.Now()
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	owner := own.Process.Pid
	if kill != nil {
		time.Sleep(moment)
		agent := childrenOf(owner)
		var parts []int
		for _, pid := range agent {
			parts = append(parts, childrenOf(pid)...)
			ran = len(parts) > 1 // besides the killer
		}
		victims := kill(owner, agent, parts)
		if len(victims) == 0 {
			victims = []int{owner}
		}
		// One that has ended is no child of this process, so that its number may be another's: it is one that was in the owner's tree just now.
		for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, pid := range victims {
				_ = unix.Kill(pid, signal)
			}
		}
	}
	werr := own.Wait()
	took = time.Since(began)
	b := killedBackend(dir)
	if own.ProcessState.Exited() {
		if werr != nil {
			t.Errorf("the owner: %v, want that it closes its sandbox:\n%s", werr, says.String())
		}
	} else {
		found, err := b.GC(testContext(t))
		if err != nil {
			t.Error(err)
		}
		for _, l := range found {
			if !l.Removed {
				t.Errorf("left over: %+v, want Removed true", l)
			}
		}
	}
	for pid := range below(os.Getpid()) {
		if !others[pid] && !ends(pid) {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it says what there is
			t.Errorf("process %d is left, want none:\n%s", pid, text)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	var left []string
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "llmsandbox-") || strings.HasPrefix(name, "uid-") || filepath.Base(filepath.Dir(path)) == "sandboxes" {
			left = append(left, path)
		}
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left, want nothing", err, left)
	}
	if groups, err := groups(func(name string) bool { return strings.HasSuffix(name, "-"+filepath.Base(dir)) }); err != nil || len(groups) > 0 {
		t.Errorf("control groups %v, %v, want none", groups, err)
	}
	return took, ran
}

// childrenOf are the processes that one has started, the oldest first. One that is gone has none.
func childrenOf(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		text, _ := os.ReadFile(list) // of a thread that is gone
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return all
}

// below are all processes below one.
func below(pid int) map[int]bool {
	all := map[int]bool{}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range childrenOf(queue[0]) {
			if !all[child] {
				all[child] = true
				queue = append(queue, child)
			}
		}
	}
	return all
}

// ends waits for the end of a process that has been killed.
func ends(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	const wait = 20_000 // ms: it has been killed, and nothing else takes long
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
	for err == unix.EINTR {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
	}
	_, _ = unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil) // it may be another's child
	return n > 0
}

func killedBackend(dir string) *local.Backend {
	return local.New(&local.Options{StateDir: filepath.Join(dir, "state"), Isolation: "process"})
}

// beKilled is for TestMain: in a process of killOne it does not return. It uses a sandbox in all ways, whose code forks without end.
func beKilled() {
	dir := os.Getenv(killedVariable)
	if dir == "" {
		return
	}
	if err := useAndClose(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// useAndClose fails only when the sandbox cannot be closed: anything else may be killed.
func useAndClose(ctx context.Context, dir string) error {
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{ID: filepath.Base(dir), BestEffort: true, Backend: killedBackend(dir)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "open:", err)
		return nil
	}
	_, err = sb.Run(ctx, toBeKilled, &llmsandbox.RunOptions{KeepChildren: true})
	if err == nil {
		var k *llmsandbox.Kernel
		if k, err = sb.Kernel(ctx, "python", nil); err == nil {
			_, err = k.Run(ctx, "import os; os.fork(); os.fork(); 1 + 1", nil)
		}
	}
	fmt.Fprintln(os.Stderr, "use:", err)
	if err := sb.Close(); !errors.Is(err, llmsandbox.ErrLost) {
		return err
	}
	return nil
}

// toBeKilled leaves daemons that ignore signals, change their numbers, and make, move and remove files.
const toBeKilled = `
import os, signal, sys
up, here = os.pipe()
for kind in range(6):
    if os.fork():
        continue
    os.setsid()
    if os.fork():
        os._exit(0)
    for n in range(1, 65):
        try: signal.signal(n, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.write(here, b"x")
    os.mkdir("d%d" % kind)
    n = 0
    while True:
        n += 1
        try:
            name = "d%d/%d" % (kind, n % 50)
            open(name, "w").close()
            os.rename(name, "moved%d" % kind)
            if kind == 0:
                if os.fork(): os._exit(0) # another number
                os.setsid()
            if kind == 1 and os.fork() == 0 or kind > 2 and n > 100: signal.pause()
            if kind == 2 and n % 100 == 0: os.chmod("d2", 0)
            if kind == 2 and n % 100 == 50: os.chmod("d2", 0o700)
        except OSError: pass
for kind in range(6): os.read(up, 1)
print("up")
`
