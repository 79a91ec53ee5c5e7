//go:build linux

package files_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func archiveOf(t *testing.T, content string, headers ...tar.Header) *bytes.Reader {
	t.Helper()
	return bytes.NewReader(testtar.Archive(t, testtar.Filled(content, headers...)...))
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }

// TestTarInReplaces has all kinds of things where files go.
func TestTarInReplaces(t *testing.T) {
	c, root := serve(t)
	dir := root + "/sandbox/"
	os.WriteFile(dir+"canary", []byte("CANARY"), 0o644)
	os.Link(dir+"canary", dir+"hard")
	os.Symlink("canary", dir+"link")
	os.Symlink("none", dir+"dangling")
	unix.Mkfifo(dir+"fifo", 0o600)
	os.WriteFile(dir+"file", []byte("longer than before"), 0o400)
	names := []string{"hard", "link", "dangling", "fifo", "file", "a/b/c"}
	headers := make([]tar.Header, len(names))
	for i, name := range names {
		headers[i] = file(name)
	}
	res, err := c.TarIn(t.Context(), "/sandbox", archiveOf(t, "new", headers...), agentclient.TarLimits{})
	if err != nil || res.Files != uint64(len(names)) || len(res.Skipped) != 0 {
		t.Fatalf("%+v, %v, want no error, Files = %v, no Skipped", res, err, uint64(len(names)))
	}
	for _, name := range names {
		st, err := os.Lstat(dir + name)
		if b, _ := os.ReadFile(dir + name); err != nil || st.Mode() != 0o644 || string(b) != "new" {
			t.Errorf("%s: %v, %v, %q, want no error, Mode = 0o644, b = \"new\"", name, st, err, b)
		}
	}
	if b, _ := os.ReadFile(dir + "canary"); string(b) != "CANARY" {
		t.Errorf("canary is %q, want b = \"CANARY\"", b)
	}
}

func TestTarInDirs(t *testing.T) {
	c, root := serve(t)
	dir := root + "/sandbox/"
	os.MkdirAll(dir+"theirs", 0o755)
	os.Chmod(dir+"theirs", 0o777|os.ModeSticky)
	os.WriteFile(dir+"file", nil, 0o644)
	os.Symlink("theirs", dir+"link")
	directory := func(name string, mode int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: mode}
	}
	res, err := c.TarIn(t.Context(), "/sandbox", archiveOf(t, "new", directory("new/", 0o7777), directory("closed/", 0), file("closed/f"), directory("theirs/", 0o700), file("link/f"), directory("link/", 0o700)),
		agentclient.TarLimits{})
	if err != nil || res.Files != 1 || len(res.Skipped) != 2 || !strings.Contains(res.Skipped[0], "symbolic link") {
		t.Fatalf("%+v, %v, want no error, Files = 1, len(res.Skipped) = 2, res.Skipped[0] containing \"symbolic link\"", res, err)
	}
	for name, want := range map[string]os.FileMode{"new": 0o755, "closed": 0o700, "theirs": 0o777 | os.ModeSticky} {
		if st, err := os.Lstat(dir + name); err != nil || st.Mode() != want|os.ModeDir {
			t.Errorf("%s: %v, %v, want no error, Mode = %v", name, st, err, want|os.ModeDir)
		}
	}
	for name, want := range map[string]agentproto.ErrorCode{"file/x": agentproto.CodeNotDir, "theirs": agentproto.CodeIsDir} {
		if _, err := c.TarIn(t.Context(), "/sandbox", archiveOf(t, "new", file(name)), agentclient.TarLimits{}); codeOf(err) != want {
			t.Errorf("%s: %v, want codeOf(err) = %v", name, err, want)
		}
	}
	cut := io.LimitReader(archiveOf(t, "new", file("a"), file("b")), 1024)
	for name, r := range map[string]io.Reader{"a damaged archive": strings.NewReader(strings.Repeat("x", 2000)), "a part of an archive": cut} {
		if _, err := c.TarIn(t.Context(), "/sandbox", r, agentclient.TarLimits{}); codeOf(err) != agentproto.CodeBadRequest {
			t.Errorf("%s: %v, want code %v", name, err, agentproto.CodeBadRequest)
		}
	}
	deep := archiveOf(t, "new", file(strings.Repeat("d/", tarcheck.MaxDepth)+"f"))
	if _, err := c.TarIn(t.Context(), "/sandbox", deep, agentclient.TarLimits{}); codeOf(err) != agentproto.CodeTooLarge {
		t.Errorf("directories without end: %v, want code %v", err, agentproto.CodeTooLarge)
	}
}

