package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// A place is a backend with folders of its own, so that all that is left in them is
// its own.
type place struct {
	dir     string
	backend *local.Backend
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	return place{dir: dir, backend: local.New(local.Options{StateDir: filepath.Join(dir, "state"), CacheDir: filepath.Join(dir, "cache")})}
}

func (p place) open(t *testing.T, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Backend = p.backend
	return open(t, o)
}

// wantNothing checks that nothing of the sandboxes is left: no folder, cgroup, mount,
// loop device or process whose command line holds marker.
func (p place) wantNothing(t *testing.T, marker string, ids ...string) {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(p.dir, "state", "sandboxes"))
	if err != nil {
		t.Error(err)
	}
	for _, f := range folders {
		t.Errorf("folder left: %s", f.Name())
	}
	for _, id := range ids {
		for _, g := range groupsOf(t, id) {
			t.Errorf("cgroup left: %s", g)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, p.dir) {
			t.Errorf("mount left: %s", line)
		}
	}
	// The kernel frees a device on its own time once its last user is gone.
	left := p.loopFiles(t)
	for deadline := time.Now().Add(5 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = p.loopFiles(t) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, f := range left {
		t.Errorf("loop device left: %s", f)
	}
	if marker != "" {
		for _, pid := range processesWith(t, marker) {
			t.Errorf("process left: %d", pid)
		}
	}
}

// loopFiles lists the files of this place's disks that are still attached.
func (p place) loopFiles(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, name := range names {
		// One that vanishes meanwhile is not left.
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), p.dir) {
			left = append(left, strings.TrimSpace(string(b)))
		}
	}
	return left
}

// groupsOf finds the cgroups of a sandbox, in every hierarchy.
func groupsOf(t *testing.T, id string) []string {
	t.Helper()
	return groups(t, func(name string) bool { return strings.HasSuffix(name, "-"+id) })
}

func groups(t *testing.T, match func(name string) bool) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // others' groups come and go
		}
		if d.IsDir() && match(d.Name()) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func processesWith(t *testing.T, marker string) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), marker) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// background starts a program that outlives its run, with marker as an argument, and
// returns once it has said that it is up.
func background(t *testing.T, sb *llmsandbox.Sandbox, marker string) {
	t.Helper()
	line := "up=/tmp/up.$$; mkfifo $up; sh -c 'echo >$0; sleep 3600; :' $up " + marker + " >/dev/null 2>&1 & read _ <$up; rm $up"
	res, err := sb.Shell(testContext(t), line, &llmsandbox.ExecOptions{KeepChildren: true})
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, res, 0)
}

func TestAbuseCloseLeavesNothing(t *testing.T) {
	p := newPlace(t)
	marker := fmt.Sprintf("abuse-close-%d", os.Getpid())
	var ids []string
	for _, how := range []string{"Close", "Destroy", "attached Destroy", "pid 1 killed", "lifetime"} {
		t.Run(how, func(t *testing.T) {
			o := llmsandbox.Options{}
			if how == "lifetime" {
				o.Lifetime = time.Second
			}
			sb := p.open(t, o)
			ids = append(ids, sb.ID())
			background(t, sb, marker)
			if len(processesWith(t, marker)) == 0 {
				t.Fatal("the background program cannot be seen from outside, so nothing would show its end")
			}
			ctx := testContext(t)
			var err error
			switch how {
			case "Close":
				err = sb.Close()
			case "Destroy":
				err = sb.Destroy(ctx)
			case "attached Destroy":
				var other *llmsandbox.Sandbox
				if other, err = llmsandbox.Attach(ctx, sb.ID(), llmsandbox.AttachOptions{Backend: p.backend}); err == nil {
					err = other.Destroy(ctx)
				}
			case "pid 1 killed":
				err = unix.Kill(p.agent(t, sb.ID()), unix.SIGKILL)
			}
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-sb.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the sandbox does not end")
			}
			p.wantNothing(t, marker, ids...)
		})
	}
}

// agent is the host's pid of a sandbox's first process.
func (p place) agent(t *testing.T, id string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, "state", "sandboxes", id, "info"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), `"AgentPID":`)
	digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	pid, err := strconv.Atoi(rest[:max(digits, 0)])
	if err != nil || pid < 2 {
		t.Fatalf("no agent's pid in %s: %v", b, err)
	}
	return pid
}

const (
	ownerVariable = "LLMSANDBOX_E2E_OWNER"
	ownerMarker   = "LLMSANDBOX_E2E_MARKER"
)

