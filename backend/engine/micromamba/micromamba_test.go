package micromamba

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  Options
		language string
		own      bool // the sandbox names its image
		want     string
	}{
		{"the default image lacks the language", Options{}, "python", false, "install -y -n base -c conda-forge python"},
		{"a shell it has", Options{}, "bash", false, ""},
		{"an image of the sandbox's own", Options{}, "python", true, ""},
		{"an image for all", Options{Image: "mine:1"}, "python", false, ""},
		{"a version of the language", Options{Packages: []string{"numpy", "python=3.12"}}, "python", false, "install -y -n base -c conda-forge numpy python=3.12"},
		{"a channel of the language", Options{Packages: []string{"main::python>=3"}}, "python", false, "install -y -n base -c conda-forge main::python>=3"},
		{"twice, in another order", Options{Env: "e.1", Packages: []string{"b", "a", "b"}, Channels: []string{"z", "y"}}, "r", true, "install -y -n e.1 -c z -c y a b"},
	} {
		o := engine.Options{KeepImage: true}
		if err := Apply(&o, c.options); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.TrimPrefix(strings.Join(o.Environment.Install(c.language, c.own), " "), "micromamba "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if !o.KeepImage {
			t.Errorf("%s: other options are gone", c.name)
		}
	}
}

// What was given stays the caller's own, and what is not well-formed changes nothing.
func TestApplyKeeps(t *testing.T) {
	m := Options{Env: "tools", Packages: []string{"b", "a"}}
	own := map[string]string{"python": "py:1"}
	o := engine.Options{Images: own}
	if err := Apply(&o, m); err != nil {
		t.Fatal(err)
	}
	if o.Images["python"] != "py:1" || o.Images["bash"] != DefaultImage || len(own) != 1 {
		t.Errorf("images %q, the caller's %q", o.Images, own)
	}
	if diff := cmp.Diff([]string{"micromamba", "run", "-n", "tools"}, o.Environment.Enter); diff != "" {
		t.Error(diff)
	}
	m.Packages[0] = "-x"
	if got := o.Environment.Install("bash", false); slices.Contains(got, "-x") || m.Packages[1] != "a" {
		t.Errorf("installs %q", got)
	}
	for _, l := range all.All() {
		if o.Images[l.Name] == "" {
			t.Errorf("%s has no image", l.Name)
		}
	}
	if got := o.Environment.Install("python", false); len(got) != 9 {
		t.Errorf("an image of the caller's own is given the language: %q", got)
	}
	bad := engine.Options{Container: "c"}
	if err := Apply(&bad, Options{Packages: []string{"a"}}); !errors.Is(err, backend.ErrInvalid) || bad.Environment != nil || bad.Images != nil {
		t.Errorf("a container and packages: %v, %+v", err, bad)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 101)
	for _, c := range []struct {
		what     string
		options  func(string) Options
		yes, not []string
	}{
		{
			"package", func(s string) Options { return Options{Packages: []string{s}} },
			[]string{"numpy", "numpy=2.1", "numpy==2.1.0", "numpy>=2,<3", "python=3.12.*", "_libgcc_mutex", "r-base", "x=1.2=py39_0", "x!=1.0|2", "conda-forge::numpy~=2.1"},
			[]string{"", "-n", "--root-prefix=/x", "a b", "a;b", "$(id)", "a\nb", "a=", "::a", "a::b::c d", "../a", "a\x00", "é", "a`b`", "a=1 2", "a[version=1]", long, "-c::a"},
		},
		{
			"environment", func(s string) Options { return Options{Env: s} },
			[]string{"base", "my-env", "e_1.2"}, []string{"-x", "a/b", "../x", "a b", "a\n", "$x", long},
		},
		{
			"channel", func(s string) Options { return Options{Channels: []string{s}} },
			[]string{"conda-forge", "pkgs/main", "conda-forge/label/dev", "https://example.org/conda", "http://localhost:8080/c", "file:///srv/channel"},
			[]string{"", "-x", "a b", "ftp://example.org/c", "file://host/c", "file:c", "https:///c", "https://example.org/a b", "https://example.org/c?token=x", "https://e\n", "https://example.org/c#x", "::"},
		},
	} {
		for _, s := range c.yes {
			if err := Apply(&engine.Options{}, c.options(s)); err != nil {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
		for _, s := range c.not {
			if err := Apply(&engine.Options{}, c.options(s)); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.what) {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
	}
}

// An address with a secret is refused, without saying it.
func TestChannelSecrets(t *testing.T) {
	for _, c := range []string{"https://me:hush@example.org/c", "https://hush@example.org/c", "https://example.org/t/hush/c", "https://me:hush@exa mple.org/%zz"} {
		err := Apply(&engine.Options{}, Options{Channels: []string{c}})
		if !errors.Is(err, backend.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// Whatever is taken stays one argument that is no option.
func FuzzPackage(f *testing.F) {
	for _, s := range []string{"numpy", "numpy>=2,<3", "c::n=1=b", "-n", "a b", "a\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o := engine.Options{}
		if Apply(&o, Options{Packages: []string{s}}) != nil {
			return
		}
		argv := o.Environment.Install("bash", true)
		if len(argv) != 8 || argv[len(argv)-1] != s {
			t.Fatalf("installs %q", argv)
		}
		if s[0] == '-' || strings.ContainsAny(s, " \t\r\n\x00'\"`$;&()\\") || packageName(s) == "" {
			t.Errorf("%q is taken", s)
		}
	})
}
