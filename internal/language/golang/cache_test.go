package golang

import (
	"os/exec"
	"strings"
	"testing"
)

func TestNeedsOnlyBasics(t *testing.T) {
	none := map[string][]byte{}
	for name, c := range map[string]struct {
		code  string
		files map[string][]byte
		want  bool
	}{
		"no import":                  {"package main\nfunc main() {}", none, true},
		"one":                        {"package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"net/http\") }", none, true},
		"a group":                    {"package main\nimport (\n\t\"fmt\"; . `os`\n\tr \"math/rand/v2\" // \"net/http\"\n)", none, true},
		"one that is no basic":       {"package main\nimport \"fmt\"\nimport _ \"net/http\"", none, false},
		"one in escapes":             {"package main\nimport \"\\x6eet\"", none, false},
		"another module":             {"package main\nimport \"example.org/m/fmt\"", none, false},
		"one that never ends":        {"package main\nimport \"" + strings.Repeat("a/", 4<<20) + "b\"", map[string][]byte{"b/b.go": nil}, false},
		"cgo":                        {"package main\nimport \"C\"", none, false},
		"no Go":                      {"\x00(((", none, true},
		"nothing":                    {"", none, true},
		"a package of the program's": {"package main\nimport \"program/shapes/round\"", map[string][]byte{"shapes/round/a.go": []byte("package round\nimport \"math\"")}, true},
		"which needs more":           {"package main\nimport \"program/shapes\"", map[string][]byte{"shapes/a.go": []byte("package shapes\nimport \"image/png\"")}, false},
		"a second file":              {"package main", map[string][]byte{"b.go": []byte("package main\nimport \"net\"")}, false},
		"a file that is no Go":       {"package main", map[string][]byte{"b.txt": []byte("import \"net\"")}, true},
	} {
		if got := needsOnlyBasics([]byte(c.code), c.files); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestBasics: all of them exist, and the whole cache has them, too.
func TestBasics(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.Standard}}"}, strings.Fields(basics)...)...)
	cmd.Env = append(cmd.Environ(), environment...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if want := strings.Repeat("true\n", len(strings.Fields(basics))); err != nil || string(out) != want {
		t.Errorf("%v: %s, want only packages of the standard library", err, out)
	}
	if whole := strings.Join(cache.Fill[0].Argv, " "); !strings.Contains(whole, strings.Join(cache.Part.Fill[0].Argv, " ")) {
		t.Errorf("the whole cache is filled by %s, want all of the part's packages first", whole)
	}
	if cache.Part.Target != cache.Target || cache.Part.Program != cache.Program {
		t.Errorf("the part is of %s at %s, want %s at %s", cache.Part.Program, cache.Part.Target, cache.Program, cache.Target)
	}
}

// FuzzImports: what a program imports is looked at before any sandbox exists.
func FuzzImports(f *testing.F) {
	f.Add([]byte("package main\nimport (\n\"fmt\"; x `os` // y\n)\nfunc main() {}"))
	f.Add([]byte("import \"\\xff\" 'a' \"\x00"))
	f.Add([]byte("\xef\xbb\xbfpackage main;import\"a/b/c\""))
	f.Fuzz(func(t *testing.T, code []byte) {
		needsOnlyBasics(code, map[string][]byte{"a/b.go": code})
		for _, p := range imports(code) {
			if len(p) > 3*len(code) { // a byte that is no UTF-8 becomes U+FFFD
				t.Errorf("%q is much longer than the code %q", p, code)
			}
		}
	})
}
