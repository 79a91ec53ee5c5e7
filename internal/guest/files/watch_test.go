//go:build linux

package files_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// watch returns the next event of a watch, or its end.
func watch(t *testing.T, root, path string) (next func() (agentproto.WatchEvent, error)) {
	t.Helper()
	c, real := serve(t)
	if err := os.Symlink(real, root); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	os.MkdirAll(real+"/sandbox/in/deep", 0o755)
	os.MkdirAll(real+"/elsewhere", 0o755)
	events, err := c.Watch(ctx, path, true)
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		event agentproto.WatchEvent
		err   error
	}
	items := make(chan item)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range events {
			select {
			case items <- item{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() (agentproto.WatchEvent, error) {
		select {
		case i := <-items:
			return i.event, i.err
		case <-ctx.Done():
			t.Fatal("no event came, want one")
			return agentproto.WatchEvent{}, nil
		}
	}
}

func want(t *testing.T, next func() (agentproto.WatchEvent, error), op agentproto.WatchOp, path string) {
	t.Helper()
	for {
		e, err := next()
		if err != nil {
			t.Fatalf("%v before %s", err, path)
		}
		if e.Op == op && e.Path == path {
			return
		}
	}
}

func TestWatchMovedDirs(t *testing.T) {
	root := t.TempDir() + "/root"
	next := watch(t, root, "/sandbox/")
	os.Rename(root+"/sandbox/in", root+"/sandbox/moved")
	want(t, next, agentproto.OpCreate, "/sandbox/moved/deep")
	os.WriteFile(root+"/sandbox/moved/deep/f", nil, 0o644)
	want(t, next, agentproto.OpCreate, "/sandbox/moved/deep/f")
	os.Rename(root+"/sandbox/moved", root+"/elsewhere/out")
	want(t, next, agentproto.OpRename, "/sandbox/moved")
	// Moved with its directory, but not reported any more.
	os.WriteFile(root+"/elsewhere/out/deep/g", nil, 0o644)
	os.WriteFile(root+"/sandbox/last", nil, 0o644)
	for {
		e, err := next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Path == "/sandbox/last" {
			return
		}
		if e.Path == "/sandbox/moved/deep/g" {
			t.Fatalf("a file outside of the watched directory was reported: Path = %v, want other than \"/sandbox/moved/deep/g\"", e.Path)
		}
	}
}

func TestWatchOfRoot(t *testing.T) {
	root := t.TempDir() + "/root"
	next := watch(t, root, "/")
	os.WriteFile(root+"/f", nil, 0o644)
	want(t, next, agentproto.OpCreate, "/f")
	os.Chmod(root, 0o711)
	want(t, next, agentproto.OpChmod, "/")
}

func TestWatchEndsWithItsDir(t *testing.T) {
	root := t.TempDir() + "/root"
	next := watch(t, root, "/sandbox/in")
	os.RemoveAll(root + "/sandbox/in")
	for {
		if _, err := next(); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			return
		}
	}
}
