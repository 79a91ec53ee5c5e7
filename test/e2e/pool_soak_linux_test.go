package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/pool"
)

// held is what this process and the machine hold for sandboxes.
type held struct{ descriptors, mounts, cgroups, dirs int }

// descriptors names what this process has open.
func descriptors(t *testing.T) (all []string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		// The directory itself has been closed again.
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			all = append(all, to)
		}
	}
	slices.Sort(all)
	return all
}

// holds counts what belongs to a state directory, or to sandboxes of some ids.
func holds(t *testing.T, state string, ids *sync.Map) held {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	below := func(root string) (n int) {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // it has gone meanwhile, or was never there
			}
			for part := range strings.FieldsFuncSeq(d.Name(), func(r rune) bool { return r == '.' || r == '_' }) {
				if _, ours := ids.Load(part); ours {
					n++
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return held{len(descriptors(t)), strings.Count(string(mounts), state), below("/sys/fs/cgroup"), below(state)}
}

// TestPoolSoak: thousands of leases by tenants that meet, while sandboxes are ended at any
// time, leave nothing behind. The machine's own goroutines are TestMain's to count.
func TestPoolSoak(t *testing.T) {
	n := 5000
	if testing.Short() {
		n = 300
	}
	state := filepath.Join(t.TempDir(), "state")
	var ids sync.Map // of all sandboxes there were
	before, open := holds(t, state, &ids), descriptors(t)
	p, err := pool.New(&pool.Config{
		Options: llmsandbox.Options{Language: "bash", BestEffort: true, Backend: local.New(&local.Options{StateDir: state})},
		Max:     8, Min: 4, Reuse: pool.ReuseTenant, MaxUses: 20, RefillInterval: time.Millisecond, AcquireTimeout: 2 * time.Minute,
	})

	if err != nil {
		t.Fatal(err)
	}
	var left, killed atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for worker := range 6 {
		rng := rand.New(rand.NewPCG(1, uint64(worker)))
		tenant := string(rune('a' + worker%3))
		all.Go(func() {
			for left.Add(-1) >= 0 {
				l, err := p.Acquire(t.Context(), &pool.AcquireOptions{Tenant: tenant})
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				ids.Store(l.Sandbox().ID(), true)
				switch rng.IntN(20) {
				case 0:
					killed.Add(1)
					if err := l.Sandbox().Destroy(t.Context()); err != nil {
						t.Errorf("end a sandbox: %v", err)
					}
				case 1:
					// The holder before was the same tenant, and nothing of its run is left.
					res, err := l.Sandbox().Shell(t.Context(), "ls -A /sandbox; echo "+tenant+" >mine; sleep 1000 &", &llmsandbox.ExecOptions{KeepChildren: true})
					if err != nil || res.Stdout != "" {
						t.Errorf("%+v, %v: want an empty directory", res, err)
					}
				}
				l.Release()
			}
		})
	}
	all.Wait()
	s := p.Stats()
	if killed.Load() == 0 || s.Total > s.Max || s.Hits+s.Misses != uint64(n) {
		t.Errorf("%d killed, %+v: want some killed, at most Max, and every one served", killed.Load(), s)
	}
	if now := holds(t, state, &ids); now.dirs == 0 {
		t.Errorf("%+v: the test sees nothing of sandboxes that live, want folders != 0", now)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	t.Logf("%d killed, %+v", killed.Load(), s)
	after := holds(t, state, &ids)
	// A sandbox's disk is closed after its end is told, since that takes a while.
	for end := time.Now().Add(time.Minute); after.descriptors > before.descriptors && time.Now().Before(end); after = holds(t, state, &ids) {
		time.Sleep(10 * time.Millisecond)
	}
	if after != before {
		t.Errorf("there is %+v, and was %+v; open are %q, and were %q", after, before, descriptors(t), open)
	}
}

// TestAcceptance80Pool: the next tenant sees nothing of what the last one had in a sandbox, not
// even by the same tenant.
func TestAcceptance80Pool(t *testing.T) {
	for _, c := range []struct {
		reuse   pool.Reuse
		prepare bool // with an interpreter ahead, which a run with options does without
	}{{pool.ReuseNever, false}, {pool.ReuseTenant, false}, {pool.ReuseTenant, true}} {
		reuse, opts := c.reuse, &llmsandbox.RunOptions{Env: map[string]string{"OTHER": "1"}, KeepChildren: true}
		processes := 4
		if c.prepare { // the interpreter, what it forks next, and what is between them
			opts, processes = nil, processes+2
		}
		t.Run(fmt.Sprintf("%s-%t", c.reuse, c.prepare), func(t *testing.T) {
			p, err := pool.New(&pool.Config{
				Options: llmsandbox.Options{BestEffort: true, Backend: local.New(&local.Options{StateDir: filepath.Join(t.TempDir(), "state")})},
				Max:     1, Reuse: reuse, Prepare: c.prepare,
			})

			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.Close(testContext(t)); err != nil {
					t.Error(err)
				}
			}()
			var last string
			for i, tenant := range []string{"x", "x", "y"} {
				l, err := p.Acquire(testContext(t), &pool.AcquireOptions{Tenant: tenant})
				if err != nil {
					t.Fatal(err)
				}
				sb := l.Sandbox()
				if same := sb.ID() == last; same != (reuse == pool.ReuseTenant && i == 1) {
					t.Errorf("%d, %s: the same sandbox again: %t, want %t", i, tenant, same, reuse == pool.ReuseTenant && i == 1)
				}
				last = sb.ID()
				res, err := sb.Run(testContext(t), fmt.Sprintf(`
import glob, os, subprocess
ours = lambda f: f.startswith(".") or f in ("home", "artifacts")
print([f for d in ("/sandbox", "/tmp", "/dev/shm") for f in os.listdir(d) if not ours(f)], "SECRET" in os.environ, len(glob.glob("/proc/[0-9]*")) <= %d)
open("/sandbox/secret", "w").write("x"); open("/tmp/secret", "w").write("x")
subprocess.Popen(["sleep", "1000"], start_new_session=True)
open("plot.csv", "w").write("a")`, processes), opts)
				if err != nil || !strings.Contains(res.Stdout, "[] False True") {
					t.Errorf("%d, %s: %+v, %v, want no error, Stdout containing \"[] False True\"", i, tenant, res, err)
				}
				if all, _ := sb.Artifacts(); len(all) > 1 {
					t.Errorf("%d, %s: artifacts of somebody else: %v, want len(all) <= 1", i, tenant, all)
				}
				l.Release()
			}
		})
	}
}
