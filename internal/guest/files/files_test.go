//go:build linux

package files_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/files"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

type handler struct{ *files.Service }

func (h handler) ServeCall(c *agentproto.Call) { h.Service.ServeCall(c) }

// serve returns a client of a service whose root is a fresh directory with a work directory.
func serve(t *testing.T) (c *agentclient.Client, root string) {
	t.Helper()
	c, root, _ = serveFiles(t)
	return c, root
}

// serveFiles returns the service as well.
func serveFiles(t *testing.T) (c *agentclient.Client, root string, s *files.Service) {
	t.Helper()
	root = t.TempDir()
	if err := os.Mkdir(root+"/sandbox", 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := files.New(files.Options{Root: root, Workdir: "/sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		agentproto.Server(far, agentproto.Hello{Arch: "test"}, 0, handler{s})
	}()
	c, err = agentclient.Connect(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); <-served; s.Close() })
	return c, root, s
}

func write(t *testing.T, c *agentclient.Client, path, data string) error {
	_, err := c.WriteFile(t.Context(), path, strings.NewReader(data), agentclient.WriteOptions{Create: true, Truncate: true, Parents: true})
	return err
}

func codeOf(err error) agentproto.ErrorCode {
	var e *agentproto.Error
	errors.As(err, &e)
	if e == nil {
		return 0
	}
	return e.Code
}

func TestRoundTrip(t *testing.T) {
	c, root := serve(t)
	big := strings.Repeat("\x00\xffabc", 500_000)
	for _, data := range []string{"", "x", big} {
		if err := write(t, c, "a/b/a..b.txt", data); err != nil {
			t.Fatal(err)
		}
		got, err := c.ReadAll(t.Context(), "/sandbox/a/b/a..b.txt", 1<<30)
		if err != nil || string(got) != data {
			t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(data))
		}
	}
	if err := c.Rename(t.Context(), "a/b/a..b.txt", "a/c"); err != nil {
		t.Fatal(err)
	}
	if err := c.Chmod(t.Context(), "a/c", 0o4755); err != nil {
		t.Fatal(err)
	}
	info, err := c.Stat(t.Context(), "a/c")
	if err != nil || info.Mode != 0o755 || info.Size != uint64(len(big)) || info.Name != "c" {
		t.Fatalf("stat: %+v, %v, want no error, Mode = 0o755, Size = %v, Name = \"c\"", info, err, uint64(len(big)))
	}
	list, err := c.List(t.Context(), "a")
	if err != nil || len(list.Files) != 2 || list.Files[0].Name != "b" {
		t.Fatalf("list: %+v, %v, want no error, len(list.Files) = 2, Name = \"b\"", list, err)
	}
	if _, err := c.Stat(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("stat of nothing: %v, want fs.ErrNotExist", err)
	}
	if err := c.Remove(t.Context(), "a", agentclient.RemoveOptions{}); codeOf(err) != agentproto.CodeNotEmpty {
		t.Fatalf("remove of a full directory: %v, want codeOf(err) = CodeNotEmpty", err)
	}
	if err := c.Remove(t.Context(), "a", agentclient.RemoveOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root + "/sandbox/a"); !os.IsNotExist(err) {
		t.Fatalf("a is still there: %v, want fs.ErrNotExist", err)
	}
}

func TestHostileFiles(t *testing.T) {
	c, root := serve(t)
	outside := filepath.Join(t.TempDir(), "canary")
	os.WriteFile(outside, []byte("CANARY"), 0o644)
	os.Symlink(outside, root+"/sandbox/abs")
	os.Symlink("../../../../../.."+outside, root+"/sandbox/rel")
	unix.Mkfifo(root+"/sandbox/fifo", 0o666)
	for _, name := range []string{"abs", "rel", "fifo"} {
		if got, err := c.ReadAll(t.Context(), name, 100); err == nil {
			t.Errorf("read %s: %q, want an error", name, got)
		}
		if err := write(t, c, name, "overwritten"); err == nil {
			t.Errorf("wrote %s, want an error", name)
		}
	}
	if got, _ := os.ReadFile(outside); string(got) != "CANARY" {
		t.Fatalf("canary is %q, want got = \"CANARY\"", got)
	}
}

