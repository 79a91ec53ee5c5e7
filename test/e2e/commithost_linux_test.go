package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// tries is how often a test does again what fails because somebody else writes to the host's toolchains meanwhile, such as a
// test of another package.
const tries = 20

// commitHost commits a sandbox in which a script has run.
func commitHost(t *testing.T, o llmsandbox.Options, script string) (file string, res llmsandbox.CommitResult) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "image.tar")
	for n := 1; ; n++ {
		sb := openHost(t, o)
		shellIn(t, sb, script, "")
		res, err := sb.Commit(testContext(t), file, nil)
		if err == nil {
			return file, res
		}
		if n == tries || !strings.Contains(err.Error(), "on the host since") {
			t.Fatal(err)
		}
	}
}

func openHost(t *testing.T, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Language, o.BestEffort = "bash", true
	for n := 1; ; n++ {
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err == nil {
			t.Cleanup(func() {
				if err := sb.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			return sb
		}
		if n == tries || !strings.Contains(err.Error(), "that its host had") {
			t.Fatalf("open: %v", err)
		}
	}
}

func onlyRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root has the host's toolchains writable")
	}
}

// TestCommitHost opens what was written on top of the host's toolchains, and commits that again.
func TestCommitHost(t *testing.T) {
	onlyRoot(t)
	b, _ := imageBackend(t)
	first, res := commitHost(t, llmsandbox.Options{Backend: b, WritableRoot: true}, `printf '#!/bin/sh\necho mine\n' >/usr/local/bin/mine && chmod 755 /usr/local/bin/mine && echo other >/etc/hosts &&
		rm /usr/bin/yes /etc/protocols && rm -r /usr/share/doc && mkdir /usr/share/doc && echo d >/usr/share/doc/d && mkdir -p /srv/x && echo s >/srv/x/f && echo w >w && ln -s /srv/x/f l; echo no >/tmp/t`)
	if len(res.Skipped) > 0 {
		t.Errorf("left out are %q, want nothing", res.Skipped)
	}
	for _, name := range topLayer(t, first) {
		if top, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"dev", "proc", "tmp", "opt"}, top) || name == "usr/" {
			t.Errorf("%s is in the layer, want nothing of what is mounted or was not written to", name)
		}
	}
	const look = `mine; cat /etc/hosts w l /srv/x/f; ls -A /usr/share/doc; ls /usr/bin/yes /etc/protocols 2>/dev/null; ls -d /usr/bin/env /tmp/t 2>/dev/null`
	const want = "mine\nother\nw\ns\ns\nd\n/usr/bin/env\n"
	for name, o := range map[string]llmsandbox.Options{
		"read-only": {}, "read-only, as root": {User: "root"}, "writable": {WritableRoot: true}, "writable, as root": {WritableRoot: true, User: "root"}, "writable, with sudo": {WritableRoot: true, Sudo: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Backend, o.Image = b, first
			sb := openHost(t, o)
			shellIn(t, sb, look, want)
			if !o.WritableRoot {
				shellIn(t, sb, "echo x 2>/dev/null >/usr/local/bin/mine; echo x 2>/dev/null >/srv/x/f; mine; cat /srv/x/f", "mine\ns\n")
			}
		})
	}
	second, _ := commitHost(t, llmsandbox.Options{Backend: b, Image: first, WritableRoot: true}, "rm /usr/local/bin/mine /srv/x/f l; echo again >/usr/local/bin/again; echo w2 >w; touch /usr/share/doc/e")
	for _, writable := range []bool{false, true} {
		shellIn(t, openHost(t, llmsandbox.Options{Backend: b, Image: second, WritableRoot: writable}), `ls /usr/local/bin/mine /srv/x/f l 2>/dev/null; cat /usr/local/bin/again w /etc/hosts; ls -A /srv /usr/share/doc; ls /usr/bin/yes 2>/dev/null`,
			"again\nw2\nother\n/srv:\nx\n\n/usr/share/doc:\nd\ne\n")
	}
	third, _ := commitHost(t, llmsandbox.Options{Backend: b, Image: second}, "echo w3 >w")
	sb := openHost(t, llmsandbox.Options{Backend: b, Image: third, WritableRoot: true, Resettable: true})
	for range 2 {
		shellIn(t, sb, "cat w /usr/local/bin/again; echo x >w; echo x >/usr/local/bin/again", "w3\nagain\n")
		if err := sb.Reset(testContext(t)); err != nil {
			t.Error(err)
		}
	}
	shellIn(t, openHost(t, llmsandbox.Options{Backend: b}), "cat /usr/local/bin/again /srv/x/f 2>/dev/null; ls /usr/bin/yes", "/usr/bin/yes\n")
	if _, err := local.PushImage(testContext(t), third, "127.0.0.1:1/tools:1"); !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), "machine's own files") {
		t.Errorf("pushed: %v, want ErrImageInvalid and why", err)
	}
	if err := errors.Join(os.Remove(first), os.Remove(second)); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/usr/local/bin/mine", "/usr/local/bin/again", "/srv/x"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is on the host: %v", path, err)
		}
	}
}

