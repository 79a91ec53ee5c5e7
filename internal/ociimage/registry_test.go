package ociimage

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestPull(t *testing.T) {
	var requests atomic.Int64
	host := serve(t, counting(&requests, nil))
	conf := v1.Config{Env: []string{"A=1"}, WorkingDir: "/srv/", User: "app:app", Cmd: []string{"sh"}, Entrypoint: []string{"/e"}, Labels: map[string]string{"k": "v"}}
	src := imageOf(t, conf, layerOf(t, directory("etc"), file("etc/a", "one")), layerOf(t, file("etc/b", "two")))
	push(t, host+"/t/x:1", src)
	s := newStore(t)
	var last backend.Progress
	img := resolve(t, s, host+"/t/x:1", Options{Progress: func(p backend.Progress) { last = p }})
	if last.Current != last.Total || last.Total == 0 || last.Stage != "pull" {
		t.Errorf("progress ends with %+v, want Current = %v, Total != 0, Stage = \"pull\"", last, last.Total)
	}
	if len(img.Layers) != 2 || read(t, img.Layers[0], "etc/a") != "one" || read(t, img.Layers[1], "etc/b") != "two" {
		t.Errorf("layers are %v, want len(img.Layers) = 2, read(t, img.Layers[0], \"etc/a\") = \"one\", read(t, img.Layers[1], \"etc/b\") = \"two\"", img.Layers)
	}
	if c := img.Config; c.Env[0] != "A=1" || c.WorkingDir != "/srv" || c.User != "app:app" || c.Labels["k"] != "v" || c.Cmd[0] != "sh" || c.Entrypoint[0] != "/e" {
		t.Errorf("config is %+v, want c.Env[0] = \"A=1\", WorkingDir = \"/srv\", User = \"app:app\", c.Labels[\"k\"] = \"v\", c.Cmd[0] = \"sh\", c.Entrypoint[0] = \"/e\"", c)
	}
	digest, _ := src.Digest()
	if img.Digest != digest.String() || img.Size != 6 {
		t.Errorf("digest %s, size %d, want img.Digest = digest.String(), Size = 6", img.Digest, img.Size)
	}
	before := requests.Load()
	resolve(t, s, host+"/t/x:1", Options{})
	resolve(t, s, img.ID, Options{})
	if n := requests.Load() - before; n != 0 {
		t.Errorf("an image of the store made %d requests, want 0", n)
	}
	byDigest := resolve(t, s, host+"/t/x@"+digest.String(), Options{})
	if byDigest.ID != img.ID {
		t.Errorf("by digest it is %s, not %s", byDigest.ID, img.ID)
	}
	if n := tempLeft(t, s); n != 0 {
		t.Errorf("%d files are left in tmp, want 0", n)
	}
}

func TestPullAlwaysSeesNewImage(t *testing.T) {
	host := serve(t, nil)
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "old"))))
	s := newStore(t)
	old := resolve(t, s, host+"/x", Options{})
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "new"))))
	if img := resolve(t, s, host+"/x", Options{}); img.ID != old.ID {
		t.Errorf("Resolve asked the registry: ID = %v, want %v", img.ID, old.ID)
	}
	img, err := s.Pull(t.Context(), host+"/x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Release()
	if got := read(t, img.Layers[0], "a"); got != "new" {
		t.Errorf("got %q, want \"new\"", got)
	}
	if got := read(t, old.Layers[0], "a"); got != "old" {
		t.Errorf("the image in use became %q, want \"old\"", got)
	}
}

