package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// TestWritableConformance is the suite with a root that code may write to in every sandbox that can have one.
func TestWritableConformance(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has it of the host's toolchains")
	}
	c := conformance(t.TempDir())
	c.Options = func(o *llmsandbox.Options) { o.WritableRoot = o.Backend == c.Backend }
	c.Lacks = map[backendtest.Feature]string{backendtest.ReadOnlyRoot: "that is what this is about"}
	backendtest.Run(t, c)
}

// TestRootConformance is the suite with code that is root of a root filesystem that it may write to.
func TestRootConformance(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give code users of its own")
	}
	c := conformance(t.TempDir())
	c.Options = func(o *llmsandbox.Options) {
		if o.Backend == c.Backend {
			o.WritableRoot, o.User = true, "root"
		}
	}
	c.Lacks = map[backendtest.Feature]string{backendtest.ReadOnlyRoot: "that is what this is about", backendtest.NotRoot: "and that"}
	backendtest.Run(t, c)
}

// TestWritableRoot has code write, change and remove files of the root in all ways, which only its own sandbox sees.
func TestWritableRoot(t *testing.T) {
	b, left := imageBackend(t)
	img := testimage.Busybox(t, nil)
	for i := range 40 { // more than an option of a mount can name
		img = withFile(t, img, fmt.Sprintf("opt/layer%d", i))
	}
	cases := map[string]llmsandbox.Options{"image": {Image: testimage.Layout(t, map[string]v1.Image{"one": img}) + ":one"}}
	if os.Geteuid() == 0 {
		cases["host"] = llmsandbox.Options{}
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			o.Backend, o.Language, o.WritableRoot = b, "bash", true
			one, other := open(t, o), open(t, o)
			shellIn(t, one, `for f in /f /etc/f /usr/f /srv/f /new/dir/f; do mkdir -p "$(dirname $f)" && echo "$f" >"$f" && cat "$f"; done`, "/f\n/etc/f\n/usr/f\n/srv/f\n/new/dir/f\n")
			shellIn(t, one, `printf '#!/bin/sh\necho x' >/bin/other && chmod +x /bin/other && /bin/other; rm /etc/passwd && ls /etc/passwd 2>/dev/null; mv /bin/other /bin/wc && /bin/wc`, "x\nx\n")
			shellIn(t, one, `echo z >/dev/f; echo z >/proc/f; echo z >/proc/sys/kernel/hostname; ls -A /dev/f /proc/f; cat /proc/sys/kernel/hostname`, "sandbox\n")
			shellIn(t, other, `ls -d /f /etc/f /usr/f /srv/f /new /bin/other 2>/dev/null; ls /etc/passwd`, "/etc/passwd\n")
			ctx := testContext(t)
			if err := one.WriteFile(ctx, "/opt/a/b/c", []byte("text")); err != nil {
				t.Error(err)
			}
			if b, err := one.ReadFile(ctx, "/opt/a/b/c"); err != nil || string(b) != "text" {
				t.Errorf("%q, %v, want what was written", b, err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte("in"), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := one.CopyIn(ctx, dir, "/usr/share/in"); err != nil {
				t.Error(err)
			}
			shellIn(t, one, "cat /usr/share/in/f /opt/a/b/c; stat -c %u /opt/a /usr/share/in /", "intext1000\n1000\n1000\n")
			o.WritableRoot = false
			if err := open(t, o).WriteFile(ctx, "/opt/f", nil); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "--writable-root") {
				t.Errorf("without the option: %v, want fs.ErrPermission and the option", err)
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
	for _, path := range []string{"/f", "/etc/f", "/usr/f", "/srv/f", "/new", "/bin/other", "/opt/a", "/usr/share/in"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is on the host: %v", path, err)
		}
	}
}

// withFile adds a layer with an empty file.
func withFile(t *testing.T, img v1.Image, name string) v1.Image {
	t.Helper()
	return withText(t, img, name, "")
}

// TestWritableRootCounts holds what is written to the root to the limit of the disk.
func TestWritableRootCounts(t *testing.T) {
	b, _ := imageBackend(t)
	sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", WritableRoot: true, Limits: llmsandbox.Limits{Disk: 16 << 20},
		Image: testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"})
	shellIn(t, sb, `head -c 9000000 /dev/zero >/usr/a && head -c 9000000 /dev/zero >/tmp/b || echo full; rm /usr/a; head -c 9000000 /dev/zero >/tmp/b && echo fits`, "full\nfits\n")
}

// TestWritableRootHidesWhatIsPrivate plants what others may not read among the host's toolchains. With the root, code gets all
// files of its owner.
func TestWritableRootHidesWhatIsPrivate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has the host's toolchains writable")
	}
	dir, err := os.MkdirTemp("/usr/local/share", "llmsandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write := func(name string, mode fs.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(name), 0o644), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "closed"), 0o755)); err != nil {
		t.Fatal(err)
	}
	write("open", 0o644)
	write("secret", 0o600)
	write("group", 0o640)
	write("closed/in", 0o644)
	if err := os.Chmod(filepath.Join(dir, "closed"), 0o711); err != nil {
		t.Fatal(err)
	}
	b, _ := imageBackend(t)
	sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", WritableRoot: true})
	shellIn(t, sb, "cd "+dir+" && ls -A; cat secret group closed/in 2>/dev/null; echo mine >secret && cat secret; mkdir closed && ls -A closed", "open\nmine\n")
	for path, want := range map[string]string{"secret": "secret", "closed/in": "closed/in"} {
		if b, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(b) != want {
			t.Errorf("%s on the host is %q, %v, want %q", path, b, err, want)
		}
	}
}

func TestWritableRootRefused(t *testing.T) {
	refused := func(o llmsandbox.Options, says string) {
		t.Helper()
		o.WritableRoot, o.BestEffort = true, true
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err == nil {
			sb.Close()
		}
		if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want ErrUnsupported and %q", err, says)
		}
	}
	if os.Geteuid() != 0 {
		refused(llmsandbox.Options{Backend: local.New(&local.Options{StateDir: t.TempDir()})}, "--image")
	}
}