// TestAbuseOwnerProcess is not a test of its own: others start it in a process that
// they kill.
func TestAbuseOwnerProcess(t *testing.T) {
	job := os.Getenv(ownerVariable)
	if job == "" {
		return
	}
	ctx := context.Background()
	b := local.New(local.Options{}) // its folders are in the environment
	o := llmsandbox.Options{Backend: b, BestEffort: true}
	switch kind, id, _ := strings.Cut(job, " "); kind {
	case "background":
		sb, err := llmsandbox.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		background(t, sb, os.Getenv(ownerMarker))
		fmt.Println("owner", sb.ID())
		<-sb.Done()
	case "churn":
		fmt.Println("owner", "-")
		for {
			sb, err := llmsandbox.Open(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := sb.Close(); err != nil {
				t.Fatal(err)
			}
		}
	case "flood":
		sb, err := llmsandbox.Attach(ctx, id, llmsandbox.AttachOptions{Backend: b, Limits: llmsandbox.Limits{Output: llmsandbox.Unlimited}})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan struct{})
		go func() {
			<-started
			fmt.Println("owner", id)
		}()
		sb.Run(ctx, "import os, sys\nwhile True: os.write(1, b'x' * 65536)",
			&llmsandbox.RunOptions{Stdout: &first{started: started}, Timeout: 5 * time.Second})
	}
}

// startProcess starts TestAbuseOwnerProcess in a process of its own, and returns it
// with the id it reports.
func (p place) startProcess(t *testing.T, job, marker string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestAbuseOwnerProcess$")
	cmd.Env = append(os.Environ(), ownerVariable+"="+job, ownerMarker+"="+marker,
		"LLMSANDBOX_STATE_DIR="+filepath.Join(p.dir, "state"), "LLMSANDBOX_CACHE_DIR="+filepath.Join(p.dir, "cache"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "owner "); ok {
			return cmd, id
		}
		t.Log(lines.Text())
	}
	t.Fatalf("the other process ended: %v", lines.Err())
	return nil, ""
}

// family are pidfds of all processes that descend from pid.
func family(t *testing.T, pid int) map[int]int {
	t.Helper()
	fds := map[int]int{}
	t.Cleanup(func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
	var add func(pid int)
	add = func(pid int) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, task := range tasks {
			b, _ := os.ReadFile(task) // a thread that has ended has no children
			for _, child := range strings.Fields(string(b)) {
				n, err := strconv.Atoi(child)
				if err != nil {
					t.Fatal(err)
				}
				if fd, err := unix.PidfdOpen(n, 0); err == nil {
					fds[n] = fd
				}
				add(n)
			}
		}
	}
	add(pid)
	return fds
}

// wantEnd waits until every process has ended.
func wantEnd(t *testing.T, fds map[int]int, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	for pid, fd := range fds {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(p, max(int(time.Until(deadline).Milliseconds()), 0))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n == 0 {
				t.Errorf("process %d lives %v after its owner (%v)", pid, within, err)
			}
			break
		}
	}
}

