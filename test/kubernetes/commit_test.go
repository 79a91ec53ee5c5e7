//go:build linux

package kubernetes

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
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/testcommand"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// pushed puts an image into a registry that the cluster's node and this machine reach, and returns the registry and the image's name.
func pushed(t *testing.T, p place) (host, image string) {
	t.Helper()
	host = p.node.Registry(t)
	ref, err := name.ParseReference(host + "/t/base:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, testimage.Busybox(t, func(c *v1.Config) { c.WorkingDir = "" })); err != nil {
		t.Fatal(err)
	}
	return host, ref.Name()
}

func localBackend(t *testing.T) *local.Backend {
	t.Helper()
	return local.New(&local.Options{CacheDir: t.TempDir(), StateDir: t.TempDir()})
}

func (p place) openCommit(t *testing.T, b *kubernetes.Backend, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Backend, o.Language, o.BestEffort = b, "bash", true
	sb, err := llmsandbox.Open(testfaults.Context(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// commit makes an image of a sandbox, and returns what became of it, and the names in the layer that it adds.
func commit(t *testing.T, sb *llmsandbox.Sandbox, file string) (llmsandbox.CommitResult, []string) {
	t.Helper()
	res, err := sb.Commit(testfaults.Context(t), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	place, err := ociimage.Locate(file)
	if err != nil {
		t.Fatal(err)
	}
	img, err := place.Open(testfaults.Context(t), ociimage.Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	layer, _, err := img.Layers[len(img.Layers)-1].Open(testfaults.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	var names []string
	for in := tar.NewReader(layer); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return res, names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %o %d:%d", h.Name, h.Mode, h.Uid, h.Gid))
	}
}

// writes changes a file with its size and time kept, adds some, removes some, and changes owners and modes.
const writes = `set -e
was=$(stat -c %Y /srv/motd); printf 'FROM THE IMAGE\n' >/srv/motd; touch -d @$was /srv/motd
rm /bin/wc; mkdir -p /new/empty /new/deep/er; echo one >/new/deep/er/f; chown 7:8 /new/deep/er/f; ln -s ../f /new/deep/link
rm /opt/new; mkdir /opt/new; echo dir >/opt/new/f; chmod 750 /etc; echo same >>/etc/group; printf 'root:x:0:\napp:x:1000:\n' >/etc/group
mkfifo /new/fifo; echo '.wh' >/new/.wh.x; head -c 0 /dev/null >"/new/a
b"; echo work >/sandbox/w; echo no >/tmp/t`

func TestCommit(t *testing.T) {
	onBothKernels(t, func(t *testing.T, p place, b *kubernetes.Backend) {
		host, image := pushed(t, p)
		dir := t.TempDir()
		o := llmsandbox.Options{Image: image, User: "root", WritableRoot: true}
		var ids, sums []string
		for i := range 2 {
			sb := p.openCommit(t, b, o)
			wantInside(t, sb, writes, "")
			file := filepath.Join(dir, fmt.Sprintf("%d.tar", i))
			res, names := commit(t, sb, file)
			want := []string{
				"bin/ 755 0:0", "bin/.wh.wc 0 0:0", "etc/ 750 0:0", "new/ 755 0:0", "new/a\nb 644 0:0", "new/deep/ 755 0:0", "new/deep/er/ 755 0:0",
				"new/deep/er/f 644 7:8", "new/deep/link 777 0:0", "new/empty/ 755 0:0", "opt/ 755 0:0", "opt/new/ 755 0:0", "opt/new/f 644 0:0",
				"sandbox/ 777 1000:1000", "sandbox/.wh..wh..opq 0 1000:1000", "sandbox/w 644 1000:1000", "srv/ 755 0:0", "srv/motd 644 0:0",
			}
			if !slices.Equal(names, want) {
				t.Errorf("the layer has\n%q, want\n%q", names, want)
			}
			if len(res.Skipped) != 2 || !strings.Contains(strings.Join(res.Skipped, "\n"), "new/fifo") {
				t.Errorf("%q are left out, want the FIFO and the name with .wh.", res.Skipped)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ids, sums = append(ids, res.ID), append(sums, fmt.Sprintf("%x", sha256.Sum256(data)))
			testfaults.Close(t, sb)
		}
		if ids[0] != ids[1] || sums[0] != sums[1] {
			t.Errorf("the same writes make %q, %q, want the same images", ids, sums)
		}
		check := `cat /srv/motd /new/deep/er/f /opt/new/f /etc/group; readlink /new/deep/link; ls /bin/wc 2>/dev/null; ls -A /new; stat -c %a /etc`
		want := "FROM THE IMAGE\none\ndir\nroot:x:0:\napp:x:1000:\n../f\na?b\ndeep\nempty\n750\n"
		name, err := local.PushImage(testfaults.Context(t), filepath.Join(dir, "0.tar"), host+"/t/made:1")
		if err != nil {
			t.Fatal(err)
		}
		// A pod's working directory hides that of the image.
		sb := p.openCommit(t, b, llmsandbox.Options{Image: name, User: "root", Workdir: "/srv/project"})
		wantInside(t, sb, "cd /; "+check+"; stat -c %u:%g /new/deep/er/f; cat /sandbox/w", want+"7:8\nwork\n")
		testfaults.Close(t, sb)
	})
}

// TestCommitOpensHere opens the image of a pod on this machine, of a sandbox whose root file system is read-only, and of another handle.
func TestCommitOpensHere(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	_, image := pushed(t, p)
	file := filepath.Join(t.TempDir(), "made.tar")
	sb := p.openCommit(t, b, llmsandbox.Options{Image: image})
	wantInside(t, sb, "mkdir -p d && echo one >d/f && (echo x >/srv/f) 2>/dev/null || echo denied", "denied\n")
	other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	_, names := commit(t, other, file)
	testfaults.Close(t, other)
	want := []string{"sandbox/ 777 1000:1000", "sandbox/.wh..wh..opq 0 1000:1000", "sandbox/d/ 755 1000:1000", "sandbox/d/f 644 1000:1000"}
	if !slices.Equal(names, want) {
		t.Errorf("the layer has %q, want %q", names, want)
	}
	here, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: localBackend(t), Image: file, Language: "bash", BestEffort: true})
	if err != nil {
		t.Fatal(err)
	}
	wantInside(t, here, "cat d/f /srv/motd; echo $FROM_IMAGE", "one\nfrom the image\nyes\n")
	testfaults.Close(t, here)
	for _, c := range []struct{ file, overwrite, says string }{{"tools:2", "", "ends in .tar"}, {file, "", "exists"}, {file, file + "x", "not the file asked for"}} {
		if _, err := sb.Commit(testfaults.Context(t), c.file, &llmsandbox.CommitOptions{Overwrite: c.overwrite}); !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s over %q: %v, want ErrInvalid, and %q", c.file, c.overwrite, err, c.says)
		}
	}
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

// TestCommitByCommand has the command commit a sandbox, and push it.
func TestCommitByCommand(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	bin, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host, image := pushed(t, p)
	sb := p.openCommit(t, b, llmsandbox.Options{Image: image})
	wantInside(t, sb, "echo one >f", "")
	made := strings.TrimSpace(command(t, t.TempDir(), filepath.Join(bin, "llmsandbox"), "commit", "--backend", "kubernetes", "--kubeconfig", p.Kubeconfig, "--namespace", p.Namespace,
		"--push", host+"/t/made:1", sb.ID(), "made.tar"))
	testfaults.Close(t, sb)
	if !strings.HasPrefix(made, host+"/t/made@sha256:") {
		t.Fatalf("the command prints %q, want the image's name in the registry", made)
	}
	sb = p.openCommit(t, b, llmsandbox.Options{Image: made, Workdir: "/srv/project"})
	wantInside(t, sb, "cat /sandbox/f", "one\n")
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

// TestCommitOfNodesImage: the layers of an image that only the node has cannot be had, as an error says.
func TestCommitOfNodesImage(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	host := p.node.Registry(t)
	name := host + "/t/imported:1"
	p.node.Load(t, testimage.Save(t, name, testimage.Busybox(t, nil)))
	sb := p.openCommit(t, b, llmsandbox.Options{Image: name})
	file := filepath.Join(t.TempDir(), "made.tar")
	_, err := sb.Commit(testfaults.Context(t), file, nil)
	if !errors.Is(err, llmsandbox.ErrImageNotFound) || !strings.Contains(err.Error(), "image "+name) || !strings.Contains(err.Error(), "push the image to a registry") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want ErrImageNotFound, the image's name, and what to do", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is there, want none")
	}
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

// TestCommitLimits: what is too large for the disk limit, or has names that an archive cannot have, is an error or left out, and the sandbox goes on.
func TestCommitLimits(t *testing.T) {
	beside(t)
	p := newPlaceOf(t, "baseline")
	b := p.newBackend(t, nil)
	_, image := pushed(t, p)
	file := filepath.Join(t.TempDir(), "made.tar")
	sb := p.openCommit(t, b, llmsandbox.Options{Image: image, User: "root", WritableRoot: true, Limits: llmsandbox.Limits{Disk: 64 << 20}})
	wantInside(t, sb, "mkdir /hostile && cd /hostile && busybox truncate -s 10G holes && echo made", "made\n")
	if _, err := sb.Commit(testfaults.Context(t), file, nil); !errors.Is(err, llmsandbox.ErrImageInvalid) || !strings.Contains(err.Error(), "hostile/holes") {
		t.Errorf("a file of holes: %v, want ErrImageInvalid, and its name", err)
	}
	wantInside(t, sb, `cd /hostile && rm holes && i=0; while [ $i -lt 230 ]; do mkdir d && cd d; i=$((i+1)); done; cd /; busybox dd if=/dev/zero of=/hostile/f bs=1k count=10 2>/dev/null; echo made`, "made\n")
	res, names := commit(t, sb, file)
	if len(res.Skipped) != 1 || !strings.Contains(res.Skipped[0], "too many directories") || !slices.Contains(names, "hostile/f 644 0:0") {
		t.Errorf("%.300q are left out of %d names, want the directories that are too deep, and the rest there", res.Skipped, len(names))
	}
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}
