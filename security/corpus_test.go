package security_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/security"
)

// programs are those of a directory of testdata in one language.
func programs(t testing.TB, dir, lang string) []txtar.File {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", dir, language.Family(lang)+".txtar"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("there are none: %v, want an error other than fs.ErrNotExist", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return archive.Files
}

func preset(t testing.TB, name string) *security.Checker {
	t.Helper()
	p, err := security.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, p)
}

func compiled(t testing.TB, p security.Policy) *security.Checker {
	t.Helper()
	c, err := security.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func check(t testing.TB, c *security.Checker, lang string, code []byte) security.Report {
	t.Helper()
	r, err := c.Check(t.Context(), lang, code)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What each language's evasions are about.
var evaded = map[string]string{
	"python": "os", "javascript": "fs", "java": "java.net.Socket", "cpp": "sys/socket.h", "go": "os", "r": "httr", "ruby": "socket",
}

func restrictive(t *testing.T, lang string) *security.Checker {
	p := security.Policy{Name: "one", Threshold: security.High, Computed: security.High}
	if lang == "bash" {
		p.Names = []security.RestrictedName{{Name: "curl", Severity: security.High}}
	} else {
		p.Modules = []security.RestrictedModule{{Name: evaded[language.Family(lang)], Severity: security.High}}
	}
	return compiled(t, p)
}

// Every way around a restricted module that is known is found, and what only looks like it
// is not.
func TestAcceptance87Evasions(t *testing.T) {
	for _, l := range all.Coded() {
		t.Run(l.Name, func(t *testing.T) {
			c := restrictive(t, l.Name)
			for _, p := range programs(t, "evasions", l.Name) {
				if r := check(t, c, l.Name, p.Data); !r.Blocked {
					t.Errorf("%s is not found, want Blocked true:\n%s%+v", p.Name, p.Data, r.Findings)
				}
			}
			for _, p := range programs(t, "lookalikes", l.Name) {
				if l.Name == "c" && p.Name == "raw" || l.Name == "typescript" {
					continue // not all of C has raw strings; TypeScript is never read to its end
				}
				if r := check(t, c, l.Name, p.Data); r.Blocked {
					t.Errorf("%s is refused, want Blocked false:\n%s%+v", p.Name, p.Data, r.Findings)
				}
			}
		})
	}
}

// TypeScript is looked at as JavaScript, and passes only policies that let pass what they cannot read.
func TestTypeScript(t *testing.T) {
	for name, want := range map[string]bool{"development": false, "data_science": false, "production": true, "strict": true} {
		if r := check(t, preset(t, name), "typescript", []byte("const x: number = 1;\nconsole.log(x as any);")); r.Blocked != want {
			t.Errorf("%s: Blocked = %v, want %v: %+v", name, r.Blocked, want, r.Findings)
		}
	}
}

// Each category of attack, in each language, is refused by the policy for production.
func TestAcceptance89Attacks(t *testing.T) {
	for _, l := range all.Coded() {
		t.Run(l.Name, func(t *testing.T) {
			attacks := programs(t, "attacks", l.Name)
			if len(attacks) < 17 {
				t.Errorf("there are only %d, want at least 17", len(attacks))
			}
			for _, name := range []string{"production", "strict"} {
				c := preset(t, name)
				for _, p := range attacks {
					if r := check(t, c, l.Name, p.Data); !r.Blocked {
						t.Errorf("%s lets %s pass, want Blocked true:\n%s%+v", name, p.Name, p.Data, r.Findings)
					}
				}
			}
		})
	}
}

// Harmless programs pass every policy but the strict one, and are read to their end.
func TestAcceptance83HarmlessPrograms(t *testing.T) {
	for _, l := range all.Coded() {
		if l.Name == "typescript" {
			continue // what is not read to its end: see TestTypeScript
		}
		t.Run(l.Name, func(t *testing.T) {
			harmless := programs(t, "benign", l.Name)
			if len(harmless) < 20 {
				t.Errorf("there are only %d, want at least 20", len(harmless))
			}
			for _, name := range security.Presets() {
				if name == "strict" {
					continue
				}
				c := preset(t, name)
				for _, p := range harmless {
					r := check(t, c, l.Name, p.Data)
					if r.Blocked {
						t.Errorf("%s refuses %s, want Blocked false:\n%s%+v", name, p.Name, p.Data, r.Violations())
					}
					for _, f := range r.Findings {
						if f.Rule == "unreadable" {
							t.Errorf("%s is not read: %s, want Rule != \"unreadable\"", p.Name, f.Reason)
						}
					}
				}
			}
		})
	}
}
