package transfer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

func TestCopyInPlaces(t *testing.T) {
	guest, root := sandbox(t)
	src := filepath.Join(t.TempDir(), "a..b.txt")
	writeFile(t, src, "data")
	os.Mkdir(root+"/sandbox/folder", 0o755)
	writeFile(t, root+"/sandbox/there", "longer than data")
	if err := os.Link(root+"/sandbox/there", root+"/sandbox/other-name"); err != nil {
		t.Fatal(err)
	}
	os.Symlink("other-name", root+"/sandbox/link")
	for dest, want := range map[string]string{
		"/sandbox/new/deep/f": "new/deep/f", "rel": "rel", "dir/": "dir/a..b.txt", "/sandbox/folder": "folder/a..b.txt",
		".": "a..b.txt", "/sandbox/.env": ".env", "x..y": "x..y", "there": "there", "link": "link",
	} {
		res, err := CopyIn(t.Context(), guest, src, dest, Options{})
		if err != nil || res.Files != 1 || res.Bytes != 4 {
			t.Errorf("to %q: %+v, %v, want no error, Files = 1, Bytes = 4", dest, res, err)
			continue
		}
		if st, err := os.Lstat(root + "/sandbox/" + want); err != nil || !st.Mode().IsRegular() || readFile(t, root+"/sandbox/"+want) != "data" {
			t.Errorf("to %q: %v, %v, want no error, st.Mode().IsRegular() = true, readFile(t, root+\"/sandbox/\"+want) = \"data\"", dest, st, err)
		}
	}
	if got := readFile(t, root+"/sandbox/other-name"); got != "longer than data" {
		t.Errorf("the other name of a replaced file now holds %q, want \"longer than data\"", got)
	}
}

func TestCopyInRefuses(t *testing.T) {
	guest, root := sandbox(t)
	dir := t.TempDir()
	writeFile(t, dir+"/f", "data")
	os.MkdirAll(dir+"/tree/sub", 0o755)
	writeFile(t, dir+"/tree/a", "data")
	syscall.Mkfifo(dir+"/tree/sub/fifo", 0o600)
	syscall.Mkfifo(dir+"/fifo", 0o600)
	os.Symlink(dir+"/tree", dir+"/to-tree")
	os.Mkdir(dir+"/two", 0o755)
	writeFile(t, dir+"/two/a", "data")
	writeFile(t, dir+"/two/b", "data")
	if err := os.MkdirAll(dir+"/deep"+strings.Repeat("/d", tarcheck.MaxDepth+1), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Symlink("/etc", root+"/sandbox/link")
	for name, test := range map[string]struct {
		src, dest string
		o         Options
		want      error
	}{
		"missing":             {dir + "/none", "x", Options{}, fs.ErrNotExist},
		"empty":               {dir + "/f", "", Options{}, tarcheck.ErrUnsafe},
		"up":                  {dir + "/f", "../x", Options{}, tarcheck.ErrUnsafe},
		"up inside":           {dir + "/f", "/sandbox/../etc/x", Options{}, tarcheck.ErrUnsafe},
		"ends up":             {dir + "/f", "a/..", Options{}, tarcheck.ErrUnsafe},
		"FIFO":                {dir + "/fifo", "x", Options{}, tarcheck.ErrUnsafe},
		"FIFO inside":         {dir + "/tree", "x", Options{}, tarcheck.ErrUnsafe},
		"FIFO inside, linked": {dir + "/to-tree", "x", Options{}, tarcheck.ErrUnsafe},
		"folder over link":    {dir + "/two", "link/", Options{}, tarcheck.ErrUnsafe},
		"large file":          {dir + "/f", "x", Options{MaxBytes: 3}, tarcheck.ErrTooLarge},
		"large folder":        {dir + "/two", "x", Options{MaxBytes: 7}, tarcheck.ErrTooLarge},
		"deep folders":        {dir + "/deep", "x", Options{}, tarcheck.ErrTooLarge},
		"many files":          {dir + "/two", "x", Options{MaxFiles: 1}, tarcheck.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := CopyIn(t.Context(), guest, test.src, test.dest, test.o); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if left, _ := os.ReadDir(root + "/sandbox"); len(left) != 1 {
				t.Errorf("left %v, want len(left) = 1", left)
			}
		})
	}
}

// TestCopyInDeep copies as deep as is allowed, which the agent unpacks.
func TestCopyInDeep(t *testing.T) {
	guest, root := sandbox(t)
	dir, deep := t.TempDir(), strings.Repeat("/d", tarcheck.MaxDepth-1)
	if err := os.MkdirAll(dir+deep, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+deep+"/f", "data")
	if res, err := CopyIn(t.Context(), guest, dir, "x", Options{}); err != nil || res.Files != 1 {
		t.Fatalf("%+v, %v, want no error, Files = 1", res, err)
	}
	if got := readFile(t, root+"/sandbox/x"+deep+"/f"); got != "data" {
		t.Errorf("got %q, want %q", got, "data")
	}
}

// TestPackGrown packs a directory that has changed since it was checked.
func TestPackGrown(t *testing.T) {
	guest, _ := sandbox(t)
	dir := t.TempDir()
	writeFile(t, dir+"/a", "data")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p := packer{src: dir, root: root, o: Options{MaxBytes: 7, MaxFiles: 9}}
	if err := p.check(t.Context(), new(Result)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/b", "data")
	if _, err := send(t.Context(), guest, "x", &p); !errors.Is(err, tarcheck.ErrTooLarge) {
		t.Errorf("more bytes: %v, want tarcheck.ErrTooLarge", err)
	}
	os.Remove(dir + "/b")
	os.Remove(dir + "/a")
	syscall.Mkfifo(dir+"/a", 0o600)
	f, err := root.OpenFile("a", openFlags, 0) // must not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	if err := p.file(f, "a"); !errors.Is(err, tarcheck.ErrUnsafe) {
		t.Errorf("now a FIFO: %v, want tarcheck.ErrUnsafe", err)
	}
}

func TestCopyInLeavesLinksOut(t *testing.T) {
	guest, root := sandbox(t)
	dir := t.TempDir()
	writeFile(t, dir+"/f", "data")
	os.Chmod(dir+"/f", 0o666|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	os.Symlink("/etc/passwd", dir+"/link")
	res, err := CopyIn(t.Context(), guest, dir, "new/dest", Options{})
	if err != nil || res.Files != 1 || len(res.Skipped) != 1 {
		t.Fatalf("%+v, %v, want no error, Files = 1, len(res.Skipped) = 1", res, err)
	}
	if st, err := os.Stat(root + "/sandbox/new/dest/f"); err != nil || st.Mode() != 0o644 {
		t.Fatalf("st = %v, err = %v, want no error, Mode = 0o644", st, err)
	}
}

func TestCopyInCancelled(t *testing.T) {
	guest, _ := sandbox(t)
	src := t.TempDir() + "/sparse"
	writeFile(t, src, "")
	if err := os.Truncate(src, 3<<30); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := CopyIn(ctx, guest, src, "x", Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if d := time.Since(start); d > time.Second {
		t.Fatalf("returned %v after it was cancelled, want at most 1s", d)
	}
}
