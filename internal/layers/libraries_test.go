package layers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

var shelf = &language.Language{Name: "shelf", Title: "Shelf", Install: "build one", Libraries: &language.Libraries{
	Program: "shelf",
	Check: func(name string) (string, error) {
		if strings.ContainsAny(name, " -;") || name == "" {
			return "", fmt.Errorf("library %q: %w", name, language.ErrInvalidLibrary)
		}
		return strings.ToLower(name), nil
	},
	Registries: noRegistries,
}}

func noRegistries(language.Ask) (language.Registries, error) { return language.Registries{}, nil }

func TestLibraryRequestRefuses(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		b         backend.Backend
		lang      *language.Language
		libraries []string
		timeout   time.Duration
		want      []error
	}{
		"no name of a library":          {b: &keeper{}, lang: shelf, libraries: []string{"a", "--b"}, want: []error{backend.ErrInvalid, language.ErrInvalidLibrary}},
		"that on a backend without any": {b: &keeper{none: backend.ErrUnsupported}, lang: shelf, libraries: []string{"a b"}, want: []error{backend.ErrInvalid, language.ErrInvalidLibrary}},
		"a language without any":        {b: &keeper{}, lang: cached, libraries: []string{"a"}, want: []error{backend.ErrUnsupported}},
		"a backend without any":         {b: &keeper{none: backend.ErrUnsupported}, lang: shelf, libraries: []string{"a"}, want: []error{backend.ErrUnsupported}},
		"a backend that says why":       {b: &keeper{none: broken}, lang: shelf, libraries: []string{"a"}, want: []error{broken}},
		"too many":                      {b: &keeper{}, lang: shelf, libraries: make([]string, maxLibraries+1), want: []error{backend.ErrInvalid}},
		"a negative timeout":            {b: &keeper{}, lang: shelf, libraries: []string{"a"}, timeout: -1, want: []error{backend.ErrInvalid}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := maker(c.b).Libraries(c.lang, c.libraries, Options{Timeout: c.timeout}, backend.Spec{})
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			}
		})
	}
}

func newShelfRequest(t *testing.T, k *keeper, o Options, libraries ...string) *Libraries {
	t.Helper()
	q, err := maker(k).Libraries(shelf, libraries, o, backend.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestLibraryKey: the same wishes have one layer, different ones have different ones.
func TestLibraryKey(t *testing.T) {
	k := &keeper{}
	base := newShelfRequest(t, k, Options{}, "a", "b").key("p", "")
	for name, same := range map[string]string{
		"another order": newShelfRequest(t, k, Options{}, "b", "A", "a").key("p", ""),
		"other options": newShelfRequest(t, k, Options{Offline: true, Timeout: time.Hour}, "a", "b").key("p", ""),
	} {
		if same != base {
			t.Errorf("%s: another key, want same = %v", name, base)
		}
	}
	changed := *shelf
	changed.Declaration = []byte("install in another way")
	declared, err := maker(k).Libraries(&changed, []string{"a", "b"}, Options{}, backend.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{base: "the base"}
	for name, other := range map[string]string{
		"another toolchain": newShelfRequest(t, k, Options{}, "a", "b").key("q", ""),
		"another file":      declared.key("p", ""),
		"another folder":    newShelfRequest(t, k, Options{}, "a", "b").key("p", "x"),
		"fewer":             newShelfRequest(t, k, Options{}, "a").key("p", ""),
		"one of two words":  newShelfRequest(t, k, Options{}, "a,b").key("p", ""),
	} {
		if twin, taken := seen[other]; taken {
			t.Errorf("%s has the key of %s, want another", name, twin)
		}
		seen[other] = name
	}
	if dir := prefix + "python-" + base[len("shelf-"):]; libraryLanguage(dir) != "python" {
		t.Errorf("%s is no library directory, want libraryLanguage(dir) = \"python\"", dir)
	}
}

func TestLibrariesAreAddedToASpec(t *testing.T) {
	k := &keeper{layers: fakeLayers{print: "p"}}
	spec := backend.Spec{Env: []string{"A=b"}, Layers: []backend.Layer{{Target: "/cache"}}}
	if err := (*Libraries)(nil).AddTo(t.Context(), &spec); err != nil || len(spec.Layers) != 1 {
		t.Fatalf("%+v, %v, want no error, len(spec.Layers) = 1", spec, err)
	}
	if err := newShelfRequest(t, k, Options{}, "b", "a").AddTo(t.Context(), &spec); err != nil {
		t.Fatal(err)
	}
	about := k.layers.asked[0]
	dir := prefix + about.Key
	if l := spec.Layers[1]; l.Source != "/layers/"+about.Key || l.Target != dir || l.Writable {
		t.Errorf("layer %+v, want Source = %q, Target = %v, Writable false", l, "/layers/"+about.Key, dir)
	}
	if !slices.Equal(spec.Env, []string{"A=b", librariesVariable + "=" + dir}) {
		t.Errorf("environment %q, want %q", spec.Env, []string{"A=b", librariesVariable + "=" + dir})
	}
	if about.Cache != "" || about.Language != "shelf" || !slices.Equal(about.Libraries, []string{"a", "b"}) {
		t.Errorf("described as %+v, want Cache empty, Language = \"shelf\", Libraries [\"a\" \"b\"]", about)
	}
}

func TestLayerFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		keeper  *keeper
		options Options
		want    []error
		says    string
	}{
		"no toolchain":          {keeper: &keeper{}, want: []error{ErrInstall, language.ErrToolchain}, says: "build one"},
		"an image that is gone": {keeper: &keeper{layers: fakeLayers{printErr: backend.ErrImageNotFound}}, want: []error{backend.ErrImageNotFound}},
		"offline, not cached":   {keeper: &keeper{layers: fakeLayers{print: "p", fills: true}}, options: Options{Offline: true}, want: []error{ErrInstall, errNotCached}},
		"a folder that is gone": {keeper: &keeper{layers: fakeLayers{print: "p"}}, options: Options{Local: "/nonexistent"}, says: "no such file"},
		"no sandbox to be had":  {keeper: &keeper{layers: fakeLayers{print: "p", fills: true}, create: broken}, want: []error{ErrInstall, broken}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := newShelfRequest(t, c.keeper, c.options, "a").layer(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want it to say %q", err, c.says)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			}
		})
	}
}
