package llmsandbox

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
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

// TestLayerKeysStay: a key that changes makes all layers anew, so it changes with
// a version and never by chance.
func TestLayerKeysStay(t *testing.T) {
	cache := language.Cache{Name: "c", Target: "/tmp/c", Fill: []language.Step{{Argv: []string{"fill"}}}}
	if got := cacheKey("x", "p", cache); got != "x-6d74569ede7e4f1c3eec7c37362c795b" {
		t.Errorf("a cache's key is %s", got)
	}
	q := &libraryRequest{language: &language.Language{Name: "x"}, libraries: []string{"a", "b"}}
	if got := q.key("p", "l"); got != "x-3ef571d7d09fed57474516e81569d8d5" {
		t.Errorf("the key of libraries is %s", got)
	}
}
