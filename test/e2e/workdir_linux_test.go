package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// TestWorkdir opens sandboxes whose working directory is elsewhere.
func TestWorkdir(t *testing.T) {
	b, left := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	for name, c := range map[string]struct {
		o    llmsandbox.Options
		has  string // of the image
		root bool
	}{
		"host":           {o: llmsandbox.Options{Workdir: "/srv/project"}},
		"host, resets":   {o: llmsandbox.Options{Workdir: "/home/user", Resettable: true}},
		"host, writable": {o: llmsandbox.Options{Workdir: "/srv/project", WritableRoot: true}, root: true},
		"image":          {o: llmsandbox.Options{Workdir: "/new/project", WritableRoot: true, Image: image}},
		"image, its own": {o: llmsandbox.Options{Workdir: "/srv", WritableRoot: true, Image: image}, has: "motd\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("only root has the host's toolchains writable")
			}
			c.o.Backend, c.o.Language = b, "bash"
			sb, ctx := open(t, c.o), testContext(t)
			if sb.Workdir() != c.o.Workdir {
				t.Errorf("%s is the working directory, want %s", sb.Workdir(), c.o.Workdir)
			}
			shellIn(t, sb, "pwd; ls -A; echo x >f && cat f; stat -c %u .; ls -d /sandbox/f 2>/dev/null", c.o.Workdir+"\n"+c.has+"x\n1000\n")
			if c.o.Image == "" { // the image has no bash
				wantStdout(t, run(t, sb, "pwd; cat f", nil), c.o.Workdir+"\nx\n")
			}
			if got, err := sb.ReadFile(ctx, "f"); err != nil || string(got) != "x\n" {
				t.Errorf("f is %q, %v", got, err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "in"), []byte("in"), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := sb.CopyIn(ctx, dir, "sub/dir"); err != nil {
				t.Error(err)
			}
			shellIn(t, sb, "cat "+c.o.Workdir+"/sub/dir/in", "in")
			other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: b})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			shellIn(t, other, "pwd", c.o.Workdir+"\n")
			if c.o.Resettable {
				if err := sb.Reset(ctx); err != nil {
					t.Error(err)
				}
				shellIn(t, sb, "pwd; ls -A", c.o.Workdir+"\n")
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
	for dir, want := range map[string]error{"/etc/x": llmsandbox.ErrInvalid, "relative": llmsandbox.ErrInvalid, "/srv/project": llmsandbox.ErrUnsupported} {
		o := llmsandbox.Options{Backend: b, Workdir: dir, Image: image}
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err == nil {
			sb.Close()
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s with an image: %v, want %v", dir, err, want)
		}
	}
}

// TestWorkdirCounts holds it to the limit of the disk.
func TestWorkdirCounts(t *testing.T) {
	sb := open(t, llmsandbox.Options{Language: "bash", Workdir: "/srv/project", Limits: llmsandbox.Limits{Disk: 16 << 20}})
	shellIn(t, sb, `head -c 9000000 /dev/zero >a && head -c 9000000 /dev/zero >/tmp/b || echo full`, "full\n")
}
