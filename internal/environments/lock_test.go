package environments

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

const head = "version = 1\nlanguage = \"python\"\nlibraries = [\"six\"]\n"

var digest = strings.Repeat("0a", 32)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text, says string // empty: it is valid
	}{
		{"plain", head + "[[package]]\nname = \"six\"\nversion = \"1.17.0\"\n", ""},
		{"digests and Pythons", head + "[[package]]\nname = \"six\"\nversion = \"1.17.0\"\npython = [\"3.9\", \"3.14\"]\nsha256 = [\"" + digest + "\"]\n", ""},
		{"two versions for two Pythons", head + "[[package]]\nname = \"six\"\nversion = \"1.16\"\npython = [\"3.9\"]\n[[package]]\nname = \"six\"\nversion = \"1.17\"\npython = [\"3.10\"]\n", ""},
		{"nothing", "", "version 0"},
		{"not TOML", "version = 1\n<<<", "line 2"},
		{"a newer format", strings.Replace(head, "1", "2", 1), "version 2"},
		{"an unknown key", head + "index = \"https://example.org\"\n[[package]]\nname = \"six\"\nversion = \"1\"\n", "unknown key index"},
		{"an unknown key of a package", head + "[[package]]\nname = \"six\"\nversion = \"1\"\nurl = \"https://example.org\"\n", "unknown key package.url"},
		{"an unknown language", strings.Replace(head, "python", "cobol", 1), "cobol"},
		{"a language without environments", strings.Replace(head, "python", "go", 1), `"go" has no environments`},
		{"no packages", head, "0 packages"},
		{"an option as a name", head + "[[package]]\nname = \"--index-url\"\nversion = \"1\"\n", "--index-url"},
		{"a version that is a range", head + "[[package]]\nname = \"six\"\nversion = \"1,<2\"\n", "1,<2"},
		{"a version that is a pattern", head + "[[package]]\nname = \"six\"\nversion = \"1.*\"\n", "1.*"},
		{"a version with a marker", head + "[[package]]\nname = \"six\"\nversion = \"1; python_version>'3'\"\n", "python_version"},
		{"a version with a line break", head + "[[package]]\nname = \"six\"\nversion = \"1\\n--pre\"\n", "--pre"},
		{"a name that is not canonical", head + "[[package]]\nname = \"PyYAML\"\nversion = \"1\"\n", "PyYAML"},
		{"extras", head + "[[package]]\nname = \"six[a]\"\nversion = \"1\"\n", "six[a]"},
		{"a library that is not canonical", strings.Replace(head, "six", "Six", 1) + "[[package]]\nname = \"six\"\nversion = \"1\"\n", `write it as "six"`},
		{"a wrong Python", head + "[[package]]\nname = \"six\"\nversion = \"1\"\npython = [\"2.7\"]\n", "2.7"},
		{"a wrong digest", head + "[[package]]\nname = \"six\"\nversion = \"1\"\nsha256 = [\"abc\"]\n", "abc"},
		{"one package twice", head + "[[package]]\nname = \"six\"\nversion = \"1\"\n[[package]]\nname = \"six\"\nversion = \"2\"\n", "twice"},
		{"one package twice for a Python", head + "[[package]]\nname = \"six\"\nversion = \"1\"\npython = [\"3.9\"]\n[[package]]\nname = \"six\"\nversion = \"2\"\npython = [\"3.10\", \"3.9\"]\n", "twice"},
		{"digests of some only", head + "[[package]]\nname = \"a\"\nversion = \"1\"\nsha256 = [\"" + digest + "\"]\n[[package]]\nname = \"b\"\nversion = \"2\"\n", "all packages have 'sha256', or none"},
		{"Pythons of some only", head + "[[package]]\nname = \"a\"\nversion = \"1\"\npython = [\"3.9\"]\n[[package]]\nname = \"b\"\nversion = \"2\"\n", "all packages have 'python', or none"},
		{"tables in tables", "a = " + strings.Repeat("{a=", 20_000), "tables or arrays in others"},
		{"a dotted key", strings.Repeat("a.", 20_000) + "a = 1", "tables or arrays in others"},
		{"a dotted key of quoted parts", strings.Repeat(`"a".`, 20_000) + "a = 1", "tables or arrays in others"},
		{"a dotted key after a comment", "# \" [\n" + strings.Repeat("a.", 20_000) + "a = 1", "tables or arrays in others"},
		{"a dotted table", "[" + strings.Repeat("a.", 20_000) + "a]", "tables or arrays in others"},
		{"arrays in arrays", "a = " + strings.Repeat("[", 20_000), "tables or arrays in others"},
		{"a string of several lines", "a = \"\"\"\n\"\"\"", "tables or arrays in others"},
		{"comments and escapes", "# it's [{.\n" + head + "[[package]]\nname = 'six'\nversion = \"1\\u002e17\" # {\n", ""},
		{"too large", head + "# " + strings.Repeat("x", maxLock), "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Parse([]byte(c.text))
			if c.says == "" {
				if err != nil {
					t.Fatalf("%v, want nil", err)
				}
				again(t, l)
				return
			}
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want backend.ErrInvalid, an error containing %q", err, c.says)
			}
		})
	}
}

