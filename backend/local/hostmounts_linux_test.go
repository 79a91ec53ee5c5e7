package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// hostTree is a directory of the host with a file, which other users can enter.
func hostTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	if err := errors.Join(os.MkdirAll(filepath.Join(tree, "sub"), 0o755), os.WriteFile(filepath.Join(tree, "file"), []byte("host\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return tree
}

func mounted(mounts ...backend.Mount) func(*backend.Spec) {
	return func(s *backend.Spec) { s.Mounts = mounts }
}

func TestHostMounts(t *testing.T) {
	tree := hostTree(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tree, link); err != nil {
		t.Fatal(err)
	}
	m := create(t, newBackend(t), mounted(
		backend.Mount{Source: link, Target: "/sandbox/ro"}, backend.Mount{Source: tree, Target: "/data/cow", Mode: backend.MountCopyOnWrite},
		backend.Mount{Source: tree + "/file", Target: "/sandbox/deep/one"}, backend.Mount{Source: tree + "/file", Target: "/one"}))
	for _, c := range []struct{ name, script, want string }{
		{"read", "cat ro/file /data/cow/file deep/one /one", "host\nhost\nhost\nhost\n"},
		{"write", "for p in ro/file ro/new deep/one /one; do (echo x >$p) 2>/dev/null && echo $p; done; true", ""},
		{"copy", "cd /data/cow && echo a >new && mkdir dir && rm file && ls", "dir\nnew\nsub\n"},
		{"folder beside a file", "echo x >deep/two && cat deep/two", "x\n"},
		{"flags", "grep -E ' (/sandbox/ro|/data/cow|/one) ' /proc/self/mounts | cut -d' ' -f4 | grep -c '^r[ow],nosuid,nodev'", "3\n"},
		{"stage", "ls /proc/layer0 2>/dev/null | wc -l", "0\n"},
	} {
		if got := shell(t, m, "cd /sandbox; "+c.script); got != c.want {
			t.Errorf("%s: %s prints %q, not %q", c.name, c.script, got, c.want)
		}
	}
	if b, err := os.ReadFile(tree + "/file"); err != nil || string(b) != "host\n" {
		t.Errorf("the host's file is %q, %v", b, err)
	}
	if info := m.Info(); len(info.Mounts) != 4 || info.Mounts[0] != (backend.Mount{Source: tree, Target: "/sandbox/ro", Mode: backend.MountReadOnly}) {
		t.Errorf("Info().Mounts = %+v, want all four with resolved sources", info.Mounts)
	}
}

// TestHostMountsInImage mounts where an image has something else.
func TestHostMountsInImage(t *testing.T) {
	tree := hostTree(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)})
	m := create(t, newBackend(t), func(s *backend.Spec) {
		s.Image = image + ":one"
		s.Mounts = []backend.Mount{{Source: tree, Target: "/srv/tree"}, {Source: tree + "/file", Target: "/srv/motd"}, {Source: tree + "/file", Target: "/new/one"},
			{Source: tree + "/file", Target: "/sandbox/one"}, {Source: tree, Target: "/data", Mode: backend.MountCopyOnWrite}}
	})
	if got := shell(t, m, "cat /srv/tree/file /srv/motd /new/one /sandbox/one /data/file; echo new >/data/new; cat /data/new"); got != strings.Repeat("host\n", 5)+"new\n" {
		t.Errorf("code sees %q, want what is mounted", got)
	}
	if c, _ := m.Capabilities().Get("host-paths"); !strings.Contains(c.Detail, "mounts") {
		t.Errorf("host-paths is %+v, want that mounts are an exception", c)
	}
}