// TestTarOutSkips has what cannot be read, or is not quite what an archive can hold:
// the rest is still sent.
func TestTarOutSkips(t *testing.T) {
	c, root := serve(t)
	asOrdinaryUser(t, root)
	dir := root + "/sandbox/"
	for _, name := range []string{"a", "bad\xff\xfe", "new\nline", strings.Repeat("x", 255), "old", "future", "unreadable", "z"} {
		if err := os.WriteFile(dir+name, []byte("data"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(dir+"unreadable", 0)
	os.Chtimes(dir+"old", time.Time{}, time.Unix(-1<<31, 0))
	os.Chtimes(dir+"future", time.Time{}, time.Unix(1<<33+5, 7))
	mkdir(t, dir+"closed/sub")
	os.Chmod(dir+"closed", 0)
	t.Cleanup(func() { os.Chmod(dir+"closed", 0o755) })
	os.Link(dir+"a", dir+"hard")
	os.Symlink("a", dir+"link")
	unix.Mkfifo(dir+"fifo", 0o600)
	var out bytes.Buffer
	res, err := c.TarOut(t.Context(), "/sandbox", "top", &out)
	if err != nil || res.Files != 8 || len(res.Skipped) != 4 {
		t.Fatalf("%+v, %v, want no error, Files = 8, len(res.Skipped) = 4", res, err)
	}
	tr := tar.NewReader(&out)
	files := 0
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files++
			if b, err := io.ReadAll(tr); string(b) != "data" || err != nil {
				t.Errorf("%q: %q, %v, want b = \"data\", no error", h.Name, b, err)
			}
		}
	}
	if files != 8 {
		t.Errorf("%d files, want 8", files)
	}
}

// truncater shortens a file once its archive begins to come.
type truncater struct {
	got  bytes.Buffer
	path string
}

func (w *truncater) Write(p []byte) (int, error) {
	if err := os.Truncate(w.path, 100); err != nil {
		return 0, err
	}
	return w.got.Write(p)
}

func TestTarOutOfShrinkingFile(t *testing.T) {
	c, root := serve(t)
	path := root + "/sandbox/f"
	const size = 8 << 20
	os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o644)
	os.WriteFile(root+"/sandbox/g", []byte("g"), 0o644)
	w := &truncater{path: path}
	res, err := c.TarOut(t.Context(), "/sandbox/f", "f", w)
	if err != nil || res.Files != 1 || len(res.Skipped) != 1 || !strings.Contains(res.Skipped[0], "zeros") {
		t.Fatalf("%+v, %v, want no error, Files = 1, len(res.Skipped) = 1, res.Skipped[0] containing \"zeros\"", res, err)
	}
	tr := tar.NewReader(&w.got)
	if h, err := tr.Next(); err != nil || h.Size != size {
		t.Fatalf("h = %v, err = %v, want no error, Size = %v", h, err, size)
	}
	if n, err := io.Copy(io.Discard, tr); n != size || err != nil {
		t.Fatalf("n = %v, err = %v, want n = %v, no error", n, err, size)
	}
}

// TestTarOutSkipsDeepNames has more skipped files than a message holds names of, at
// their full length.
func TestTarOutSkipsDeepNames(t *testing.T) {
	c, root := serve(t)
	fd, err := unix.Open(root+"/sandbox", unix.O_PATH, 0)
	for range 190 {
		name := strings.Repeat("\x01", 255)
		if err == nil {
			err = unix.Mkdirat(fd, name, 0o755)
		}
		next, openErr := unix.Openat(fd, name, unix.O_PATH, 0)
		unix.Close(fd)
		if err != nil || openErr != nil {
			t.Fatalf("err = %v, openErr = %v, want no error", err, openErr)
		}
		fd = next
	}
	for i := range 120 {
		if err := unix.Symlinkat("x", fd, strings.Repeat("\x02", 250)+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(fd)
	res, err := c.TarOut(t.Context(), "/sandbox", "top", io.Discard)
	if err != nil || len(res.Skipped) != 100 {
		t.Fatalf("len(res.Skipped) = %v, err = %v, want no error, len(res.Skipped) = 100", len(res.Skipped), err)
	}
	if err := c.Remove(t.Context(), "/sandbox", all); err != nil {
		t.Fatal(err)
	}
}
