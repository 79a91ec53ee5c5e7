package transfer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

func TestCopyOutPlaces(t *testing.T) {
	guest, root := sandbox(t)
	os.MkdirAll(root+"/sandbox/out/sub/empty", 0o755)
	writeFile(t, root+"/sandbox/out/sub/f", "data")
	os.Link(root+"/sandbox/out/sub/f", root+"/sandbox/out/hard")
	writeFile(t, root+"/sandbox/f", "data")
	for name, test := range map[string]struct{ src, dest, want string }{
		"file as":          {"/sandbox/f", "new/deep/g", "new/deep/g"},
		"file into":        {"/sandbox/f", "there", "there/f"},
		"file into new":    {"/sandbox/f", "slash/", "slash/f"},
		"file for a link":  {"/sandbox/f", "link", "link"},
		"relative":         {"f", "rel", "rel"},
		"folder":           {"/sandbox/out", "d", "d/out/sub/f"},
		"folder into":      {"/sandbox/out/", "there", "there/out/sub/f"},
		"hard link":        {"/sandbox/out", "h", "h/out/hard"},
		"root":             {"/", "r", "r/root/sandbox/f"},
		"file for a file":  {"f", "file", "file"},
		"below a link":     {"f", "link-to-there/x", "there/x"},
		"folder in itself": {"/sandbox/out/.", "dot", "dot/out/sub/f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			os.Mkdir("there", 0o755)
			os.Symlink("there", "link")
			os.Symlink("there", "link-to-there")
			writeFile(t, "file", "old content")
			res, err := CopyOut(t.Context(), guest, test.src, test.dest, Options{})
			if err != nil || len(res.Skipped) != 0 {
				t.Fatalf("%+v, %v, want no error, no Skipped", res, err)
			}
			if st, err := os.Lstat(test.want); err != nil || !st.Mode().IsRegular() || readFile(t, test.want) != "data" {
				t.Fatalf("st = %v, err = %v, want no error, st.Mode().IsRegular() = true, readFile(t, test.want) = \"data\"", st, err)
			}
			if test.want == "d/out/sub/f" {
				if st, err := os.Stat("d/out/sub/empty"); err != nil || !st.IsDir() {
					t.Errorf("st = %v, err = %v, want no error, st.IsDir() = true", st, err)
				}
			}
		})
	}
}

func TestCopyOutRefuses(t *testing.T) {
	guest, root := sandbox(t)
	writeFile(t, root+"/sandbox/f", "data")
	os.MkdirAll(root+"/sandbox/links/sub", 0o755)
	os.Symlink("/etc/passwd", root+"/sandbox/links/sub/l")
	os.Symlink("f", root+"/sandbox/link")
	syscall.Mkfifo(root+"/sandbox/fifo", 0o666)
	os.Mkdir(root+"/sandbox/file", 0o755)
	os.Mkdir(root+"/sandbox/two", 0o755)
	writeFile(t, root+"/sandbox/two/a", "data")
	writeFile(t, root+"/sandbox/sparse", "")
	os.Truncate(root+"/sandbox/sparse", 1<<40)
	for name, test := range map[string]struct {
		src, dest string
		want      error
	}{
		"missing":                 {"none", "x", fs.ErrNotExist},
		"empty destination":       {"f", "", tarcheck.ErrUnsafe},
		"up":                      {"/sandbox/../etc", "x", tarcheck.ErrUnsafe},
		"link":                    {"link", "x", ErrNoSafeContent},
		"FIFO":                    {"fifo", "x", tarcheck.ErrUnsafe},
		"only links":              {"links", "x/y", ErrNoSafeContent},
		"sparse giant":            {"sparse", "x", tarcheck.ErrTooLarge},
		"folder over link":        {"two", "to-there", tarcheck.ErrUnsafe},
		"folder over link, slash": {"two", "to-there/", tarcheck.ErrUnsafe},
		"folder over file":        {"two", "file", fs.ErrExist},
		"into a folder's place":   {"two", ".", ErrNoSafeContent}, // "two" is a link here
		"file over folder":        {"f", "holds-f/", fs.ErrExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			os.MkdirAll("there", 0o755)
			os.MkdirAll("holds-f/f", 0o755)
			os.Symlink("there", "to-there")
			os.Symlink("there", "two")
			writeFile(t, "file", "kept")
			before := tree(t, ".")
			_, err := CopyOut(t.Context(), guest, test.src, test.dest, Options{})
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			for path, was := range tree(t, ".") {
				if before[path] != was && test.want != tarcheck.ErrTooLarge {
					t.Errorf("%s is now %q", path, was)
				}
			}
		})
	}
}

func TestCopyOutCancelled(t *testing.T) {
	guest, root := sandbox(t)
	writeFile(t, root+"/sandbox/sparse", "")
	os.Truncate(root+"/sandbox/sparse", 3<<30)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := CopyOut(ctx, guest, "sparse", dir, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Fatalf("returned %v after it was cancelled, want at most 2s", d)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("left %v, want none", left)
	}
}
