package hostmount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestOpen(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LLMSANDBOX_STATE_DIR", filepath.Join(dir, "elsewhere/state"))
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"tree", "elsewhere/state/sandboxes", "own"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(os.WriteFile(at("file"), nil, 0o644), os.Symlink("tree", at("link")), os.Symlink("/proc/self", at("process")), os.Symlink("loop", at("loop")),
		os.Symlink("own", at("ownlink")), syscall.Mkfifo(at("fifo"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{"tree": "tree", "link": "tree", "tree/../link/.": "tree", "file": "file"} {
		opened, err := Open([]backend.Mount{{Source: at(source), Target: "/data"}}, at("own"))
		if err != nil {
			t.Errorf("%s: %v, want no error", source, err)
			continue
		}
		if s := opened[0]; s.Source != at(want) || s.Dir != (want == "tree") || s.Mode != backend.MountReadOnly || s.File == nil {
			t.Errorf("%s: %+v, want %s, read-only", source, s, at(want))
		}
		Close(opened)
	}
	for source, want := range map[string]string{
		"/": "own folder", dir: "own folder", at("elsewhere"): "own folder", at("elsewhere/state/sandboxes"): "own folder", at("own"): "own folder", at("ownlink"): "own folder",
		at("process"): "file system of the kernel", "/proc/self/cwd": "link of /proc", "/proc/self/fd/0": "link of /proc", "/proc/1": "of the kernel", "/sys": "of the kernel", "/dev": "", "/dev/null": "neither",
		"/run": "/run", at("fifo"): "neither", at("loop"): "links", at("missing"): "no such file", at("file") + "/x": "not a directory",
	} {
		opened, err := Open([]backend.Mount{{Source: source, Target: "/data"}}, at("own"))
		Close(opened)
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want backend.ErrInvalid with %q", source, err, want)
		}
	}
	if _, err := Open([]backend.Mount{{Source: at("file"), Target: "/data", Mode: backend.MountCopyOnWrite}}); err == nil || !strings.Contains(err.Error(), "--file") {
		t.Errorf("cow of a file: %v, want an error with a remedy", err)
	}
}