func TestPullWithPassword(t *testing.T) {
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, ok := r.BasicAuth(); !ok || u != "me" || p != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "b"))), remote.WithAuth(&authn.Basic{Username: "me", Password: "secret"}))
	s := newStore(t)
	_, err := s.Resolve(t.Context(), host+"/x", Options{})
	if !errors.Is(err, backend.ErrImageNotFound) || !strings.Contains(err.Error(), "docker login") {
		t.Errorf("without a password: %v, want backend.ErrImageNotFound, an error containing \"docker login\"", err)
	}
	conf := `{"auths":{"` + host + `":{"username":"me","password":"secret"}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	resolve(t, s, host+"/x", Options{})
}

func TestPullErrors(t *testing.T) {
	host := serve(t, nil)
	other := imageOf(t, v1.Config{}, layerOf(t, file("a", "b")))
	cf, _ := other.ConfigFile()
	cf.Architecture = "s390x"
	other, err := mutate.ConfigFile(other, cf)
	if err != nil {
		t.Fatal(err)
	}
	push(t, host+"/other", other)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
	r, _ := name.ParseReference(host + "/index")
	tr := remote.DefaultTransport.(*http.Transport).Clone()
	defer tr.CloseIdleConnections()
	if err := remote.WriteIndex(r, index, remote.WithTransport(tr)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unreachable := l.Addr().String()
	l.Close()
	push(t, host+"/env", imageOf(t, v1.Config{Env: []string{"A=1\nB=2"}}, layerOf(t, file("a", "b"))))
	push(t, host+"/wd", imageOf(t, v1.Config{WorkingDir: "../etc"}, layerOf(t, file("a", "b"))))
	for _, c := range []struct {
		ref  string
		want error
		text string
	}{
		{host + "/nothing", backend.ErrImageNotFound, "does not have it"},
		{host + "/other", backend.ErrImageNotFound, "for linux/s390x"},
		{host + "/index", backend.ErrImageNotFound, "only for"},
		{unreachable + "/x", backend.ErrImageNotFound, "cannot fetch"},
		{"Not A Ref", backend.ErrImageNotFound, "no valid registry reference"},
		{"", backend.ErrImageNotFound, "empty"},
		{"./nothing", backend.ErrImageNotFound, "neither"},
		{host + "/env", backend.ErrImageInvalid, "environment"},
		{host + "/wd", backend.ErrImageInvalid, "working folder"},
	} {
		_, err := newStore(t).Resolve(t.Context(), c.ref, Options{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: %v, want %v, an error containing %q", c.ref, err, c.want, c.text)
		}
	}
	img := resolve(t, newStore(t), host+"/index", Options{Platform: "linux/s390x"})
	if img.Platform != "linux/s390x" {
		t.Errorf("platform is %s, want \"linux/s390x\"", img.Platform)
	}
}

// blobFault changes what the registry answers for layers.
func blobFault(fault func(w http.ResponseWriter, h http.Handler, r *http.Request)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:") {
				fault(w, h, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

type recorder struct {
	http.ResponseWriter
	data []byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.data = append(r.data, p...)
	return len(p), nil
}

func TestPullBreaksOff(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16)
	for _, c := range []struct {
		name  string
		fault func(data []byte) []byte
		want  error
	}{
		{"half the bytes", func(d []byte) []byte { return d[:len(d)/2] }, backend.ErrImageNotFound},
		{"a changed byte", func(d []byte) []byte { d[len(d)/2] ^= 1; return d }, backend.ErrImageInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			var blobs atomic.Int64
			host := serve(t, blobFault(func(w http.ResponseWriter, h http.Handler, r *http.Request) {
				rec := &recorder{ResponseWriter: w}
				h.ServeHTTP(rec, r)
				if len(rec.data) > 2000 {
					blobs.Add(1)
					if broken.Load() {
						rec.data = c.fault(rec.data)
					}
				}
				w.Write(rec.data) // a short answer ends the connection
			}))
			push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("small", "1")), layerOf(t, file("big", big))))
			s := newStore(t)
			_, err := s.Resolve(t.Context(), host+"/x", Options{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if list, _ := s.List(); len(list) != 0 {
				t.Errorf("the store lists %v, want none", list)
			}
			if n := tempLeft(t, s); n != 0 {
				t.Errorf("%d files are left in tmp, want 0", n)
			}
			broken.Store(false)
			img := resolve(t, s, host+"/x", Options{})
			if read(t, img.Layers[1], "big") != big {
				t.Errorf("the second pull gave %d bytes, want the %d of the layer", len(read(t, img.Layers[1], "big")), len(big))
			}
			if blobs.Load() != 2 {
				t.Errorf("the large layer was fetched %d times, want 2", blobs.Load())
			}
		})
	}
}

func TestPullCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := make(chan struct{})
	host := serve(t, blobFault(func(w http.ResponseWriter, h http.Handler, r *http.Request) {
		cancel(errors.New("enough"))
		<-stop
	}))
	defer close(stop)
	push(t, host+"/x", imageOf(t, v1.Config{}, layerOf(t, file("a", "b"))))
	s := newStore(t)
	if _, err := s.Resolve(ctx, host+"/x", Options{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v, want an error containing \"enough\"", err)
	}
}

// counting counts requests, and those for blobs.
func counting(all, blobs *atomic.Int64) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if all != nil {
				all.Add(1)
			}
			if blobs != nil && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				blobs.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}
}

// Several processes and several callers in each pull one image: each layer once.
func TestPullAtOnce(t *testing.T) {
	if ref := os.Getenv("IMAGE_TEST_PULL"); ref != "" {
		img, err := NewStore(os.Getenv("IMAGE_TEST_STORE")).Pull(t.Context(), ref, Options{})
		if err != nil {
			t.Fatal(err)
		}
		img.Release()
		return
	}
	var layers atomic.Int64
	src := imageOf(t, v1.Config{}, layerOf(t, file("a", "1")), layerOf(t, file("b", "2")), layerOf(t, file("b", "2")))
	config, _ := src.ConfigName()
	host := serve(t, blobFault(func(w http.ResponseWriter, h http.Handler, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, config.Hex) {
			layers.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	push(t, host+"/x", src)
	s := newStore(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestPullAtOnce$")
			cmd.Env = append(os.Environ(), "IMAGE_TEST_PULL="+host+"/x", "IMAGE_TEST_STORE="+s.dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		group.Go(func() {
			img, err := s.Pull(t.Context(), host+"/x", Options{})
			if err != nil {
				t.Error(err)
				return
			}
			img.Release()
		})
	}
	group.Wait()
	if n := layers.Load(); n != 2 {
		t.Errorf("2 different layers were fetched %d times, want 2", n)
	}
	if img := resolve(t, s, host+"/x", Options{}); len(img.Layers) != 3 || img.Layers[1] != img.Layers[2] {
		t.Errorf("layers are %v, want len(img.Layers) = 3, img.Layers[1] = img.Layers[2]", img.Layers)
	}
}

func TestPlainHTTPOnlyOnLoopback(t *testing.T) {
	r, _ := http.NewRequest(http.MethodGet, "http://192.0.2.1/v2/", nil)
	if _, err := (secureTransport{http.DefaultTransport.(*http.Transport)}).RoundTrip(r); err == nil || !strings.Contains(err.Error(), "unencrypted") {
		t.Errorf("got %v, want an error containing \"unencrypted\"", err)
	}
	for host, want := range map[string]bool{"127.0.0.1": true, "::1": true, "localhost": true, "10.0.0.1": false, "localhost.example": false} {
		if isLoopback(host) != want {
			t.Errorf("isLoopback(%s) is not %v", host, want)
		}
	}
}
