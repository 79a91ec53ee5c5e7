package e2e

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// commitBase is an image with a directory that can be replaced.
func commitBase(t *testing.T) v1.Image {
	return withFile(t, withFile(t, testimage.Busybox(t, func(c *v1.Config) { c.WorkingDir = "" }), "opt/old/a"), "opt/old/b")
}

func commit(t *testing.T, sb *llmsandbox.Sandbox, file string) llmsandbox.CommitResult {
	t.Helper()
	res, err := sb.Commit(testContext(t), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func digest(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// TestCommitWorkdir opens the image of a sandbox: it has the working directory as it was, and
// what was removed does not come back.
func TestCommitWorkdir(t *testing.T) {
	b, left := imageBackend(t)
	img := commitBase(t)
	for kind, ref := range map[string]string{
		"layout":   testimage.Layout(t, map[string]v1.Image{"one": img}) + ":one",
		"saved":    testimage.Save(t, "tools:1", img),
		"registry": serveRegistry(t, img, nil),
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			o := llmsandbox.Options{Backend: b, Image: ref, Language: "bash"}
			sb := open(t, o)
			shellIn(t, sb, `mkdir -p d/e && echo one >d/e/f && echo gone >gone && ln -s /etc/passwd l && printf '#!/bin/sh\necho runs\n' >x && chmod 750 x && chmod 700 d && echo no >/tmp/t`, "")
			first := filepath.Join(dir, "first.tar")
			commit(t, sb, first)
			o.Image = first
			sb = open(t, o)
			shellIn(t, sb, `echo $FROM_IMAGE; ls -A; cat d/e/f gone; readlink l; ./x; stat -c '%a %u' x d; ls /tmp/t 2>/dev/null; echo two >>d/e/f; rm gone`, "yes\nd\ngone\nl\nx\none\ngone\n/etc/passwd\nruns\n750 1000\n700 1000\n")
			second := filepath.Join(dir, "second.tar")
			commit(t, sb, second)
			o.Image = second
			sb = open(t, o)
			shellIn(t, sb, `ls -A; cat d/e/f`, "d\nl\nx\none\ntwo\n")
			third := filepath.Join(dir, "third.tar") // with the same layer twice
			commit(t, sb, third)
			o.Image = third
			shellIn(t, open(t, o), `ls -A; cat d/e/f`, "d\nl\nx\none\ntwo\n")
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
				t.Errorf("%v, %v, want the images and nothing else", entries, err)
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

// TestCommitRoot opens the image of a sandbox whose root could be written to: what was written, replaced and
// removed is so there, and the rest is as in the base.
func TestCommitRoot(t *testing.T) {
	b, _ := imageBackend(t)
	ref := testimage.Layout(t, map[string]v1.Image{"one": commitBase(t)}) + ":one"
	file := filepath.Join(t.TempDir(), "root.tar")
	for _, workdir := range []string{"", "/srv/project"} {
		t.Run(workdir, func(t *testing.T) {
			o := llmsandbox.Options{Backend: b, Image: ref, Language: "bash", WritableRoot: true, Workdir: workdir}
			sb := open(t, o)
			shellIn(t, sb, `rm /etc/passwd && rm -r /opt/old && mkdir /opt/old && echo c >/opt/old/c && echo tool >/bin/local-tool && chmod 505 /bin/local-tool &&
				ln -s ../bin/local-tool /opt/link && mkdir -p /data/empty && chmod 1777 /data/empty && printf '#!/bin/sh\necho mine\n' >/bin/mine && chmod +x /bin/mine && echo work >w && echo no >/tmp/t`, "")
			commit(t, sb, file)
			defer os.Remove(file)
			for _, name := range topLayer(t, file) {
				if top, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"dev", "proc", "tmp"}, top) {
					t.Errorf("%s is in the layer, want nothing of what is mounted", name)
				}
			}
			for _, writable := range []bool{false, true} {
				o := llmsandbox.Options{Backend: b, Image: file, Language: "bash", WritableRoot: writable}
				if writable {
					o.Workdir = workdir
				}
				shellIn(t, open(t, o), `ls /etc/passwd 2>/dev/null; ls -A /opt/old /data; cat /opt/link; stat -c %a /bin/local-tool /data/empty; /bin/mine; cat w; ls -A; ls -A /tmp; ls /opt/new`,
					"/data:\nempty\n\n/opt/old:\nc\ntool\n505\n1777\nmine\nwork\nw\nhome\n/opt/new\n")
			}
		})
	}
}

// topLayer are the names in the last layer of an image.
func topLayer(t *testing.T, file string) (names []string) {
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
	layer, _, err := img.Layers[len(img.Layers)-1].Open(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	for in := tar.NewReader(layer); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// TestCommitReproducible makes the same images of two sandboxes with the same writes, in whatever order and whenever they were.
func TestCommitReproducible(t *testing.T) {
	b, _ := imageBackend(t)
	ref := testimage.Layout(t, map[string]v1.Image{"one": commitBase(t)}) + ":one"
	write := []string{"echo a >/opt/a", "rm -r /opt/old", "echo b >b; touch -d 2001-01-01 b", "mkdir d"}
	made := map[string]bool{}
	ids := map[string]bool{}
	for range 2 {
		sb := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash", WritableRoot: true})
		for _, line := range write {
			shellIn(t, sb, line, "")
		}
		slices.Reverse(write)
		file := filepath.Join(t.TempDir(), "image.tar")
		ids[commit(t, sb, file).ID] = true
		made[digest(t, file)] = true
	}
	if len(made) != 1 || len(ids) != 1 {
		t.Errorf("the images %v, %v, want one", ids, made)
	}
}

// TestCommitMany commits 10,000 files, which are all there in the image. The same files make the same image, whatever the order in
// which they were written.
func TestCommitMany(t *testing.T) {
	b, _ := imageBackend(t)
	const count = `cd /srv && find many -type f | wc -l && find many -type f -exec cat {} + | sort -n | sha256sum && find many | sort | xargs stat -c '%n %a' | sha256sum`
	o := llmsandbox.Options{Backend: b, Image: testimage.Layout(t, map[string]v1.Image{"one": commitBase(t)}) + ":one", Language: "bash", WritableRoot: true}
	dir := t.TempDir()
	var ids, seen []string
	for n, order := range []string{"i=0; while [ $i -lt 10000 ]; do write $i; i=$((i+1)); done", "i=9999; while [ $i -ge 0 ]; do write $i; i=$((i-1)); done"} {
		sb := open(t, o)
		res, err := sb.Shell(testContext(t), `write() { d=/srv/many/$(($1%10))/$(($1/100%10)); [ -d $d ] || mkdir -p $d; echo $1 >$d/f$1; }; `+order+"; "+count, nil)
		if err != nil || !strings.HasPrefix(res.Stdout, "10000\n") {
			t.Fatalf("%v, stdout %q, want 10000 files\nstderr: %s", err, res.Stdout, clip(res.Stderr))
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.tar", n))
		done := commit(t, sb, file)
		if len(done.Skipped) > 0 {
			t.Errorf("%d files are left out, such as %s", len(done.Skipped), done.Skipped[0])
		}
		ids, seen = append(ids, done.ID), append(seen, res.Stdout)
		opened := o
		opened.Image, opened.WritableRoot = file, false
		shellIn(t, open(t, opened), count, res.Stdout)
	}
	if ids[0] != ids[1] || seen[0] != seen[1] {
		t.Errorf("the images are %q, of files %q, want the same ones", ids, seen)
	}
}

// TestCommitHostile has code make what would mean something else in a layer, or is no file.
func TestCommitHostile(t *testing.T) {
	b, _ := imageBackend(t)
	ref := testimage.Layout(t, map[string]v1.Image{"one": commitBase(t)}) + ":one"
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	sb := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash", WritableRoot: true})
	shellIn(t, sb, `echo x >/etc/.wh.passwd; echo x >/opt/old/.wh..wh..opq; mkdir /opt/.wh.old; echo x >/opt/.wh.old/f; mkfifo /opt/fifo fifo; echo x >.wh.f; echo y >f;
		mv /opt/new /opt/moved; ln -s `+outside+` /opt/new; rm -r /usr/bin 2>/dev/null; ln -s /etc /opt/up; cp /bin/busybox /bin/suid; chmod 6755 /bin/suid; echo hidden >/etc/closed; chmod 0 /etc/closed`, "")
	file := filepath.Join(t.TempDir(), "image.tar")
	res := commit(t, sb, file)
	for _, name := range []string{"etc/.wh.passwd", "opt/old/.wh..wh..opq", "opt/.wh.old", "opt/.wh.old/f", "opt/fifo", "sandbox/fifo", "sandbox/.wh.f", "etc/closed"} {
		if !slices.ContainsFunc(res.Skipped, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("%q: ", name)) }) {
			t.Errorf("%s is not said to be left out: %q", name, res.Skipped)
		}
	}
	if len(res.Skipped) != 8 {
		t.Errorf("left out are %q, want 8", res.Skipped)
	}
	sb = open(t, llmsandbox.Options{Backend: b, Image: file, Language: "bash"})
	shellIn(t, sb, `ls /etc/passwd; ls -A /opt /opt/old; cat f; cat /opt/new 2>/dev/null; stat -c %a /bin/suid`, "/etc/passwd\n/opt:\nmoved\nnew\nold\nup\n\n/opt/old:\na\nb\ny\n755\n")
}

// TestCommitDamaged opens an image that has not the working directory that its label names: nothing of the sandbox stays.
func TestCommitDamaged(t *testing.T) {
	b, left := imageBackend(t)
	img := testimage.Busybox(t, func(c *v1.Config) { c.Labels = map[string]string{ociimage.CommittedLabel: "/none"} })
	sb, err := llmsandbox.Open(testContext(t), &llmsandbox.Options{Backend: b, Image: testimage.Save(t, "tools:1", img), Language: "bash"})
	if err == nil {
		sb.Close()
	}
	if !errors.Is(err, backend.ErrImageInvalid) || strings.Contains(err.Error(), "closed") {
		t.Errorf("%v, want ErrImageInvalid alone", err)
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

// TestCommitAttached makes the image by another handle than the one that has opened the sandbox.
func TestCommitAttached(t *testing.T) {
	b, _ := imageBackend(t)
	ref := testimage.Layout(t, map[string]v1.Image{"one": commitBase(t)}) + ":one"
	sb := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash", WritableRoot: true})
	shellIn(t, sb, "echo a >/opt/a; echo b >b", "")
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one.tar"), filepath.Join(dir, "other.tar")
	commit(t, sb, one)
	at, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	commit(t, at, other)
	if digest(t, one) != digest(t, other) {
		t.Error("the images of two handles differ, want one image")
	}
}

// TestCommitFile overwrites a file only where that is asked for by its name, and needs the base where it is from.
func TestCommitFile(t *testing.T) {
	b, _ := imageBackend(t)
	saved := testimage.Save(t, "tools:1", commitBase(t))
	sb := open(t, llmsandbox.Options{Backend: b, Image: saved, Language: "bash"})
	shellIn(t, sb, "echo a >a", "")
	file := filepath.Join(t.TempDir(), "image.tar")
	commit(t, sb, file)
	was := digest(t, file)
	shellIn(t, sb, "echo b >b", "")
	ctx := testContext(t)
	if _, err := sb.Commit(ctx, file, nil); !errors.Is(err, llmsandbox.ErrInvalid) || digest(t, file) != was {
		t.Errorf("%v, want ErrInvalid and the file as it was", err)
	}
	if _, err := sb.Commit(ctx, file, &llmsandbox.CommitOptions{Overwrite: file}); err != nil || digest(t, file) == was {
		t.Errorf("%v, want no error and another file", err)
	}
	if err := os.Remove(saved); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Commit(ctx, file+".tar", nil); !errors.Is(err, backend.ErrImageNotFound) || !strings.Contains(err.Error(), "where it is from") {
		t.Errorf("%v, want ErrImageNotFound and why", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v, want the image alone", entries, err)
	}
}

// TestCommitMovedTag makes an image of the base that the sandbox has, and not of what its name means by then.
func TestCommitMovedTag(t *testing.T) {
	b, _ := imageBackend(t)
	ref := serveRegistry(t, commitBase(t), nil)
	sb := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash"})
	later, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Write(later, withFile(t, testimage.Busybox(t, nil), "opt/later"))
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := b.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := ociimage.NewStore(dir).Pull(testContext(t), ref, ociimage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pulled.Release()
	file := filepath.Join(t.TempDir(), "image.tar")
	commit(t, sb, file)
	shellIn(t, open(t, llmsandbox.Options{Backend: b, Image: file, Language: "bash"}), "ls /opt", "new\nold\n")
}