func TestRemoveDeepTree(t *testing.T) {
	c, root := serve(t)
	fd, err := unix.Open(root+"/sandbox", unix.O_PATH, 0)
	for range 3000 {
		if err == nil {
			err = unix.Mkdirat(fd, "d", 0o755)
		}
		next, openErr := unix.Openat(fd, "d", unix.O_PATH, 0)
		unix.Close(fd)
		if err != nil || openErr != nil {
			t.Fatalf("err = %v, openErr = %v, want no error", err, openErr)
		}
		fd = next
	}
	unix.Close(fd)
	if err := c.Remove(t.Context(), "d", agentclient.RemoveOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
}

// swap exchanges root/sandbox/x between a directory and a link to outside until the
// test's context ends.
func swap(t *testing.T, root, outside string) (stop func()) {
	os.MkdirAll(root+"/sandbox/x", 0o755)
	os.WriteFile(root+"/sandbox/x/f", []byte("inside"), 0o644)
	os.Symlink(outside, root+"/sandbox/y")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			unix.Renameat2(unix.AT_FDCWD, root+"/sandbox/x", unix.AT_FDCWD, root+"/sandbox/y", unix.RENAME_EXCHANGE)
		}
	}()
	return func() { cancel(); <-done }
}

func TestSwappedLinks(t *testing.T) {
	c, root := serve(t)
	outside := t.TempDir()
	os.WriteFile(outside+"/f", []byte("CANARY"), 0o644)
	stop := swap(t, root, outside)
	defer stop()
	archive := testtar.Archive(t, testtar.File("x/f", "evil", 0o644))
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		if got, err := c.ReadAll(t.Context(), "x/f", 100); err == nil && strings.Contains(string(got), "CANARY") {
			t.Fatalf("a read gave %q, want an error or content without CANARY", got)
		}
		var out bytes.Buffer
		c.TarOut(t.Context(), "/sandbox", "s", &out)
		if strings.Contains(out.String(), "CANARY") {
			t.Fatal("the canary leaked by an archive: strings.Contains(out.String(), \"CANARY\") = true, want false")
		}
		c.TarIn(t.Context(), "/sandbox", bytes.NewReader(archive), agentclient.TarLimits{})
		write(t, c, "x/f", "evil")
		c.Remove(t.Context(), "x/f", agentclient.RemoveOptions{Recursive: true})
	}
	if got, _ := os.ReadFile(outside + "/f"); string(got) != "CANARY" {
		t.Fatalf("canary is %q, want got = \"CANARY\"", got)
	}
}

func TestTarIn(t *testing.T) {
	c, root := serve(t)
	archive := testtar.Archive(t, testtar.Filled("", []tar.Header{
		{Name: "ok/.env", Typeflag: tar.TypeReg, Mode: 0o6777}, {Name: "/abs", Typeflag: tar.TypeReg},
		{Name: "../up", Typeflag: tar.TypeReg}, {Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
	}...)...)
	res, err := c.TarIn(t.Context(), "new/dest", bytes.NewReader(archive), agentclient.TarLimits{})
	if err != nil || res.Files != 1 || len(res.Skipped) != 3 {
		t.Fatalf("%+v, %v, want no error, Files = 1, len(res.Skipped) = 3", res, err)
	}
	st, err := os.Stat(root + "/sandbox/new/dest/ok/.env")
	if err != nil || st.Mode() != 0o755 {
		t.Fatalf("%v, %v, want no error, Mode = 0o755", st, err)
	}
	if _, err := c.TarIn(t.Context(), "new", bytes.NewReader(archive), agentclient.TarLimits{MaxFiles: 2}); codeOf(err) != agentproto.CodeTooLarge {
		t.Fatalf("too many members: %v, want codeOf(err) = CodeTooLarge", err)
	}
}

func TestWatch(t *testing.T) {
	c, _ := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	events, err := c.Watch(ctx, "/sandbox", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t, c, "sub/deep/f", "x"); err != nil {
		t.Fatal(err)
	}
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if e.Path == "/sandbox/sub/deep/f" {
			return
		}
	}
}
