package layers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A keeper is a backend that has layers, or says why it has none, and can do nothing else.
type keeper struct {
	backend.Backend
	layers fakeLayers
	none   error
	create error // of a sandbox that fills a layer
}

func (k *keeper) Layers() (backend.Layers, error) { return &k.layers, k.none }

// maker opens no sandbox: it fails as a keeper says.
func maker(b backend.Backend) Maker {
	return Maker{Backend: b, Open: func(_ context.Context, b backend.Backend, _ *language.Language, _ backend.Spec, _ Limits) (Sandbox, error) {
		return nil, b.(*keeper).create
	}}
}

// fakeLayers say what they were asked for.
type fakeLayers struct {
	backend.Layers
	print    string
	printErr error
	gone     bool // for some time
	fills    bool // calls fill, and does not have the layer
	asked    []backend.LayerInfo
	have     []backend.LayerInfo // all that is there, if not nil
}

func (l *fakeLayers) List(context.Context) ([]backend.LayerInfo, error) { return l.have, nil }

func (l *fakeLayers) Toolchain(context.Context, backend.Spec, string, []string) (string, error) {
	return l.print, l.printErr
}

func (l *fakeLayers) Get(ctx context.Context, about backend.LayerInfo, fill func(context.Context, string) error) (string, error) {
	l.asked = append(l.asked, about)
	switch {
	case l.gone:
		return "", nil
	case slices.ContainsFunc(l.have, func(have backend.LayerInfo) bool { return have.Key == about.Key }):
	case l.fills:
		return "", fill(ctx, "")
	}
	return "/layers/" + about.Key, nil
}

var cached = &language.Language{Name: "x", Caches: []language.Cache{{Name: "c", Title: "X's cache", Target: "/tmp/c", Program: "x"}}}

func TestPreparedLayers(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		b      *keeper
		layers []backend.Layer
		err    error
		said   []string
	}{
		"a backend that keeps none":   {b: &keeper{none: backend.ErrUnsupported}},
		"no place for them":           {b: &keeper{none: broken}, said: []string{"Preparing caches failed: broken; going on without"}},
		"no such program":             {b: &keeper{}},
		"there":                       {b: &keeper{layers: fakeLayers{print: "p"}}, layers: []backend.Layer{{Source: "/layers/" + cacheKey("x", "p", cached.Caches[0]), Target: "/tmp/c", Writable: true}}},
		"failed before":               {b: &keeper{layers: fakeLayers{print: "p", gone: true}}},
		"fails":                       {b: &keeper{layers: fakeLayers{print: "p", fills: true}, create: broken}, said: []string{"Preparing X's cache", "Preparing X's cache failed: broken; going on without"}},
		"an image that is not there":  {b: &keeper{layers: fakeLayers{printErr: backend.ErrImageNotFound}}, err: backend.ErrImageNotFound},
		"copied, only to be mounted":  {b: &keeper{layers: fakeLayers{print: "p"}}},
		"a language without a cache":  {b: &keeper{layers: fakeLayers{print: "p"}}},
		"a caller that does not wait": {b: &keeper{layers: fakeLayers{print: "p", fills: true}, create: broken}, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lang := cached
			switch name {
			case "a language without a cache":
				lang = &language.Language{Name: "y"}
			case "copied, only to be mounted":
				lang = &language.Language{Name: "x", Caches: []language.Cache{{Name: "c", Target: "/tmp/c", Program: "x", Mounted: true}}}
			case "a caller that does not wait":
				cancel()
			}
			var said []string
			spec := backend.Spec{Progress: func(p backend.Progress) { said = append(said, p.String()) }}
			layers, err := maker(c.b).Caches(ctx, lang, spec)
			if !errors.Is(err, c.err) || !reflect.DeepEqual(layers, c.layers) {
				t.Errorf("%+v, %v, want %+v, %v", layers, err, c.layers, c.err)
			}
			for _, about := range c.b.layers.asked {
				if about.Language != "x" || about.Cache != "c" || about.Libraries != nil {
					t.Errorf("asked for %+v, want the cache c of x", about)
				}
			}
			if c.err == nil && !reflect.DeepEqual(said, c.said) {
				t.Errorf("said %q, want %q", said, c.said)
			}
		})
	}
}

// mounting are layers that sandboxes mount.
type mounting struct{ *fakeLayers }

func (mounting) MountsLayers() {}

