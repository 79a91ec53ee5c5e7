package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestCreateCopiesNoMemory writes to memory again that this process had before it made a
// sandbox. Each page of it would be a fault if the sandbox's start had copied the page tables.
func TestCreateCopiesNoMemory(t *testing.T) {
	const size = 64 << 20
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // EINVAL: the kernel has none
		t.Fatal(err)
	}
	pages := size / os.Getpagesize()
	faults := func() int64 {
		var before, after unix.Rusage
		err := unix.Getrusage(unix.RUSAGE_THREAD, &before)
		for i := range pages {
			memory[i*os.Getpagesize()]++
		}
		if err := errors.Join(err, unix.Getrusage(unix.RUSAGE_THREAD, &after)); err != nil {
			t.Fatal(err)
		}
		return after.Minflt - before.Minflt
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if n := faults(); n < int64(pages)/2 {
		t.Fatalf("%d faults in %d pages that were never written to: this test cannot tell anything", n, pages)
	}
	layer := backend.Layer{Source: t.TempDir(), Target: "/opt/layer", Writable: true} // takes a process of its own
	create(t, newBackend(t), func(s *backend.Spec) { s.Layers = []backend.Layer{layer} })
	if n := faults(); n > int64(pages)/2 {
		t.Errorf("%d faults in the %d pages that there were before, want next to none: the start has copied the page tables", n, pages)
	}
	// What changes its credentials in memory that it shares can take this from the process.
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); dumpable != 1 || err != nil {
		t.Errorf("this process is dumpable: %d, %v, want 1, no error", dumpable, err)
	}
}

func TestDeadline(t *testing.T) {
	b := newBackend(t)
	m := create(t, b, func(s *backend.Spec) { s.Deadline = time.Now().Add(300 * time.Millisecond) })
	select {
	case <-m.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the sandbox has not ended 10 s after it was made, want it ended after 300 ms")
	}
	nothingLeft(t, b, m.ID())
	if _, err := m.Dial(t.Context()); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("dialling an ended sandbox: %v, want backend.ErrNotFound", err)
	}
	if err := m.Destroy(t.Context()); err != nil {
		t.Errorf("destroying an ended sandbox: %v", err)
	}
}

func TestRequiredLimits(t *testing.T) {
	b := newBackend(t)
	for _, name := range []string{"memory", "cpus", "pids", "disk"} {
		spec := backend.Spec{ID: newID(), Limits: backend.Limits{Memory: 256 << 20, CPUs: 1, PIDs: 64, Disk: 16 << 20, Required: []string{name}}}
		m, err := b.Create(t.Context(), spec)
		if err != nil {
			if !errors.Is(err, backend.ErrNotEnforced) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
			nothingLeft(t, b, spec.ID)
			spec.BestEffort = true
			if m, err = b.Create(t.Context(), spec); err != nil {
				t.Errorf("%s at best effort: %v", name, err)
				continue
			}
		} else if c, _ := m.Capabilities().Get(name); !c.Enforced {
			t.Errorf("%s was required and is not enforced: %+v, want Enforced true", name, c)
		}
		if err := m.Close(nil); err != nil {
			t.Error(err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	b := newBackend(t)
	const n = 20
	var wg sync.WaitGroup
	var ids [n]string
	for i := range n {
		wg.Go(func() {
			m := create(t, b, nil)
			ids[i] = m.ID()
			want := fmt.Sprintf("%d\n", i)
			if got := shell(t, m, "echo "+want[:len(want)-1]+" >/sandbox/n; cat /sandbox/n"); got != want {
				t.Errorf("sandbox %d prints %q, want %q", i, got, want)
			}
			if err := m.Close(nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		nothingLeft(t, b, id)
	}
}

func TestImageMissing(t *testing.T) {
	b := newBackend(t)
	spec := backend.Spec{ID: newID(), Image: t.TempDir() + "/nothing.tar"}
	if _, err := b.Create(t.Context(), spec); err == nil {
		t.Fatal("a sandbox of an image that does not exist was made: got no error, want an error")
	} else {
		t.Log(err)
	}
	nothingLeft(t, b, spec.ID)
}

// brokenIsolator starts nothing, before or after it has asked for what goes into a sandbox.
type brokenIsolator struct {
	namespaces
	after bool
	got   contents
}

var errBroken = errors.New("broken")

func (b *brokenIsolator) start(_ context.Context, l *launch) (*process, error) {
	if b.after {
		var err error
		if b.got, err = l.contents(); err != nil {
			return nil, err
		}
	}
	return nil, errBroken
}

// TestIsolatorFails: what Create has made is taken back, however far the isolator got.
func TestIsolatorFails(t *testing.T) {
	for _, after := range []bool{false, true} {
		b := newBackend(t)
		broken := &brokenIsolator{after: after}
		b.isolator = broken
		source, err := layersOf(t, b).Get(t.Context(), backend.LayerInfo{Key: "a"}, fillOne)
		if err != nil {
			t.Fatal(err)
		}
		spec := backend.Spec{ID: newID(), Layers: []backend.Layer{{Source: source, Target: "/opt/layer"}}}
		if _, err := b.Create(t.Context(), spec); !errors.Is(err, errBroken) {
			t.Errorf("after %v: error %v, want %v", after, err, errBroken)
		}
		nothingLeft(t, b, spec.ID)
		if after && !slices.ContainsFunc(broken.got.mounts, func(m mount) bool { return m.kind == mountBind && m.source == source && m.target == "/opt/layer" }) {
			t.Errorf("mounts %+v, want the layer among them", broken.got.mounts)
		}
		if err := layersOf(t, b).Remove(t.Context(), "a"); err != nil {
			t.Errorf("the layer is held still: %v", err)
		}
	}
}

// TestAgentEndsDuringSetup: an agent that dies before it has answered fails the start, which
// does not wait for ever.
func TestAgentEndsDuringSetup(t *testing.T) {
	b := newBackend(t)
	program, err := exec.LookPath("true")
	if err != nil {
		unable(t, err.Error())
	}
	b.options.agent = program
	id := newID()
	if _, err := b.Create(t.Context(), backend.Spec{ID: id}); err == nil {
		t.Error("a sandbox without an agent was made, want an error")
	}
	nothingLeft(t, b, id)
}

func TestBadSpecs(t *testing.T) {
	b := newBackend(t)
	for _, spec := range []backend.Spec{
		{ID: ""}, {ID: "../x"}, {ID: "A"}, {ID: strings.Repeat("a", 41)},
		{ID: "a", Limits: backend.Limits{Memory: -1}}, {ID: "a", Limits: backend.Limits{Memory: 1}},
		{ID: "a", Env: []string{"novalue"}}, {ID: "a", Layers: []backend.Layer{{Source: "/usr", Target: "/a/../b"}}},
		{ID: "a", Layers: []backend.Layer{{Source: "/does/not/exist", Target: "/a"}}},
	} {
		if m, err := b.Create(t.Context(), spec); err == nil {
			m.Close(nil)
			t.Errorf("%+v is accepted, want an error", spec)
		}
	}
	nothingLeft(t, b, "a")
}

func TestIDTaken(t *testing.T) {
	b := newBackend(t)
	m := create(t, b, nil)
	if _, err := b.Create(t.Context(), backend.Spec{ID: m.ID()}); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("a second sandbox of one id: %v, want backend.ErrLocked", err)
	}
	if got := shell(t, m, "echo alive"); got != "alive\n" {
		t.Errorf("the first one prints %q, want \"alive\\n\"", got)
	}
}
