package llmsandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/language"
)

// A keeper is a backend that keeps layers and can do nothing else.
type keeper struct {
	backend.Backend
	print    string
	printErr error
	path     string
	fail     error
	keys     []string
}

func (*keeper) Name() string { return "keeper" }

func (k *keeper) Create(context.Context, backend.Spec) (backend.Machine, error) { return nil, k.fail }

func (k *keeper) Fingerprint(context.Context, backend.Spec, string) (string, error) {
	return k.print, k.printErr
}

func (k *keeper) Layer(ctx context.Context, key string, fill func(context.Context, string) error) (string, error) {
	k.keys = append(k.keys, key)
	if k.fail != nil {
		return "", fill(ctx, "")
	}
	return k.path, nil
}

var cached = &language.Language{Name: "x", Caches: []language.Cache{{Name: "c", Title: "X's cache", Target: "/tmp/c", Program: "x"}}}

func TestPreparedLayers(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		b      backend.Backend
		layers []backend.Layer
		err    error
		said   []string
	}{
		"a backend that keeps none":   {b: struct{ backend.Backend }{}},
		"no such program":             {b: &keeper{path: "/l"}},
		"there":                       {b: &keeper{print: "p", path: "/l"}, layers: []backend.Layer{{Source: "/l", Target: "/tmp/c", Writable: true}}},
		"failed before":               {b: &keeper{print: "p"}},
		"fails":                       {b: &keeper{print: "p", fail: broken}, said: []string{"X's cache (once)", "X's cache: broken; going on without it"}},
		"an image that is not there":  {b: &keeper{printErr: backend.ErrImageNotFound}, err: backend.ErrImageNotFound},
		"a language without a cache":  {b: &keeper{print: "p", path: "/l"}},
		"a caller that does not wait": {b: &keeper{print: "p", fail: broken}, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lang := cached
			switch name {
			case "a language without a cache":
				lang = &language.Language{Name: "y"}
			case "a caller that does not wait":
				cancel()
			}
			var said []string
			spec := backend.Spec{Progress: func(p backend.Progress) { said = append(said, p.Message) }}
			layers, err := preparedLayers(ctx, c.b, lang, spec)
			if !errors.Is(err, c.err) || !reflect.DeepEqual(layers, c.layers) {
				t.Errorf("%+v, %v, want %+v, %v", layers, err, c.layers, c.err)
			}
			if c.err == nil && !reflect.DeepEqual(said, c.said) {
				t.Errorf("said %q, want %q", said, c.said)
			}
		})
	}
}

func TestCacheKey(t *testing.T) {
	base := language.Cache{Name: "c", Target: "/tmp/c", Fill: []language.Step{{Argv: []string{"fill"}}}}
	seen := map[string]string{}
	for name, c := range map[string]struct {
		lang, print string
		change      func(*language.Cache)
	}{
		"itself":            {"x", "p", func(*language.Cache) {}},
		"another toolchain": {"x", "q", func(*language.Cache) {}},
		"another language":  {"y", "p", func(*language.Cache) {}},
		"another cache":     {"x", "p", func(c *language.Cache) { c.Name = "d" }},
		"another target":    {"x", "p", func(c *language.Cache) { c.Target = "/tmp/d" }},
		"another filling":   {"x", "p", func(c *language.Cache) { c.Fill = []language.Step{{Argv: []string{"fill", "more"}}} }},
		"another surrounding": {"x", "p", func(c *language.Cache) {
			c.Fill = []language.Step{{Argv: []string{"fill"}, Env: []string{"A=b"}}}
		}},
	} {
		cache := base
		c.change(&cache)
		key := cacheKey(c.lang, c.print, cache)
		if again := cacheKey(c.lang, c.print, cache); again != key {
			t.Errorf("%s: %s, then %s", name, key, again)
		}
		if other, taken := seen[key]; taken {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
	}
}

// archive makes a tar stream; a name that ends in "/" is a folder.
func archive(t testing.TB, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		h.Size = 0
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte("data"))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func TestUnpackCache(t *testing.T) {
	dir, future := t.TempDir(), time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)
	err := unpackCache(archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "00/", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeReg, Name: "00/a", Mode: 0o600, ModTime: future},
		tar.Header{Typeflag: tar.TypeReg, Name: "deep/er/b", Mode: 0o4755}), dir, maxCacheBytes)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"00": os.ModeDir | 0o777, "00/a": 0o666, "deep/er/b": 0o777} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want mode %v", name, info, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "00/a")); err != nil || !info.ModTime().Equal(future) {
		t.Errorf("time %v, %v, want %v", info.ModTime(), err, future)
	}
}

func TestUnpackCacheRefuses(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"parent":        {{Typeflag: tar.TypeReg, Name: "../canary"}},
		"absolute":      {{Typeflag: tar.TypeReg, Name: "/canary"}},
		"symbolic link": {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: ".."}},
		"hard link":     {{Typeflag: tar.TypeLink, Name: "l", Linkname: "../canary"}},
		"device":        {{Typeflag: tar.TypeChar, Name: "d"}},
		"twice":         {{Typeflag: tar.TypeReg, Name: "a"}, {Typeflag: tar.TypeReg, Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := filepath.Join(dir, "in")
			if err := os.Mkdir(in, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unpackCache(archive(t, headers...), in, maxCacheBytes); err == nil {
				t.Error("taken")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("outside: %v, %v", entries, err)
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		var buf bytes.Buffer
		if err := tar.NewWriter(&buf).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: maxCacheBytes + 1}); err != nil {
			t.Fatal(err)
		}
		if err := unpackCache(&buf, t.TempDir(), maxCacheBytes); err == nil || !strings.Contains(err.Error(), "larger") {
			t.Errorf("got %v", err)
		}
	})
}

func FuzzUnpackCache(f *testing.F) {
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeDir, Name: "00/"}, tar.Header{Typeflag: tar.TypeReg, Name: "00/a"}).Bytes())
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeReg, Name: "../canary"}).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		if err := os.Mkdir(in, 0o700); err != nil {
			t.Fatal(err)
		}
		_ = unpackCache(bytes.NewReader(data), in, 1<<20)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Fatalf("outside: %v, %v", entries, err)
		}
	})
}