// TestCommitHostWorkdir commits the working directory alone, which needs no root.
func TestCommitHostWorkdir(t *testing.T) {
	b, _ := imageBackend(t)
	first, _ := commitHost(t, llmsandbox.Options{Backend: b}, "mkdir d && echo one >d/f && chmod 700 d && printf '#!/bin/sh\\necho runs' >x && chmod +x x")
	second, _ := commitHost(t, llmsandbox.Options{Backend: b, Image: first}, "echo two >>d/f")
	sb := openHost(t, llmsandbox.Options{Backend: b, Image: second})
	shellIn(t, sb, "cat d/f; stat -c %a d; ls -A; ./x", "one\ntwo\n700\nd\nx\nruns\n")
	added := hostileImage(t, hostLabel(t, first), []tar.Header{{Name: "usr/local/bin/added", Mode: 0o755}, {Name: "usr/bin/.wh.yes"}})
	shellIn(t, openHost(t, llmsandbox.Options{Backend: b, Image: added}), "ls /usr/local/bin/added /usr/bin/yes /usr/bin/env 2>/dev/null", "/usr/bin/env\n/usr/local/bin/added\n")
	if os.Geteuid() != 0 {
		for _, o := range []llmsandbox.Options{{WritableRoot: true}, {User: "root"}} {
			o.Backend, o.Image, o.Language = b, first, "bash"
			if _, err := llmsandbox.Open(testContext(t), &o); !errors.Is(err, llmsandbox.ErrUnsupported) {
				t.Errorf("%v, want ErrUnsupported", err)
			}
		}
	}
}

// TestCommitHostReproducible makes the same image of two sandboxes with the same writes.
func TestCommitHostReproducible(t *testing.T) {
	onlyRoot(t)
	b, _ := imageBackend(t)
	write := []string{"echo a >/usr/local/bin/a", "rm /usr/bin/yes", "echo b >b", "mkdir /srv/d", "rm -r /usr/games"}
	for n := 1; ; n++ {
		one, made := commitHost(t, llmsandbox.Options{Backend: b, WritableRoot: true}, strings.Join(write, "; "))
		slices.Reverse(write)
		other, again := commitHost(t, llmsandbox.Options{Backend: b, WritableRoot: true}, strings.Join(write, "; "))
		if digest(t, one) == digest(t, other) && made.ID == again.ID {
			return
		}
		if had, has := hostLabel(t, one), hostLabel(t, other); had == has || n == tries { // else it is another tree
			t.Fatalf("the images %s of %s and %s of %s differ, want one", made.ID, had, again.ID, has)
		}
	}
}

// hostLabel is what an image is on top of.
func hostLabel(t *testing.T, file string) string {
	t.Helper()
	place, err := ociimage.Locate(file)
	if err != nil {
		t.Fatal(err)
	}
	img, err := place.Open(testContext(t), ociimage.Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var config v1.ConfigFile
	if err := json.Unmarshal(img.Config, &config); err != nil {
		t.Fatal(err)
	}
	return config.Config.Labels[ociimage.HostLabel]
}

// inToolchains makes a directory of the host that sandboxes show.
func inToolchains(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/usr/local/share", "llmsandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCommitHostChanged changes the host's toolchains while the sandbox is open, and before the image is opened.
func TestCommitHostChanged(t *testing.T) {
	onlyRoot(t)
	b, left := imageBackend(t)
	file, _ := commitHost(t, llmsandbox.Options{Backend: b}, "echo one >f")
	o := llmsandbox.Options{Backend: b, Language: "bash", Image: file}
	refused := func() {
		t.Helper()
		before := left()
		if _, err := llmsandbox.Open(testContext(t), &o); !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), `["/usr"] differ`) {
			t.Errorf("%v, want ErrImageInvalid and which directory", err)
		}
		if after := left(); !slices.Equal(before, after) {
			t.Errorf("%v are left, want %v", after, before)
		}
	}
	plain := openHost(t, llmsandbox.Options{Backend: b})
	dir := inToolchains(t)
	if _, err := plain.Commit(testContext(t), file+".tar", nil); !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), "since the sandbox was opened") {
		t.Errorf("%v, want ErrInvalid, as the host has changed", err)
	}
	refused()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	opened := openHost(t, o)
	shellIn(t, opened, "cat f", "one\n")
	if _, err := plain.Commit(testContext(t), file+".tar", nil); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid, as a directory was removed", err)
	}
	dir = inToolchains(t)
	if _, err := opened.Commit(testContext(t), file+".tar", nil); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("of the image: %v, want ErrInvalid", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v, want the image alone", entries, err)
	}
}

