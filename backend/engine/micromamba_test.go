package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

func TestMicromamba(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  Micromamba
		language string
		own      bool // the sandbox names its image
		want     string
	}{
		{"the default image lacks the language", Micromamba{}, "python", false, "install -y -n base -c conda-forge python"},
		{"a shell it has", Micromamba{}, "bash", false, ""},
		{"an image of the sandbox's own", Micromamba{}, "python", true, ""},
		{"an image for all", Micromamba{Image: "mine:1"}, "python", false, ""},
		{"a version of the language", Micromamba{Packages: []string{"numpy", "python=3.12"}}, "python", false, "install -y -n base -c conda-forge numpy python=3.12"},
		{"a channel of the language", Micromamba{Packages: []string{"main::python>=3"}}, "python", false, "install -y -n base -c conda-forge main::python>=3"},
		{"twice, in another order", Micromamba{Env: "e.1", Packages: []string{"b", "a", "b"}, Channels: []string{"z", "y"}}, "r", true, "install -y -n e.1 -c z -c y a b"},
	} {
		o, err := Options{KeepImage: true, Micromamba: &c.options}.inMicromamba()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.TrimPrefix(strings.Join(o.install(c.language, c.own), " "), "micromamba "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if !o.KeepImage {
			t.Errorf("%s: other options are gone, want KeepImage true", c.name)
		}
	}
}

// What was given stays the caller's own, and what is not well-formed changes nothing.
func TestMicromambaKeeps(t *testing.T) {
	m := Micromamba{Env: "tools", Packages: []string{"b", "a"}}
	own := map[string]string{"python": "py:1"}
	o, err := Options{Images: own, Micromamba: &m}.inMicromamba()
	if err != nil {
		t.Fatal(err)
	}
	if o.Images["python"] != "py:1" || o.Images["bash"] != MicromambaImage || len(own) != 1 {
		t.Errorf("images %q, the caller's %q, want o.Images[\"python\"] = \"py:1\", o.Images[\"bash\"] = MicromambaImage, len(own) = 1", o.Images, own)
	}
	if diff := cmp.Diff([]string{"micromamba", "run", "-n", "tools"}, o.Micromamba.enter()); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	m.Packages[0] = "-x"
	if got := o.install("bash", false); slices.Contains(got, "-x") || m.Packages[1] != "a" {
		t.Errorf("installs %q, want got without \"-x\", m.Packages[1] = \"a\"", got)
	}
	for _, l := range all.Coded() {
		if o.Images[l.Name] == "" {
			t.Errorf("%s has no image, want o.Images[l.Name] not empty", l.Name)
		}
	}
	if got := o.install("python", false); len(got) != 9 {
		t.Errorf("an image of the caller's own is given the language: %q, want len(got) = 9", got)
	}
	bad := Options{Container: "c", Micromamba: &Micromamba{Packages: []string{"a"}}}
	if _, err := New(nil, Flavor{}, &bad); !errors.Is(err, backend.ErrInvalid) || bad.Micromamba.Env != "" || bad.Images != nil {
		t.Errorf("a container and packages: %v, want %v, and %+v as it was", err, backend.ErrInvalid, bad)
	}
}

func TestMicromambaNames(t *testing.T) {
	long := strings.Repeat("a", 101)
	for _, c := range []struct {
		what     string
		options  func(string) *Micromamba
		yes, not []string
	}{
		{
			"package", func(s string) *Micromamba { return &Micromamba{Packages: []string{s}} },
			[]string{"numpy", "numpy=2.1", "numpy==2.1.0", "numpy>=2,<3", "python=3.12.*", "_libgcc_mutex", "r-base", "x=1.2=py39_0", "x!=1.0|2", "conda-forge::numpy~=2.1"},
			[]string{"", "-n", "--root-prefix=/x", "a b", "a;b", "$(id)", "a\nb", "a=", "::a", "a::b::c d", "../a", "a\x00", "é", "a`b`", "a=1 2", "a[version=1]", long, "-c::a"},
		},
		{
			"environment", func(s string) *Micromamba { return &Micromamba{Env: s} },
			[]string{"base", "my-env", "e_1.2"}, []string{"-x", "a/b", "../x", "a b", "a\n", "$x", long},
		},
		{
			"channel", func(s string) *Micromamba { return &Micromamba{Channels: []string{s}} },
			[]string{"conda-forge", "pkgs/main", "conda-forge/label/dev", "https://example.org/conda", "http://localhost:8080/c", "file:///srv/channel"},
			[]string{"", "-x", "a b", "ftp://example.org/c", "file://host/c", "file:c", "https:///c", "https://example.org/a b", "https://example.org/c?token=x", "https://e\n", "https://example.org/c#x", "::"},
		},
	} {
		for _, s := range c.yes {
			if _, err := (Options{Micromamba: c.options(s)}).inMicromamba(); err != nil {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
		for _, s := range c.not {
			if _, err := (Options{Micromamba: c.options(s)}).inMicromamba(); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.what) {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
	}
}

// An address with a secret is refused, without saying it.
func TestMicromambaChannelSecrets(t *testing.T) {
	for _, c := range []string{"https://me:hush@example.org/c", "https://hush@example.org/c", "https://example.org/t/hush/c", "https://me:hush@exa mple.org/%zz"} {
		_, err := Options{Micromamba: &Micromamba{Channels: []string{c}}}.inMicromamba()
		if !errors.Is(err, backend.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want backend.ErrInvalid, an error without \"hush\"", c, err)
		}
	}
}

// Whatever is taken stays one argument that is no option.
func FuzzMicromambaPackage(f *testing.F) {
	for _, s := range []string{"numpy", "numpy>=2,<3", "c::n=1=b", "-n", "a b", "a\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := Options{Micromamba: &Micromamba{Packages: []string{s}}}.inMicromamba()
		if err != nil {
			return
		}
		argv := o.install("bash", true)
		if len(argv) != 8 || argv[len(argv)-1] != s {
			t.Fatalf("installs %q, want len(argv) = 8, argv[len(argv)-1] = %v", argv, s)
		}
		if s[0] == '-' || strings.ContainsAny(s, " \t\r\n\x00'\"`$;&()\\") || packageName(s) == "" {
			t.Errorf("%q is taken, want s[0] != '-', strings.ContainsAny(s, \" \\t\\r\\n\\x00'\\\"`$;&()\\\\\") = false, packageName(s) not empty", s)
		}
	})
}

func TestChanged(t *testing.T) {
	before := []string{"PATH=/bin", "HOME=/sandbox", "SAME=1"}
	out := "A=noise\x00B=2\nthe-mark\nPATH=/env/bin:/bin\x00HOME=/sandbox\x00SAME=1\x00LINES=a\nb=c\x00EMPTY=\x00SHLVL=2\x00_=/usr/bin/env\x00PWD=/\x00no variable\x00=x\x00"
	got, err := changed(before, []byte(out), "the-mark")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"PATH=/env/bin:/bin", "LINES=a\nb=c", "EMPTY="}, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if _, err := changed(before, []byte("A=1\x00"), "the-mark"); err == nil {
		t.Error("what has no mark was taken: got no error, want an error")
	}
}