// TestHostMountOwners is about files that the code's user does not own.
func TestHostMountOwners(t *testing.T) {
	tree := hostTree(t)
	private := filepath.Join(tree, "private")
	if err := errors.Join(os.WriteFile(private, []byte("mine\n"), 0o600), os.Chmod(filepath.Join(tree, "sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	b := newBackend(t)
	if os.Geteuid() != 0 {
		if _, err := b.Create(t.Context(), backend.Spec{ID: newID(), Mounts: []backend.Mount{{Source: "/root", Target: "/data"}}}); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("of a folder that the user may not read: %v, want backend.ErrInvalid", err)
		}
		return
	}
	ro := create(t, b, mounted(backend.Mount{Source: tree, Target: "/data"}))
	if got := shell(t, ro, "cat /data/private 2>/dev/null; ls /data/sub 2>/dev/null; cat /data/file"); got != "host\n" {
		t.Errorf("read-only, code reads %q, want only what others may read", got)
	}
	if err := errors.Join(os.WriteFile(tree+"/foreign", []byte("foreign\n"), 0o644), os.Chown(tree+"/foreign", 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	cow := mounted(backend.Mount{Source: tree, Target: "/data", Mode: backend.MountCopyOnWrite})
	if got := shell(t, create(t, b, cow), "cd /data; cat private; echo x >>private; cat private; ls sub; cat foreign; (echo x >>foreign) 2>/dev/null; rm -f foreign 2>/dev/null; ls foreign"); got != "mine\nmine\nx\nforeign\nforeign\n" {
		t.Errorf("copied on write, code sees %q", got)
	}
	if err := os.Chmod(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(t.Context(), backend.Spec{ID: newID(), Mounts: []backend.Mount{{Source: tree, Target: "/data"}}}); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("of a folder that the code may not read: %v, want backend.ErrInvalid with a remedy", err)
	}
	if got := shell(t, create(t, b, cow), "cat /data/file"); got != "host\n" {
		t.Errorf("copied on write, code reads %q of a folder of its owner's", got)
	}
}

// TestHostMountReplaced puts something else in the place of a source that is open already.
func TestHostMountReplaced(t *testing.T) {
	tree := hostTree(t)
	b := newBackend(t)
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	spec := backend.Spec{ID: newID(), Mounts: []backend.Mount{{Source: tree, Target: "/data"}, {Source: tree + "/file", Target: "/file"}}}
	c := &creation{b: b, spec: spec, dirs: d}
	if c.mounts, err = hostmount.Open(spec.Mounts); err != nil {
		t.Fatal(err)
	}
	defer hostmount.Close(c.mounts)
	if err := errors.Join(os.Rename(tree, tree+".was"), os.Symlink("/etc", tree)); err != nil {
		t.Fatal(err)
	}
	m, err := c.run(t.Context())
	if err != nil {
		if err := c.undo(); err != nil {
			t.Error(err)
		}
		if privileged() {
			t.Error(err)
		}
		return // an ordinary user has to open the path twice
	}
	if got := shell(t, m, "cat /data/file /file; ls /data/passwd 2>/dev/null"); got != "host\nhost\n" {
		t.Errorf("code sees %q, want what was opened", got)
	}
	if err := m.Close(nil); err != nil {
		t.Error(err)
	}
}

// TestHostMountRace replaces a source by a link to a directory that cannot be mounted, again and again.
func TestHostMountRace(t *testing.T) {
	tree := hostTree(t)
	b := newBackend(t)
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	other := tree + ".other"
	if err := os.Symlink(d.state, other); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, tree, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 20 {
		m, err := b.Create(t.Context(), backend.Spec{ID: newID(), Mounts: []backend.Mount{{Source: tree, Target: "/data"}}})
		if err != nil {
			continue
		}
		if got := shell(t, m, "ls /data"); got != "file\nsub\n" {
			t.Errorf("code sees %q, want the tree", got)
		}
		if err := m.Close(nil); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
}

// TestHostMountBelow: what is mounted below a source is not seen.
func TestHostMountBelow(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts on the host")
	}
	tree := hostTree(t)
	below := filepath.Join(tree, "sub")
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(below, "secret"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	m := create(t, newBackend(t), mounted(backend.Mount{Source: tree, Target: "/ro"}, backend.Mount{Source: tree, Target: "/cow", Mode: backend.MountCopyOnWrite}))
	if got := shell(t, m, "ls /ro/sub /cow/sub"); got != "/cow/sub:\n\n/ro/sub:\n" {
		t.Errorf("code sees %q, want empty folders", got)
	}
}

// TestHostMountFIFO: outside of the directories that code may write to, Landlock keeps it from
// writing to a pipe that a program of the host reads. In them the pipe's mode decides.
func TestHostMountFIFO(t *testing.T) {
	tree := hostTree(t)
	fifo := filepath.Join(tree, "fifo")
	if err := errors.Join(unix.Mkfifo(fifo, 0o666), os.Chmod(fifo, 0o666)); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	m := create(t, newBackend(t), mounted(backend.Mount{Source: tree, Target: "/data"}, backend.Mount{Source: tree, Target: "/sandbox/data"}))
	if c, _ := m.Capabilities().Get("landlock"); !c.Enforced {
		unable(t, c.Why)
	}
	if got := shell(t, m, "(echo x >/data/fifo) 2>/dev/null || echo refused"); got != "refused\n" {
		t.Errorf("writing to a pipe prints %q, want it refused", got)
	}
	if err := os.Chmod(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, m, "(echo x >/sandbox/data/fifo) 2>/dev/null || echo refused"); privileged() && got != "refused\n" {
		t.Errorf("writing to a pipe of another user prints %q, want it refused", got)
	}
}
