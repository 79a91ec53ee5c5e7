//go:build linux

package files_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/files"
)

// later waits until the clock that searches go by is past what files are stamped with now.
// A file's stamp may run ahead of it, where kernels stamp more finely than it ticks.
func later(t *testing.T, dir string) {
	t.Helper()
	var clock unix.Timespec
	for stamp := changed(t, dir); clock.Nano() <= stamp; time.Sleep(time.Millisecond) {
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &clock); err != nil {
			t.Fatal(err)
		}
	}
}

func changed(t *testing.T, dir string) int64 {
	t.Helper()
	p := filepath.Join(dir, "clock")
	os.Remove(p)
	if err := os.WriteFile(p, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(p)
	var st unix.Stat_t
	if err := unix.Stat(p, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ctim.Nano()
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func paths(found agentproto.Found) (list []string) {
	for _, f := range found.Files {
		list = append(list, f.Path)
	}
	slices.Sort(list)
	return list
}

func TestFind(t *testing.T) {
	c, root := serve(t)
	out := root + "/sandbox/out"
	for _, name := range []string{"old", "rewritten", "kept-times", "moved-from"} {
		put(t, out+"/"+name, name)
	}
	later(t, root)
	put(t, root+"/run/mark", "")
	put(t, out+"/rewritten", "now")
	put(t, out+"/deep/er/new", "new")
	put(t, out+"/kept-times", "now")
	os.Chtimes(out+"/kept-times", time.Unix(1, 0), time.Unix(1, 0))
	os.Rename(out+"/moved-from", out+"/moved-to")
	os.Symlink("rewritten", out+"/link")
	os.Symlink("..", out+"/deep/loop")
	unix.Mkfifo(out+"/fifo", 0o644)
	os.MkdirAll(root+"/run/capture", 0o755)

	req := agentproto.FindRequest{Directories: []string{"/run/capture", "/sandbox/out", "/missing", "/sandbox/out/link", "/sandbox/out/old"}, Marker: "/run/mark"}
	found, err := c.Find(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"deep/er/new", "kept-times", "moved-to", "rewritten"}
	if got := paths(found); !slices.Equal(got, want) || found.Truncated || found.Unmarked || found.Discarded {
		t.Errorf("%q (%+v), want %q", got, found, want)
	}
	later(t, root)
	since := found.NowNanos
	put(t, out+"/after", "")
	req.Marker, req.SinceNanos = "", since
	if found, err = c.Find(t.Context(), req); err != nil || !slices.Contains(paths(found), "after") || slices.Contains(paths(found), "old") {
		t.Errorf("since the first search: %q, %v, want no error, it to contain \"after\", it not to contain \"old\"", paths(found), err)
	}
	req.Marker, req.SinceNanos = "/run/none", 0
	if found, err = c.Find(t.Context(), req); err != nil || !found.Unmarked || len(found.Files) > 0 {
		t.Errorf("without its marker: %+v, %v, want no error, Unmarked true, no Files", found, err)
	}
}

func TestFindDiscards(t *testing.T) {
	c, root := serve(t)
	find := func() agentproto.Found {
		t.Helper()
		found, err := c.Find(t.Context(), agentproto.FindRequest{Directories: []string{"/run/capture", "/sandbox"}, Marker: "/run/mark", Discard: "/run"})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	put(t, root+"/run/mark", "")
	put(t, root+"/run/capture/000001.data", "x")
	if found := find(); found.Discarded || len(found.Files) != 1 {
		t.Errorf("%+v, want Discarded false, len(found.Files) = 1", found)
	}
	os.Remove(root + "/run/capture/000001.data")
	put(t, root+"/sandbox/file", "x")
	if found := find(); !found.Discarded || len(found.Files) != 1 {
		t.Errorf("%+v, want Discarded true, len(found.Files) = 1", found)
	}
	if _, err := os.Stat(root + "/run"); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v, want fs.ErrNotExist", err)
	}
}

func TestFindIsBounded(t *testing.T) {
	c, root := serve(t)
	put(t, root+"/mark", "")
	for i := range 50 {
		put(t, root+"/sandbox/many/"+strings.Repeat("n", i+1), "")
	}
	put(t, root+"/sandbox/deep/"+strings.Repeat("d/", 100)+"x", "")
	found, err := c.Find(t.Context(), agentproto.FindRequest{Directories: []string{"/sandbox/many"}, Marker: "/mark", MaxFiles: 10})
	if err != nil || !found.Truncated || len(found.Files) != 10 {
		t.Errorf("%d files, %+v, %v, want no error, Truncated true, len(found.Files) = 10", len(found.Files), found, err)
	}
	found, err = c.Find(t.Context(), agentproto.FindRequest{Directories: []string{"/sandbox/deep"}, Marker: "/mark"})
	if err != nil || !found.Truncated || len(found.Files) != 0 {
		t.Errorf("%d files, %+v, %v, want no error, Truncated true, no Files", len(found.Files), found, err)
	}
}

// TestReadBelow has links where a search has seen files and directories.
func TestReadBelow(t *testing.T) {
	c, root := serve(t)
	put(t, root+"/secret", "CANARY")
	put(t, root+"/sandbox/out/sub/file", "content")
	if got, err := c.ReadBelow(t.Context(), "/sandbox/out", "sub/file", 100); err != nil || string(got) != "content" {
		t.Errorf("%q, %v, want no error, got = \"content\"", got, err)
	}
	os.Symlink("/secret", root+"/sandbox/out/link")
	os.Symlink("/", root+"/sandbox/out/folder")
	os.Symlink("/sandbox/out", root+"/sandbox/whole")
	for _, c2 := range [][2]string{
		{"/sandbox/out", "link"}, {"/sandbox/out", "folder/secret"}, {"/sandbox/out", "../../secret"}, {"/sandbox/out", "/secret"},
		{"/sandbox/whole", "sub/file"}, {"/sandbox/out", "sub"}, {"/sandbox/out", ""}, {"/sandbox/out", "a\x00b"},
	} {
		if got, err := c.ReadBelow(t.Context(), c2[0], c2[1], 100); err == nil {
			t.Errorf("%q below %q: %q, want an error", c2[1], c2[0], got)
		}
	}
	if _, err := c.ReadBelow(t.Context(), "/sandbox/out", "sub/file", 3); codeOf(err) != agentproto.CodeTooLarge {
		t.Errorf("more than the limit: %v, want codeOf(err) = CodeTooLarge", err)
	}
}

func TestInlineDirs(t *testing.T) {
	root := t.TempDir()
	put(t, root+"/file", "")
	s, err := files.New(files.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.WriteInline([]agentproto.InlineFile{{Path: "/a/b/"}, {Path: "/file/"}, {Path: "/file/below/"}, {Path: "/last", Data: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	for path, isDir := range map[string]bool{"/a/b": true, "/file": false, "/last": false} {
		if info, err := os.Stat(root + path); err != nil || info.IsDir() != isDir {
			t.Errorf("%s: %v, %v, want no error, IsDir = %v", path, info, err, isDir)
		}
	}
}
