package e2e

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// imageBackend has an image store of its own. left returns what sandboxes have left.
func imageBackend(t *testing.T) (b *local.Backend, left func() []string) {
	t.Helper()
	testContext(t) // tells whether the backend exists here
	dir := t.TempDir()
	b = local.New(&local.Options{StateDir: filepath.Join(dir, "state"), CacheDir: filepath.Join(dir, "cache")})
	return b, func() []string {
		entries, err := os.ReadDir(filepath.Join(dir, "state", "sandboxes"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}

// serveRegistry is a registry on loopback that holds the image as its /tools:1. wrap
// may change its answers.
func serveRegistry(t *testing.T, img v1.Image, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	var handler atomicHandler
	handler.set(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	srv := httptest.NewServer(&handler)
	t.Cleanup(srv.Close)
	ref, err := name.ParseReference(strings.TrimPrefix(srv.URL, "http://") + "/tools:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		handler.set(wrap(handler.get()))
	}
	return ref.Name()
}

// An atomicHandler can be replaced while it serves.
type atomicHandler struct {
	mu sync.Mutex
	h  http.Handler
}

func (a *atomicHandler) set(h http.Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.h = h
}

func (a *atomicHandler) get() http.Handler {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.h
}

func (a *atomicHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.get().ServeHTTP(w, r) }

func shellIn(t *testing.T, sb *llmsandbox.Sandbox, line, want string) {
	t.Helper()
	res, err := sb.Shell(testContext(t), line, nil)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if res.Stdout != want {
		t.Errorf("%s prints %q, not %q\nstderr: %s", line, res.Stdout, want, clip(res.Stderr))
	}
}

func TestImageSources(t *testing.T) {
	img := testimage.Busybox(t, nil)
	b, left := imageBackend(t)
	for kind, ref := range map[string]string{
		"layout":   testimage.Layout(t, map[string]v1.Image{"one": img}) + ":one",
		"saved":    testimage.Save(t, "tools:1", img),
		"registry": serveRegistry(t, img, nil),
	} {
		t.Run(kind, func(t *testing.T) {
			sb := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash"})
			shellIn(t, sb, "echo $FROM_IMAGE; cat motd; pwd", "yes\nfrom the image\n/srv\n")
			shellIn(t, sb, "ls /opt /etc/gone 2>/dev/null", "/opt:\nnew\n") // whiteouts of both kinds
			shellIn(t, sb, "for d in / /srv /etc /bin; do (echo x >$d/x) 2>/dev/null && echo wrote $d; done; for d in /sandbox /tmp $HOME; do echo x >$d/x && cat $d/x; done", "x\nx\nx\n")
			shellIn(t, sb, "id -u; id -un", "1000\napp\n")
			shellIn(t, sb, "while read dev dir kind flags rest; do case $dir,$flags in *nosuid*) ;; *) echo $dir $flags; esac; done </proc/self/mounts", "")
			res, err := sb.Exec(testContext(t), []string{"pwd"}, &llmsandbox.ExecOptions{Dir: "/sandbox"})
			if err != nil || res.Stdout != "/sandbox\n" {
				t.Errorf("told its directory it starts in %q, %v, want no error, Stdout = \"/sandbox\\n\"", res.Stdout, err)
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

// TestImageRepeatsLayer opens an image that has a layer twice.
func TestImageRepeatsLayer(t *testing.T) {
	b, _ := imageBackend(t)
	img := withFile(t, withFile(t, withFile(t, testimage.Busybox(t, nil), "opt/a"), "opt/b"), "opt/a")
	sb := open(t, llmsandbox.Options{Backend: b, Image: testimage.Layout(t, map[string]v1.Image{"one": img}) + ":one", Language: "bash"})
	shellIn(t, sb, "ls /opt", "a\nb\nnew\n")
}

func TestImageUserOfItsOwn(t *testing.T) {
	img := testimage.Busybox(t, func(c *v1.Config) { c.User = "4711" })
	b, _ := imageBackend(t)
	sb := open(t, llmsandbox.Options{Backend: b, Image: testimage.Layout(t, map[string]v1.Image{"one": img}) + ":one", Language: "bash"})
	shellIn(t, sb, "id -u; echo x >/sandbox/x && stat -c %u /sandbox/x", "4711\n4711\n")
}

func TestImageErrors(t *testing.T) {
	b, left := imageBackend(t)
	whole := testimage.Save(t, "tools:1", testimage.Busybox(t, nil))
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(data)
	for i := len(data) / 2; i < len(data)/2+64; i++ {
		flipped[i] ^= 0xff
	}
	served := serveRegistry(t, testimage.Busybox(t, nil), nil)
	missingUser := testimage.Busybox(t, func(c *v1.Config) { c.User = "nobody-here" })
	for _, c := range []struct {
		name, image string
		want        error
	}{
		{"no such folder", filepath.Join(t.TempDir(), "nothing"), llmsandbox.ErrImageNotFound},
		{"no such tag", testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":two", llmsandbox.ErrImageNotFound},
		{"not in the registry", strings.Replace(served, "tools:1", "tools:2", 1), llmsandbox.ErrImageNotFound},
		{"cut tar", write("cut.tar", data[:len(data)/2]), llmsandbox.ErrImageInvalid},
		{"changed layer", write("changed.tar", flipped), llmsandbox.ErrImageInvalid},
		{"no tar", write("text.tar", []byte("hello")), llmsandbox.ErrImageNotFound},
		{"user that is not there", testimage.Layout(t, map[string]v1.Image{"one": missingUser}) + ":one", llmsandbox.ErrImageInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			sb, err := llmsandbox.Open(testContext(t), &llmsandbox.Options{Backend: b, Image: c.image, BestEffort: true})
			if err == nil {
				sb.Close()
				t.Fatal("it opens: got no error, want an error")
			}
			if !errors.Is(err, c.want) {
				t.Errorf("the error is %v, not %v", err, c.want)
			}
			if text := err.Error(); strings.Contains(text, "\n") || len(text) > 500 {
				t.Errorf("the error is not one clear line: %s, want text without \"\\n\", len(text) <= 500", text)
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

func TestImageLacksLanguage(t *testing.T) {
	b, _ := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	sb := open(t, llmsandbox.Options{Backend: b, Image: image, Language: "python"})
	_, err := sb.Run(testContext(t), "print(1)", nil)
	if !errors.Is(err, llmsandbox.ErrToolchain) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v, want llmsandbox.ErrToolchain, an error without \"\\n\"", err)
	}
}

func TestImageInUse(t *testing.T) {
	b, _ := imageBackend(t)
	ref := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	one := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash"})
	two := open(t, llmsandbox.Options{Backend: b, Image: ref, Language: "bash"})
	shellIn(t, one, "echo mine >/sandbox/f; cat /sandbox/f", "mine\n")
	shellIn(t, two, "ls /sandbox", "")
	dir, err := b.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	store := ociimage.NewStore(dir)
	if _, err := store.Remove(ref); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("an image in use is removed: %v, want backend.ErrLocked", err)
	}
	shellIn(t, two, "cat /srv/motd", "from the image\n")
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Fatal(err)
	}
	if removed, err := store.Remove(ref); err != nil || len(removed.Images) != 1 {
		t.Errorf("removed %+v, %v, want no error, len(removed.Images) = 1", removed, err)
	}
}

// TestImageStoreLocked removes images while one is being fetched.
func TestImageStoreLocked(t *testing.T) {
	b, _ := imageBackend(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ref := serveRegistry(t, testimage.Busybox(t, nil), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				once.Do(func() { close(asked) })
				<-answer
			}
			h.ServeHTTP(w, r)
		})
	})
	ctx := testContext(t)
	opened := make(chan error, 1)
	go func() {
		sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, Image: ref, Language: "bash", BestEffort: true})
		if err == nil {
			err = sb.Close()
		}
		opened <- err
	}()
	select {
	case <-asked:
	case err := <-opened:
		t.Fatalf("an image without a blob: Open returned %v, want it to wait for the blob", err)
	}
	dir, err := b.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	store := ociimage.NewStore(dir)
	if _, err := store.Prune(ctx, true); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("the store is pruned during a pull: %v, want backend.ErrLocked", err)
	}
	close(answer)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestImagePython runs Python out of an image of Debian's.
func TestImagePython(t *testing.T) {
	if os.Getenv("LLMSANDBOX_REQUIRE") != "1" && os.Getenv("LLMSANDBOX_TEST_PYTHON_IMAGE") != "1" {
		t.Skip("making the image takes half a minute: LLMSANDBOX_TEST_PYTHON_IMAGE=1 does it")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes the image")
	}
	layout := testimage.Python(t)
	b, _ := imageBackend(t)
	sb := open(t, llmsandbox.Options{Backend: b, Image: layout})
	res := run(t, sb, "import os, ssl, sqlite3\nprint(sum(range(10)), os.getuid(), os.getcwd())", nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "45 1000 /sandbox\n")
}

// A cache that cannot be prepared costs nothing but time, and only once.
func TestImageWithoutGo(t *testing.T) {
	image := testimage.Layout(t, map[string]v1.Image{"1": testimage.Busybox(t, nil)})
	b := local.New(&local.Options{CacheDir: t.TempDir()}) // one that has not failed before
	for _, want := range []int{2, 0} {                    // the attempt and its failure, then nothing
		var said []string
		sb := open(t, llmsandbox.Options{Backend: b, Language: "go", Image: image, Progress: func(p backend.Progress) {
			if p.Stage == "prepare" {
				said = append(said, p.String())
			}
		}})
		if len(said) != want || want > 0 && !strings.Contains(said[1], "going on without") {
			t.Errorf("it says %q, want %d words of a cache", said, want)
		}
		if _, err := sb.Run(testContext(t), "package main\nfunc main() {}", nil); !errors.Is(err, llmsandbox.ErrToolchain) {
			t.Errorf("run: %v, want ErrToolchain", err)
		}
	}
}