// TestCommitHostHostile opens images whose label is right, and whose files nobody has written in a sandbox: they show nothing of the
// host that was hidden, and replace no mount.
func TestCommitHostHostile(t *testing.T) {
	onlyRoot(t)
	dir := inToolchains(t)
	in := func(name string) string { return strings.TrimPrefix(filepath.Join(dir, name), "/") }
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "closed"), 0o700), os.WriteFile(filepath.Join(dir, "closed/in"), []byte("secret"), 0o644),
		os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600), os.WriteFile(filepath.Join(dir, "open"), []byte("open"), 0o644)); err != nil {
		t.Fatal(err)
	}
	b, _ := imageBackend(t)
	honest, _ := commitHost(t, llmsandbox.Options{Backend: b}, "echo one >f")
	entries := []tar.Header{
		{Name: in("closed") + "/", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: in("closed/more"), Mode: 0o666},
		{Name: in("link"), Linkname: "secret", Typeflag: tar.TypeSymlink}, {Name: in("up"), Linkname: "../../../../../../root", Typeflag: tar.TypeSymlink},
		{Name: "usr/bin/suid", Mode: 0o6755}, {Name: "usr/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3, Mode: 0o666},
		{Name: "proc", Linkname: "/usr", Typeflag: tar.TypeSymlink}, {Name: "dev", Mode: 0o666}, {Name: "tmp", Linkname: "/etc", Typeflag: tar.TypeSymlink},
		{Name: ".wh.run"}, {Name: "sandbox/f", Mode: 0o644}, {Name: "etc/.wh..wh..opq"}, {Name: "etc/passwd", Linkname: "/proc/1/environ", Typeflag: tar.TypeSymlink},
	}
	whole := slices.Concat(entries, []tar.Header{{Name: ".wh..wh..opq"}, {Name: "usr/.wh..wh..opq"}})
	links := []tar.Header{{Name: "usr", Linkname: "/root", Typeflag: tar.TypeSymlink}, {Name: "opt", Linkname: "/root", Typeflag: tar.TypeSymlink}, {Name: ".wh.sandbox"}, {Name: "proc/self/x"}}
	const look = `cat closed/in secret link 2>/dev/null; ls closed 2>/dev/null; cat open; ls up/ 2>/dev/null; [ -c /dev/null ] && [ ! -c /usr/null ] && [ -e /proc/self/status ] && echo mounts; stat -c %a /usr/bin/env; grep -c NoNewPrivs.*1 /proc/self/status; [ -u /usr/bin/suid ] && echo suid; [ -L /tmp ] || echo tmp`
	for name, c := range map[string]struct {
		layer []tar.Header
		want  string
	}{
		"files": {entries, "moreopenmounts"}, "opaque": {whole, "moreopenmounts"}, "links": {links, "openmounts"},
	} {
		file := hostileImage(t, hostLabel(t, honest), c.layer)
		for _, o := range []llmsandbox.Options{{}, {User: "0"}, {WritableRoot: true}, {WritableRoot: true, User: "0"}} {
			o.Backend, o.Image = b, file
			sb := openHost(t, o)
			res, err := sb.Shell(testContext(t), "cd "+dir+" && "+look, nil)
			if want := c.want + "7551tmp"; err != nil || strings.ReplaceAll(res.Stdout, "\n", "") != want {
				t.Errorf("%s, writable %v, user %q: %q, %v, want %q\nstderr: %s", name, o.WritableRoot, o.User, res.Stdout, err, want, clip(res.Stderr))
			}
		}
	}
	for _, label := range []string{"", "null", "7", `{"/usr":7}`, `{"/etc/shadow":""}`, "{}"} {
		o := llmsandbox.Options{Backend: b, Language: "bash", Image: hostileImage(t, label, entries)}
		if _, err := llmsandbox.Open(testContext(t), &o); !errors.Is(err, backend.ErrImageInvalid) {
			t.Errorf("label %q: %v, want ErrImageInvalid", label, err)
		}
	}
}

// hostileImage is an image of one layer that says that it is on top of the host's files.
func hostileImage(t *testing.T, label string, entries []tar.Header) string {
	t.Helper()
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for _, h := range entries {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := testimage.Busybox(t, nil).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	made, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	made = made.DeepCopy()
	made.Architecture, made.OS = config.Architecture, config.OS
	made.Config = v1.Config{Labels: map[string]string{ociimage.HostLabel: label}, Env: []string{"LD_PRELOAD=/x"}, User: "root"}
	if img, err = mutate.ConfigFile(img, made); err != nil {
		t.Fatal(err)
	}
	return testimage.Save(t, "tools:1", img)
}
