//go:build linux

package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// smallDisk is a file system for an engine, big enough for what a test brings.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		testimage.Unavailable(t, "mounting a small file system needs root")
	}
	dir, err := os.MkdirTemp("/tmp", "llmsandbox-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{unix.Unmount(dir, unix.MNT_DETACH), os.Remove(dir)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return dir
}

// fillDisk takes all but some bytes of a file system, until free is called.
func fillDisk(t *testing.T, dir string, leave int64) (free func()) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-leave); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNoSpace checks that an error tells of a full disk.
func wantNoSpace(t *testing.T, sb *llmsandbox.Sandbox, err error) {
	t.Helper()
	if err == nil {
		_ = sb.Close()
		t.Fatal("a sandbox on a full disk opens: got no error, want an error")
	}
	if !strings.Contains(err.Error(), "disk of docker is full: make room") {
		t.Errorf("%v: want it to tell of the full disk, and what to do", err)
	}
}

// A full disk is reported, and nothing incomplete is used once there is room.
func TestFaultsDiskFull(t *testing.T) {
	leakFree(t)
	dir := smallDisk(t, "64m")
	p := testengine.PrivateDocker(t, "--data-root="+dir)
	path := testimage.Save(t, faultsImage, testimage.Busybox(t, nil))
	b, c := privateBackend(t, p, engine.Options{KeepImage: true})
	open := func(name string) (*llmsandbox.Sandbox, error) {
		return llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: name, BestEffort: true})
	}
	// Room for the image, or the agent, in half.
	free := fillDisk(t, dir, 1<<20)
	sb, err := open(path)
	wantNoSpace(t, sb, err)
	free()
	p.Load(t, path)
	free = fillDisk(t, dir, 1<<20)
	sb, err = open(faultsImage)
	wantNoSpace(t, sb, err)
	free()
	free = fillDisk(t, dir, 16<<10) // no room for the build's first container
	building, err := backendAt(b.Name()+" "+p.Host, engine.Options{Build: &engine.Build{
		Content: "FROM " + faultsImage + "\nRUN head -c 4000000 /dev/zero >/big\n", Network: "none",
	}})
	if err != nil {
		t.Fatal(err)
	}
	sb, err = llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: building, BestEffort: true})
	wantNoSpace(t, sb, err)
	free()
	sb, err = llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: building, BestEffort: true})
	if err != nil {
		t.Fatalf("build once there is room: %v", err)
	}
	if out := inside(t, sb, "wc -c </big"); out != "4000000\n" {
		t.Errorf("what was built has %q bytes, want \"4000000\\n\"", out)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{faultsImage, path} {
		sb, err := open(name)
		if err != nil {
			t.Fatalf("%s, once there is room: %v", name, err)
		}
		testfaults.Works(t, sb)
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
	wantNothing(t, b, c)
}
