//go:build linux

package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	reg "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// onEngines runs a test on each engine, with the store of its images.
func onEngines(t *testing.T, test func(*testing.T, *image.Store)) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			e := engine.start(t)
			if e.Podman {
				trustLoopback(t, e)
			}
			test(t, storeOf(t, e.Host))
		})
	}
}

// onPodman tells which engine a test of onEngines is on.
func onPodman(t *testing.T) bool { return strings.Contains(filepath.Base(t.Name()), "podman") }

// trustLoopback lets Podman use a registry on loopback without encryption, as Docker does.
func trustLoopback(t *testing.T, e *testengine.Engine) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(e.DataRoot), ".config", "containers")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := "[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n"
	if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
}

func storeOf(t *testing.T, host string) *image.Store {
	t.Helper()
	c, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &image.Store{Client: c}
}

// drop removes a test's image at its end, and fails when it was not the test's to remove.
func drop(t *testing.T, s *image.Store, img image.Image) {
	t.Helper()
	t.Cleanup(func() {
		if kept, err := s.Remove(context.Background(), img); err != nil || kept != "" {
			t.Errorf("remove %s: %q %v, want no error, kept empty", img.Ref, kept, err)
		}
	})
}

func has(t *testing.T, s *image.Store, name string) bool {
	t.Helper()
	list, err := s.Client.ImageList(t.Context(), client.ImageListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list.Items {
		if i.ID == name {
			return true
		}
		for _, tag := range i.RepoTags {
			if strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(tag, "localhost/"), "docker.io/"), "library/") == name {
				return true
			}
		}
	}
	return false
}

// only is an image whose last layer and configuration no engine has yet.
func only(t *testing.T, edit func(*v1.Config)) v1.Image {
	t.Helper()
	img := testimage.Busybox(t, func(c *v1.Config) {
		c.Labels = map[string]string{"only": rand.Text()}
		if edit != nil {
			edit(c)
		}
	})
	data := testtar.Archive(t, testtar.File("only", rand.Text(), 0o644))
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, layer); err != nil {
		t.Fatal(err)
	}
	return img
}

// serve runs a registry with the image as x:1.
func serve(t *testing.T, img v1.Image, wrap func(http.Handler) http.Handler, opts ...remote.Option) string {
	t.Helper()
	h := reg.New(reg.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	host := strings.TrimPrefix(srv.URL, "http://")
	ref, err := name.ParseReference(host + "/x:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, opts...); err != nil {
		t.Fatal(err)
	}
	return host + "/x:1"
}

func TestImagePull(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		ref := serve(t, only(t, func(c *v1.Config) { c.User = "7:8" }), nil)
		var last, end backend.Progress
		img, err := s.Resolve(t.Context(), ref, "", func(p backend.Progress) { last, end = end, p })
		if err != nil {
			t.Fatal(err)
		}
		if img.Ref != ref || !img.Made || img.User != "7:8" || img.Workdir != "/srv" || img.OS != "linux" {
			t.Errorf("got %+v, want Ref = %v, Made true, User = \"7:8\", Workdir = \"/srv\", OS = \"linux\"", img, ref)
		}
		if last.Stage != "pull" || last.Current != last.Total {
			t.Errorf("progress ends with %+v, want Stage = \"pull\", Current = %v", last, last.Total)
		}
		if end.Stage != "pull" || !end.Done || end.Error != "" {
			t.Errorf("the last report is %+v, want Stage = \"pull\", Done true, Error empty", end)
		}
		again, err := s.Resolve(t.Context(), ref, "", nil)
		if err != nil || again.Made || again.ID != img.ID {
			t.Errorf("again it is %+v, %v, want no error, Made false, ID = %v", again, err, img.ID)
		}
		if kept, err := s.Remove(t.Context(), again); err != nil || kept == "" || !has(t, s, ref) {
			t.Errorf("what was there before is removed: %q, %v, want no error, kept not empty, has(t, s, ref) = true", kept, err)
		}
		byID, err := s.Resolve(t.Context(), "docker://"+img.ID, "", nil)
		if err == nil && byID.ID != img.ID {
			t.Errorf("by its id it is %+v, want an error or ID = %v", byID, img.ID)
		}
		if kept, err := s.Remove(t.Context(), img); err != nil || kept != "" || has(t, s, ref) {
			t.Errorf("not removed: %q, %v, want no error, kept empty, has(t, s, ref) = false", kept, err)
		}
		if kept, err := s.Remove(t.Context(), img); err != nil || kept != "" {
			t.Errorf("removed again: %q, %v, want no error, kept empty", kept, err)
		}
	})
}

