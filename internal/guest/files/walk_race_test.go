//go:build linux

package files

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWalkAgainstMoves moves a directory out of the tree and in again, and exchanges one
// for a link to outside, while paths lead through both and up again.
func TestWalkAgainstMoves(t *testing.T) {
	root := t.TempDir()
	in, out := filepath.Join(root, "in"), filepath.Join(root, "out")
	for _, dir := range []string{in + "/a/b", in + "/x", out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{root + "/canary", out + "/canary"} {
		if err := os.WriteFile(name, []byte("CANARY"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, in+"/y"); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			// What fails is made up for by the next round.
			_ = unix.Rename(in+"/a/b", out+"/b")
			_ = unix.Renameat2(unix.AT_FDCWD, in+"/x", unix.AT_FDCWD, in+"/y", unix.RENAME_EXCHANGE)
			_ = unix.Rename(out+"/b", in+"/a/b")
		}
	}()
	defer func() { close(stop); <-done }()
	dir := openDir(t, in)
	reached := 0
	for i := range 20_000 {
		path := []string{"a/b/../../canary", "a/b/../canary", "x/canary", "x/../canary"}[i%4]
		for _, resolve := range []uint64{inRoot, beneath} {
			for _, flags := range []int{readFlags, writeFlags, unix.O_PATH} {
				if fd, err := walk(dir, path, flags, 0, resolve); err == nil {
					unix.Close(fd)
					t.Fatalf("%q led outside, want an error", path)
				}
			}
			if fd, err := walk(dir, "a/b/..", unix.O_PATH, 0, resolve); err == nil {
				unix.Close(fd)
				reached++
			}
		}
	}
	if reached == 0 {
		t.Errorf("no walk came through the directory that was moved: reached = %v, want other than 0", reached)
	}
}