func TestMountedCaches(t *testing.T) {
	lang := &language.Language{Name: "x", Caches: []language.Cache{{Name: "c", Target: "/tmp/c", Program: "x", Mounted: true}}}
	b := &mountingKeeper{}
	b.layers.print = "p"
	if layers, err := maker(b).Caches(t.Context(), lang, backend.Spec{}); err != nil || len(layers) != 1 {
		t.Errorf("%+v, %v, want one layer", layers, err)
	}
}

type mountingKeeper struct{ keeper }

func (k *mountingKeeper) Layers() (backend.Layers, error) { return mounting{&k.layers}, nil }

// TestPartOfACache: who opens a sandbox for one program gets the part where that is enough and the
// whole is not there; the whole is made from the part.
func TestPartOfACache(t *testing.T) {
	part := language.Cache{Name: "p", Title: "a part", Target: "/tmp/c", Program: "x", Fill: []language.Step{{Argv: []string{"some"}}}}
	whole := language.Cache{Name: "c", Title: "X's cache", Target: "/tmp/c", Program: "x", Part: &part,
		Enough: func(code []byte, files map[string][]byte) bool { return string(code) == "little" && len(files) == 1 }}
	lang := &language.Language{Name: "x", Caches: []language.Cache{whole}}
	keys := map[string]string{"c": cacheKey("x", "p", whole), "p": cacheKey("x", "p", part)}
	for name, c := range map[string]struct {
		code string
		have string // names of caches
		want string // what the sandbox gets
		base string // what the sandbox gets that fills it, if it is to be filled
	}{
		"little":                         {"little", "", "p", ""},
		"little, and the part":           {"little", "p", "p", ""},
		"little, and the whole":          {"little", "pc", "c", ""},
		"much":                           {"much", "", "c", ""},
		"much, and the part":             {"much", "p", "c", "p"},
		"much, and the whole":            {"much", "pc", "c", ""},
		"unknown program":                {"", "", "c", ""},
		"unknown program, and the part":  {"", "p", "c", "p"},
		"unknown program, and the whole": {"", "c", "c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &keeper{layers: fakeLayers{print: "p", fills: true}}
			for _, cache := range strings.Split(c.have, "") {
				b.layers.have = append(b.layers.have, backend.LayerInfo{Key: keys[cache]})
			}
			var filling *backend.Spec
			m := Maker{Backend: b, Open: func(_ context.Context, _ backend.Backend, _ *language.Language, spec backend.Spec, _ Limits) (Sandbox, error) {
				filling = &spec
				return nil, errors.New("no sandboxes here")
			}}
			ctx := t.Context()
			if c.code != "" {
				ctx = ForProgram(ctx, c.code, map[string][]byte{"f": nil})
			}
			layers, err := m.Caches(ctx, lang, backend.Spec{})
			if err != nil {
				t.Fatal(err)
			}
			if asked := b.layers.asked[0]; asked.Key != keys[c.want] || asked.Cache != c.want {
				t.Errorf("asked for %+v, want the cache %s", asked, c.want)
			}
			if strings.Contains(c.have, c.want) {
				if len(layers) != 1 || layers[0].Source != "/layers/"+keys[c.want] || filling != nil {
					t.Errorf("got %+v, filled in %+v, want the cache %s as it is", layers, filling, c.want)
				}
				return
			}
			var want []backend.Layer
			if c.base != "" {
				want = []backend.Layer{{Source: "/layers/" + keys[c.base], Target: "/tmp/c", Writable: true}}
			}
			if filling == nil || !reflect.DeepEqual(filling.Layers, want) {
				t.Errorf("filled in %+v, want one with %+v", filling, want)
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
		"another place":     {"x", "p", func(c *language.Cache) { c.Installed = []string{"/p"} }},
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
			t.Errorf("%s has the key of %s, want another", name, other)
		}
		seen[key] = name
	}
}

// TestLayerKeysStay: a key that changes makes all layers anew, so it changes with
// a version and never by chance.
func TestLayerKeysStay(t *testing.T) {
	cache := language.Cache{Name: "c", Target: "/tmp/c", Fill: []language.Step{{Argv: []string{"fill"}}}}
	if got := cacheKey("x", "p", cache); got != "x-8a4dd7c04738694ae027f765325488f2" {
		t.Errorf("a cache's key is %s, want \"x-8a4dd7c04738694ae027f765325488f2\"", got)
	}
	q := &Libraries{language: &language.Language{Name: "x"}, libraries: []string{"a", "b"}}
	if got := q.key("p", "l"); got != "x-6935a98a59b32c233934a2a117027e0b" {
		t.Errorf("the key of libraries is %s, want \"x-6935a98a59b32c233934a2a117027e0b\"", got)
	}
}