// A wrong password is reported, and a right one is used.
func TestImagePullWithPassword(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		basic := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if u, p, ok := r.BasicAuth(); !ok || u != "me" || p != "secret" {
					w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				h.ServeHTTP(w, r)
			})
		}
		ref := serve(t, only(t, nil), basic, remote.WithAuth(&authn.Basic{Username: "me", Password: "secret"}))
		password := "wrong"
		s.Auth = func(_ context.Context, ref string) (string, error) {
			host, _, _ := strings.Cut(ref, "/")
			raw, err := json.Marshal(registry.AuthConfig{Username: "me", Password: password, ServerAddress: host})
			return base64.URLEncoding.EncodeToString(raw), err
		}
		_, err := s.Resolve(t.Context(), ref, "", nil)
		if !errors.Is(err, backend.ErrImageNotFound) || !strings.Contains(err.Error(), "login") || has(t, s, ref) {
			t.Errorf("with a wrong password: %v, want backend.ErrImageNotFound, an error containing \"login\", has(t, s, ref) = false", err)
		}
		password = "secret"
		img, err := s.Resolve(t.Context(), ref, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		// A build's base image comes from the same registry.
		if _, err := s.Remove(t.Context(), img); err != nil {
			t.Fatal(err)
		}
		built, err := s.Build(t.Context(), image.Build{Content: "ARG TAG\nFROM " + strings.TrimSuffix(ref, "1") + "$TAG\nENV A=b\n", Args: map[string]string{"TAG": "1"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img) // pulled by the build
		drop(t, s, built)
	})
}

func TestImageErrors(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		ref := serve(t, only(t, nil), nil)
		other := only(t, nil)
		conf, err := other.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		conf = conf.DeepCopy()
		conf.Architecture = "s390x"
		if other, err = mutate.ConfigFile(other, conf); err != nil {
			t.Fatal(err)
		}
		foreign := serve(t, other, nil)
		for _, c := range []struct {
			name string
			want error
			text string
		}{
			{strings.TrimSuffix(ref, "1") + "gone", backend.ErrImageNotFound, "check its name"},
			{"127.0.0.1:1/x", backend.ErrImageNotFound, "cannot reach the registry"},
			{foreign, backend.ErrImageInvalid, "s390x"},
			{"host", backend.ErrImageInvalid, "local backend"},
			{"./nothing.tar", backend.ErrImageNotFound, "neither"},
			{"Not A Name", backend.ErrImageNotFound, "reference"},
			{"sha256:" + strings.Repeat("0", 64), backend.ErrImageNotFound, "no image of that id"},
			{"", backend.ErrImageNotFound, "no default image"},
		} {
			_, err := s.Resolve(t.Context(), c.name, "cobol", nil)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%q: %v, want %v, an error containing %q", c.name, err, c.want, c.text)
			}
		}
		if has(t, s, foreign) {
			t.Error("an image that cannot be used stays: has(t, s, foreign) = true, want false")
		}
	})
}

// A layer that is not what it says, or that ends half way, is an error with the
// engine's words, and nothing stays.
func TestImagePullBroken(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		img := only(t, nil)
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		digest, err := layers[len(layers)-1].Digest()
		if err != nil {
			t.Fatal(err)
		}
		ref := serve(t, img, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, digest.String()) {
					w = &corrupter{ResponseWriter: w}
				}
				h.ServeHTTP(w, r)
			})
		})
		_, err = s.Resolve(t.Context(), ref, "", nil)
		if !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), ref) || has(t, s, ref) {
			t.Errorf("got %v, want backend.ErrImageInvalid, an error containing %q, has(t, s, ref) = false", err, ref)
		}
	})
}

