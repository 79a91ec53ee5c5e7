package declared

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

const withLibraries = small + `[libraries]
manager = "teacup"
programs = [["teacup", "cup"]]
install = ["teacup", "install", "--to={target}", "{libraries}"]
env = { TCLLIBPATH = "{target}/lib" }
registries = ["https://localhost/tcl"]
`

func TestLibraries(t *testing.T) {
	each := strings.Replace(withLibraries, "{libraries}", "{library}", 1)
	src := language.InstallSource{Libraries: []string{"a", "b@2"}, Dir: "/libs", TempDir: "/tmp", Program: func(names ...string) string { return names[1] }}
	for name, c := range map[string]struct {
		text string
		want [][]string
	}{
		"together":   {withLibraries, [][]string{{"cup", "install", "--to=/libs", "a", "b@2"}}},
		"one by one": {each, [][]string{{"cup", "install", "--to=/libs", "a"}, {"cup", "install", "--to=/libs", "b@2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := parse(t, c.text)
			plan, err := l.Libraries.Install(src)
			if err != nil {
				t.Fatal(err)
			}
			var got [][]string
			for _, s := range plan.Steps {
				got = append(got, s.Argv)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if l.Libraries.Program != "tclsh8.6" || l.Details.PackageManager != "teacup" || !slices.Equal(l.Libraries.Needs[0], []string{"teacup", "cup"}) {
				t.Errorf("got %+v, %q, want what is declared", l.Libraries, l.Details.PackageManager)
			}
		})
	}
	local := src
	local.Local = "/local"
	if _, err := parse(t, withLibraries).Libraries.Install(local); !errors.Is(err, errLocal) {
		t.Errorf("got %v, want errLocal", err)
	}
}

func TestLibrariesUse(t *testing.T) {
	for name, c := range map[string]struct {
		text, current string
		dirs          []string
		want          string
	}{
		"one":       {withLibraries, "", []string{"/a"}, "TCLLIBPATH=/a/lib"},
		"two":       {withLibraries, "/usr/x", []string{"/a", "/b"}, "TCLLIBPATH=/a/lib:/b/lib:/usr/x"},
		"separator": {strings.Replace(withLibraries, "[libraries]", "[libraries]\nseparator = \" \"", 1), "c", []string{"/a", "/b"}, "TCLLIBPATH=/a/lib /b/lib c"},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, c.text).Libraries.Use(c.dirs, func(string) string { return c.current })
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLibrariesRegistries(t *testing.T) {
	ask := language.Ask{Env: func(string) string { return "" }, File: func(string) ([]byte, error) { return nil, errors.New("no file") }}
	if _, err := parse(t, withLibraries).Libraries.Registries(ask); err == nil {
		t.Error("got no error, want that the certificates cannot be read")
	}
	ask.File = func(string) ([]byte, error) { return []byte("-----BEGIN CERTIFICATE-----"), nil }
	for range 2 {
		r, err := parse(t, withLibraries).Libraries.Registries(ask)
		if err != nil || !slices.Equal(r.URLs, []string{"https://localhost/tcl"}) || len(r.Files) != 1 {
			t.Errorf("got %+v, %v, want the registry, and one file of certificates", r, err)
		}
	}
}

func TestCheck(t *testing.T) {
	check := parse(t, withLibraries).Libraries.Check
	for _, good := range []string{"a", "Try::Tiny", "penlight@1.13.1", "a-b_c.d", "JSON~1.2", "@scope/a", "a==1,<2"} {
		if got, err := check(good); err != nil || got != good {
			t.Errorf("check(%q) = %q, %v, want it as it is", good, got, err)
		}
	}
	for _, bad := range []string{"", "-x", "--to=/etc", "../a", "/a", "a b", "a\n", "a;b", "https://localhost/a", "$(id)", "~a", "a\x00", "ä", strings.Repeat("a", 300)} {
		if got, err := check(bad); !errors.Is(err, language.ErrInvalidLibrary) {
			t.Errorf("check(%q) = %q, %v, want ErrInvalidLibrary", bad, got, err)
		}
	}
}

// installPlan fails the test unless an accepted library is installed as the rules for every declaration say.
func installPlan(t *testing.T, l *language.Language, library string) {
	t.Helper()
	plan, err := l.Libraries.Install(language.InstallSource{Libraries: []string{library}, Dir: "/libs", TempDir: "/tmp", Program: func(names ...string) string { return names[0] }})
	if err != nil || len(plan.Steps) != 1 || len(plan.Steps[0].Argv) == 0 {
		t.Errorf("got %+v, %v, want one step", plan, err)
		return
	}
	if !slices.ContainsFunc(l.Libraries.Needs, func(names []string) bool { return slices.Contains(names, plan.Steps[0].Argv[0]) }) {
		t.Errorf("%q is started, want one of %q", plan.Steps[0].Argv[0], l.Libraries.Needs)
	}
}