// TestAbuse89OwnerKilled kills an owner with a sandbox in which a program runs. The
// sandbox dies with it, a collection removes what is left, and a living sandbox of
// another owner is left alone.
func TestAbuse89OwnerKilled(t *testing.T) {
	p := newPlace(t)
	living := p.open(t, llmsandbox.Options{})
	marker := fmt.Sprintf("abuse-owner-%d", os.Getpid())
	livingMarker := marker + "-living"
	background(t, living, livingMarker)
	owner, id := p.startProcess(t, "background", marker+"-dead")
	inside := family(t, owner.Process.Pid)
	if len(inside) < 2 || len(processesWith(t, marker+"-dead")) == 0 {
		t.Fatalf("only %d processes below the owner", len(inside))
	}
	ctx := testContext(t)
	if found, err := llmsandbox.GC(ctx, p.backend); err != nil || len(found) != 0 {
		t.Errorf("a collection while all owners live: %v, %v", found, err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, inside, 5*time.Second)
	if pids := processesWith(t, marker+"-dead"); len(pids) > 0 {
		t.Errorf("processes outlive their owner: %v", pids)
	}
	list, err := llmsandbox.List(ctx, p.backend)
	if err != nil || len(list) != 1 || list[0].ID != living.ID() {
		t.Errorf("after the owner's death these live: %v, %v", list, err)
	}
	if _, err := llmsandbox.Attach(ctx, id, llmsandbox.AttachOptions{Backend: p.backend}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("attach to a sandbox without an owner: %v", err)
	}
	found, err := llmsandbox.GC(ctx, p.backend)
	if err != nil || len(found) == 0 {
		t.Errorf("the collection found %v, %v", found, err)
	}
	for _, l := range found {
		if !l.Removed || !strings.Contains(l.Name, id) {
			t.Errorf("collected %+v, want what is left of %s, removed", l, id)
		}
	}
	if g := groupsOf(t, id); len(g) > 0 {
		t.Errorf("cgroups left: %v", g)
	}
	answers(t, living)
	if len(processesWith(t, livingMarker)) == 0 {
		t.Error("the collection ended a program of a living sandbox")
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
	p.wantNothing(t, marker, id, living.ID())
}

// TestAbuse90KilledInTheMiddle kills owners while they open and close sandboxes.
func TestAbuse90KilledInTheMiddle(t *testing.T) {
	p := newPlace(t)
	ctx := testContext(t)
	for i := range 8 {
		owner, _ := p.startProcess(t, "churn", "")
		time.Sleep(time.Duration(20+i*7) * time.Millisecond)
		inside := family(t, owner.Process.Pid)
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		owner.Wait()
		wantEnd(t, inside, 5*time.Second)
	}
	found, err := llmsandbox.GC(ctx, p.backend)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		if !l.Removed {
			t.Errorf("left: %+v", l)
		}
	}
	p.wantNothing(t, "")
	sb := p.open(t, llmsandbox.Options{})
	answers(t, sb)
	// All cgroups of a place have one prefix, which a living sandbox tells.
	for _, own := range groupsOf(t, sb.ID()) {
		prefix := strings.TrimSuffix(filepath.Base(own), sb.ID())
		left := groups(t, func(name string) bool { return strings.HasPrefix(name, prefix) && name != filepath.Base(own) })
		if len(left) > 0 {
			t.Fatalf("cgroups left: %v", left)
		}
	}
}

// TestAbuse91ClientGone kills a process that follows a run in a sandbox of another
// owner. The sandbox and its agent work on, and the run ends by its own timeout.
func TestAbuse91ClientGone(t *testing.T) {
	p := newPlace(t)
	sb := p.open(t, llmsandbox.Options{})
	client, _ := p.startProcess(t, "flood "+sb.ID(), "")
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	client.Wait()
	answers(t, sb)
	const most = 40 << 20
	if rss := residentSize(t, p.agent(t, sb.ID())); rss > most {
		t.Errorf("the agent holds %d MiB for a client that is gone", rss>>20)
	}
	deadline := time.Now().Add(15 * time.Second)
	for {
		left := false
		for _, line := range processes(t, sb) {
			left = left || strings.Contains(line, "python")
		}
		if !left {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the run goes on after its timeout")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func residentSize(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// TestAbuse06Swap reads the limits that the kernel holds the sandbox to.
func TestAbuse06Swap(t *testing.T) {
	sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 64 << 20}})
	needs(t, sb, "memory")
	seen := 0
	for _, dir := range groupsOf(t, sb.ID()) {
		read := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(dir, name)) // each version has its own files
			return strings.TrimSpace(string(b))
		}
		switch {
		case read("memory.swap.max") != "":
			seen++
			if v := read("memory.swap.max"); v != "0" {
				t.Errorf("memory.swap.max is %s", v)
			}
		case read("memory.memsw.limit_in_bytes") != "":
			seen++
			if swap, memory := read("memory.memsw.limit_in_bytes"), read("memory.limit_in_bytes"); swap != memory {
				t.Errorf("memory and swap together may be %s, memory %s", swap, memory)
			}
		case read("memory.swappiness") != "":
			seen++
			if v := read("memory.swappiness"); v != "0" {
				t.Errorf("memory.swappiness is %s", v)
			}
		}
	}
	if seen == 0 {
		t.Error("memory is declared as enforced, but no cgroup of the sandbox says how")
	}
}

// TestAbuse18GroupIsEmpty looks from outside at what a run leaves in the sandbox's
// cgroup: the agent, and nothing else.
func TestAbuse18GroupIsEmpty(t *testing.T) {
	p := newPlace(t)
	sb := p.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{PIDs: 64}})
	needs(t, sb, "pids")
	agent := strconv.Itoa(p.agent(t, sb.ID()))
	for name, code := range escapes {
		t.Run(name, func(t *testing.T) {
			wantStatus(t, run(t, sb, code, &llmsandbox.RunOptions{Timeout: time.Second}), llmsandbox.StatusTimeout)
			own := groupsOf(t, sb.ID())
			if len(own) == 0 {
				t.Fatal("no cgroup of the sandbox was found")
			}
			// A supervisor reports the end of its run with its last breath, and may
			// still be on its way out.
			left := others(t, own, agent)
			for deadline := time.Now().Add(time.Second); len(left) > 0 && time.Now().Before(deadline); left = others(t, own, agent) {
				time.Sleep(10 * time.Millisecond)
			}
			for _, p := range left {
				t.Errorf("left: %s", p)
			}
		})
	}
}

// others are the processes in cgroups besides one.
func others(t *testing.T, dirs []string, but string) []string {
	t.Helper()
	var all []string
	for _, dir := range dirs {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range strings.Fields(string(b)) {
			if pid != but {
				cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline") // empty of one that ends
				all = append(all, fmt.Sprintf("%s %s %q", dir, pid, cmdline))
			}
		}
	}
	return all
}