// A corrupter changes the last byte of what is sent at once.
type corrupter struct{ http.ResponseWriter }

func (c *corrupter) Write(p []byte) (int, error) {
	changed := append([]byte(nil), p...)
	changed[len(changed)-1]++
	return c.ResponseWriter.Write(changed)
}

// The line breaks in the middle of a layer, every time. Docker tries again with growing
// pauses, unless configured otherwise.
func TestImagePullHalf(t *testing.T) {
	p := testengine.PrivateDocker(t, "--max-download-attempts=1")
	s := storeOf(t, p.Host)
	img := only(t, nil)
	ref := serve(t, img, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				w = &breaker{ResponseWriter: w}
			}
			h.ServeHTTP(w, r)
		})
	})
	_, err := s.Resolve(t.Context(), ref, "", nil)
	if !errors.Is(err, backend.ErrImageNotFound) && !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("got %v, want backend.ErrImageNotFound or backend.ErrImageInvalid, an error containing \"EOF\"", err)
	}
	list, err := s.Client.ImageList(t.Context(), client.ImageListOptions{All: true})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("the engine has %+v, %v, want no error, no Items", list.Items, err)
	}
}

// A breaker breaks the line after half of what is sent first.
type breaker struct{ http.ResponseWriter }

func (b *breaker) Write(p []byte) (int, error) {
	if _, err := b.ResponseWriter.Write(p[:len(p)/2]); err != nil {
		return 0, err
	}
	panic(http.ErrAbortHandler)
}

// Many callers of one store fetch an image once, and one of them has made it. Another
// store, as of another process, pulls at the same time, and both succeed.
func TestImagePullConcurrently(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		var manifests atomic.Int64
		ref := serve(t, only(t, nil), func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
					manifests.Add(1)
				}
				h.ServeHTTP(w, r)
			})
		})
		other := storeOf(t, s.Client.DaemonHost())
		var made [2]atomic.Int64
		var wg sync.WaitGroup
		var got atomic.Value
		for i := range 8 {
			wg.Go(func() {
				img, err := []*image.Store{s, other}[i%2].Resolve(t.Context(), ref, "", nil)
				if err != nil {
					t.Error(err)
				}
				if img.Made {
					made[i%2].Add(1)
					got.Store(img)
				}
			})
		}
		wg.Wait()
		if a, b := made[0].Load(), made[1].Load(); a > 1 || b > 1 || a+b == 0 {
			t.Errorf("made %d and %d times, want a <= 1, b <= 1, a+b != 0", a, b)
		}
		if img, ok := got.Load().(image.Image); ok {
			drop(t, s, img)
		}
	})
}

func TestImageDefault(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		ref := serve(t, only(t, nil), nil)
		own := "h-default:" + strings.ToLower(rand.Text())
		s.Default = func(language string) []string { return []string{own, ref} }
		img, err := s.Resolve(t.Context(), "", "python", nil)
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		if img.Ref != ref {
			t.Errorf("got %+v, want Ref = %v", img, ref)
		}
		if _, err := s.Client.ImageTag(t.Context(), client.ImageTagOptions{Source: img.ID, Target: own}); err != nil {
			t.Fatal(err)
		}
		second, err := s.Resolve(t.Context(), "", "python", nil)
		if err != nil || second.Ref != own || second.Made {
			t.Errorf("with its own image: %+v %v, want no error, Ref = %v, Made false", second, err, own)
		}
		// It has another name now: only the one that was made goes.
		if kept, err := s.Remove(t.Context(), img); err != nil || kept == "" || !has(t, s, own) {
			t.Errorf("got %q %v, want no error, kept not empty, has(t, s, own) = true", kept, err)
		}
		second.Made = true
		drop(t, s, second)
	})
}

