package testengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// A Private is a Docker daemon of one test, which may do to it what it likes. It has
// no images but what Load gives it, and ends with the test.
type Private struct {
	Host     string // what reaches it without encryption, whatever its options
	DataRoot string

	engine *Engine // nil: does not run
	dir    string
	args   []string
	// mounts is the first daemon's mount namespace, in which the containers that
	// outlive it have their files.
	mounts *os.File
}

// PrivateDocker starts a daemon of the test's own, with further options of dockerd,
// such as --host=tcp://127.0.0.1:2376 and --tlsverify.
func PrivateDocker(t testing.TB, args ...string) *Private {
	t.Helper()
	// Not t.TempDir: a daemon's sockets want a short path.
	dir, err := os.MkdirTemp("/tmp", "llmsandbox-engine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &Private{dir: dir, args: args}
	p.Start(t)
	t.Cleanup(func() {
		if p.engine == nil {
			p.Start(t) // for it to end what it had started
		}
		if err := errors.Join(p.engine.stop(), p.mounts.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Start starts the daemon again, on the same data and the same socket.
func (p *Private) Start(t testing.TB) {
	t.Helper()
	run := filepath.Join(p.dir, "run")
	if err := ownDir(run, os.Geteuid()); err != nil {
		t.Fatal(err)
	}
	e, err := dockerIn(context.WithoutCancel(t.Context()), p.dir, run, p.mounts, p.args...)
	testimage.Must(t, err)
	p.engine, p.Host, p.DataRoot = e, e.Host, e.DataRoot
	if p.mounts != nil {
		return
	}
	if p.mounts, err = os.Open(fmt.Sprintf("/proc/%d/ns/mnt", e.daemon.cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
}

// Load puts the images of a `docker save` file into the engine.
func (p *Private) Load(t testing.TB, path string) {
	t.Helper()
	p.engine.Load(t, path)
}

// Stop ends the daemon in good order; its containers end with it, unless it has
// --live-restore.
func (p *Private) Stop(t testing.TB) {
	t.Helper()
	d := p.engine.daemon
	p.engine = nil
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the daemon as a crash does. Its containers go on for as long as no daemon
// starts on the same data.
func (p *Private) Kill(t testing.TB) {
	t.Helper()
	d := p.engine.daemon
	p.engine = nil
	if err := d.kill(); err != nil {
		t.Fatal(err)
	}
	// The kernel has ended its containerd too. But until the machine's first process has
	// taken note, the next daemon would take that for alive, and wait for it.
	if err := os.Remove(filepath.Join(p.dir, "run", "exec", "containerd", "containerd.pid")); err != nil {
		t.Fatal(err)
	}
}