// again encodes a lock and parses it.
func again(t *testing.T, l Lock) {
	t.Helper()
	text, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatalf("%v: of\n%s", err, text)
	}
	if !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, want %+v", got, l)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "[[package]]\nname = \"six\"\nversion = \"1\"\npython = [\"3.9\"]\nsha256 = [\"" + digest + "\"]\n"))
	f.Add([]byte(head + "[[package]]\nname = \"six\"\nversion = \"1.17.0\"\n"))
	f.Add([]byte("[[package]]\nname=[[1]]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Parse(data)
		if err != nil {
			return
		}
		for _, p := range l.Packages {
			if strings.ContainsAny(p.Name+p.Version, " \n\t;'\"/\\@") || strings.HasPrefix(p.Name, "-") {
				t.Errorf("package %q in version %q, want no such characters", p.Name, p.Version)
			}
		}
		text, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(text); err != nil || len(got.Packages) != len(l.Packages) {
			t.Errorf("%+v, %v: of\n%s", got, err, text)
		}
	})
}

// TestDataScience has each library of the built-in environment locked for each Python, with digests.
func TestDataScience(t *testing.T) {
	l, err := Find(Default)
	if err != nil {
		t.Fatal(err)
	}
	again(t, l)
	for _, library := range l.Libraries {
		var pythons []string
		for _, p := range l.Packages {
			if p.Name != library {
				continue
			}
			pythons = append(pythons, p.Python...)
			if len(p.SHA256) == 0 {
				t.Errorf("%s %s has no digest", p.Name, p.Version)
			}
		}
		slices.Sort(pythons)
		if want := []string{"3.10", "3.11", "3.12", "3.13", "3.14", "3.9"}; !slices.Equal(pythons, want) {
			t.Errorf("%s is locked for Python %v, want %v", library, pythons, want)
		}
	}
}

func TestSaveFindRemove(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", filepath.Join(t.TempDir(), "config"))
	if names, err := Names(); err != nil || !slices.Equal(names, []string{Default}) {
		t.Errorf("%q, %v, want only %q", names, err, Default)
	}
	if _, err := Find("web"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	l, err := New("python", []string{"six"}, []language.Package{{Name: "six", Version: "1.17.0", Python: []string{"3.11"}}})
	if err != nil {
		t.Fatal(err)
	}
	path, err := Save("web", l)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", path} {
		if got, err := Find(name); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, l)
		}
		if got := Name(name); got != "web" {
			t.Errorf("Name(%q) = %q, want web", name, got)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%v, want the lock alone", entries)
	}
	if names, err := Names(); err != nil || !slices.Equal(names, []string{Default, "web"}) {
		t.Errorf("%q, %v, want %q and web", names, err, Default)
	}
	if err := errors.Join(Remove("web")); err != nil {
		t.Error(err)
	}
	if err := Remove("web"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	for _, name := range []string{Default, "", "-x", "Web", "a b", strings.Repeat("x", 41)} {
		if _, err := Save(name, l); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Save(%q): %v, want backend.ErrInvalid", name, err)
		}
	}
	if _, err := Find(filepath.Join(t.TempDir(), "gone.toml")); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}