// A directory and a file are loaded under a name of their own, once; the file's own names
// are not taken.
func TestImageLoad(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		stolen := "h-stolen:" + strings.ToLower(rand.Text())
		img := only(t, nil)
		want, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		saved := testimage.Save(t, stolen, img)
		dir := testimage.Layout(t, map[string]v1.Image{"a": img})
		first, err := s.Resolve(t.Context(), saved, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, first)
		if !first.Made || strings.TrimPrefix(first.ID, "sha256:") != want.Hex || has(t, s, stolen) {
			t.Errorf("got %+v, of %s, want Made true, strings.TrimPrefix(first.ID, \"sha256:\") = %v, has(t, s, stolen) = false", first, want, want.Hex)
		}
		for _, path := range []string{saved, dir, dir + ":a"} {
			again, err := s.Resolve(t.Context(), path, "", nil)
			if err != nil || again.Made || again.ID != first.ID {
				t.Errorf("%s: %+v %v, want no error, Made false, ID = %v", path, again, err, first.ID)
			}
		}
		fresh := storeOf(t, s.Client.DaemonHost())
		if again, err := fresh.Resolve(t.Context(), dir, "", nil); err != nil || again.Made || again.ID != first.ID {
			t.Errorf("to another process: %+v %v, want no error, Made false, ID = %v", again, err, first.ID)
		}
	})
}

// What was written on top of a machine's own files is refused, as a file and as what the engine has already.
func TestImageOnHost(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		onHost, err := ociimage.OnHost(map[string]string{"/usr": rand.Text()})
		if err != nil {
			t.Fatal(err)
		}
		layer, err := ociimage.NewLayer(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer layer.Close()
		var file bytes.Buffer
		id, err := onHost.WriteWith(t.Context(), &file, layer, "/sandbox")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		refused := func(name string) {
			t.Helper()
			if img, err := s.Resolve(t.Context(), name, "", nil); !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), "machine's own files") || img.Made {
				t.Errorf("%s: %+v, %v, want ErrImageInvalid and why", name, img, err)
			}
		}
		refused(path)
		if has(t, s, "llmsandbox-load:"+id.Hex) {
			t.Error("it was loaded")
		}
		tag := "h-onhost:" + strings.ToLower(rand.Text())
		saved, err := os.Open(testimage.Save(t, tag, only(t, func(c *v1.Config) { c.Labels[ociimage.HostLabel] = "{}" })))
		if err != nil {
			t.Fatal(err)
		}
		defer saved.Close()
		res, err := s.Client.ImageLoad(t.Context(), saved)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res)
		if err := errors.Join(err, res.Close()); err != nil {
			t.Fatal(err)
		}
		defer s.Client.ImageRemove(context.WithoutCancel(t.Context()), tag, client.ImageRemoveOptions{Force: true})
		refused(tag)
	})
}

// A layer that is not what the config says is refused.
func TestImageLoadDamaged(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		img := only(t, nil)
		dir := testimage.Layout(t, map[string]v1.Image{"a": img})
		conf, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range layers {
			d, err := l.Digest()
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.Join(dir, "blobs", "sha256", d.Hex))
		}
		wrong, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(names[len(names)-1], wrong, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = s.Resolve(t.Context(), dir, "", nil)
		if !errors.Is(err, backend.ErrImageInvalid) || has(t, s, "llmsandbox-load:"+conf.Hex) {
			t.Errorf("got %v, want backend.ErrImageInvalid, has(t, s, \"llmsandbox-load:\"+conf.Hex) = false", err)
		}
	})
}

// An image that a container uses stays, and that is reported.
func TestImageRemoveInUse(t *testing.T) {
	onEngines(t, func(t *testing.T, s *image.Store) {
		img, err := s.Resolve(t.Context(), testimage.Layout(t, map[string]v1.Image{"a": only(t, nil)}), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		drop(t, s, img)
		c, err := s.Client.ContainerCreate(t.Context(), client.ContainerCreateOptions{Image: img.ID})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.Remove(t.Context(), img)
		if err != nil || kept == "" || !has(t, s, img.Ref) {
			t.Errorf("got %q %v, want no error, kept not empty, has(t, s, img.Ref) = true", kept, err)
		}
		if _, err := s.Client.ContainerRemove(t.Context(), c.ID, client.ContainerRemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
}
