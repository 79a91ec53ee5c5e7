package declared

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a declaration with nothing that can be left out.
const small = `name = "tcl"
title = "Tcl"
programs = [["tclsh8.6", "tclsh"], ["cc"]]
install = "apt-get install tcl"
main = "main.tcl"
run = ["tclsh", "{main}", "{args}"]

[details]
version = ["tclsh", "-v"]
`

func TestBuiltin(t *testing.T) {
	entries, err := files.ReadDir("builtin")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := files.ReadFile("builtin/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		l, err := Parse(e.Name(), text)
		if err != nil {
			t.Error(err)
			continue
		}
		if l.Name+".toml" != e.Name() || l.Scan == nil || len(l.Details.UseCases) == 0 || len(l.Details.Examples) == 0 {
			t.Errorf("%s declares %q, want a language of the file's name with words for policies, use cases and examples", e.Name(), l.Name)
		}
	}
	if got := len(Builtin()); got != len(entries) {
		t.Errorf("%d languages of %d files, want all", got, len(entries))
	}
}

func TestParse(t *testing.T) {
	l, err := Parse("tcl.toml", []byte(small+"[env]\nTCLLIBPATH = \"{dir}\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "tcl" || l.Title != "Tcl" || l.Scan != nil || l.Libraries != nil || l.Kernel != nil || string(l.Declaration) != small+"[env]\nTCLLIBPATH = \"{dir}\"\n" {
		t.Errorf("got %+v, want Tcl without words for policies, libraries and kernel", l)
	}
	if !slices.Equal(l.Alternatives("tclsh"), []string{"tclsh8.6", "tclsh"}) {
		t.Errorf("alternatives %q, want those declared", l.Alternatives("tclsh"))
	}
}

func TestParseErrors(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("%q is not in the declaration", old)
		}
		return strings.Replace(small, old, new, 1)
	}
	policy := func(text string) string { return small + "[policy]\n" + text }
	libraries := func(text string) string {
		return small + "[libraries]\nmanager = \"m\"\nprograms = [[\"m\"]]\n" + text
	}
	const installs = "install = [\"m\", \"{target}\", \"{libraries}\"]\n"
	for name, c := range map[string]struct{ text, want string }{
		"syntax":                {"name = \"a\"\ntitle = \n", "f.toml:2: title: "},
		"type":                  {replace(`"Tcl"`, "3"), "f.toml:2: title: "},
		"unknown key":           {small + "color = \"red\"\n", "f.toml:10: details.color: language declaration is not valid: there is no such key"},
		"unknown top key":       {"colour = 1\n" + small, "f.toml:1: colour: "},
		"unknown table":         {small + "[kernel]\nrun = 1\n", "f.toml:10: kernel: "},
		"unknown key in tables": {small + "[[details.examples]]\ntitle = \"a\"\ncode = \"b\"\nlang = \"c\"\n", "f.toml:13: details.examples.lang: "},
		"key twice":             {"name = \"a\"\n" + small, "f.toml:2: "},
		"large":                 {small + strings.Repeat("#", MaxFile), "f.toml: language declaration is not valid: it is larger than 64 KiB"},
		"empty":                 {"", "f.toml: name: "},
		"name":                  {replace(`"tcl"`, `"Tcl"`), "f.toml:1: name: "},
		"name of two parts":     {replace(`"tcl"`, `"tcl-9"`), "f.toml:1: name: "},
		"name is an option":     {replace(`"tcl"`, `"-l"`), "f.toml:1: name: "},
		"title":                 {replace(`"Tcl"`, `"a\u001b[1m"`), "f.toml:2: title: "},
		"no title":              {replace("title = \"Tcl\"\n", ""), "f.toml: title: "},
		"alias":                 {replace("title", "aliases = [\"a b\"]\ntitle"), "f.toml:2: aliases: "},
		"alias twice":           {replace("title", "aliases = [\"t\", \"t\"]\ntitle"), "f.toml:2: aliases: "},
		"alias is the name":     {replace("title", "aliases = [\"tcl\"]\ntitle"), "f.toml:2: aliases: "},
		"ending":                {replace("title", "extensions = [\"tcl\"]\ntitle"), "f.toml:2: extensions: "},
		"ending with a path":    {replace("title", "extensions = [\".a/b\"]\ntitle"), "f.toml:2: extensions: "},
		"shebang":               {replace("title", "shebangs = [\"/usr/bin/tclsh\"]\ntitle"), "f.toml:2: shebangs: "},
		"no programs":           {replace(`[["tclsh8.6", "tclsh"], ["cc"]]`, "[]"), "f.toml:3: programs: "},
		"no alternative":        {replace(`["cc"]`, "[]"), "f.toml:3: programs: "},
		"program is a path":     {replace(`"cc"`, `"../cc"`), "f.toml:3: programs: "},
		"program is an option":  {replace(`"cc"`, `"-c"`), "f.toml:3: programs: "},
		"install":               {replace(`"apt-get install tcl"`, `"a\nb"`), "f.toml:4: install: "},
		"image":                 {replace("main =", "image = \"--privileged\"\nmain ="), "f.toml:5: image: "},
		"main":                  {replace(`"main.tcl"`, `"../main.tcl"`), "f.toml:5: main: "},
		"main without ending":   {replace(`"main.tcl"`, `"main"`), "f.toml:5: main: "},
		"main is hidden":        {replace(`"main.tcl"`, `".main"`), "f.toml:5: main: "},
		"no run":                {replace(`["tclsh", "{main}", "{args}"]`, "[]"), "f.toml:6: run: "},
		"run is a line":         {replace(`["tclsh", "{main}", "{args}"]`, `"tclsh {main}"`), "f.toml:6: run: "},
		"undeclared program":    {replace(`["tclsh", "{main}"`, `["sh", "{main}"`), `f.toml:6: run: language declaration is not valid: "sh" is not among programs`},
		"placeholder":           {replace(`"{main}"`, `"{file}"`), "f.toml:6: run: language declaration is not valid: there is no placeholder {file} here: use {main}, "},
		"placeholder elsewhere": {replace("run =", "compile = [[\"cc\", \"{args}\"]]\nrun ="), "f.toml:6: compile: "},
		"open brace":            {replace(`"{main}"`, `"{main"`), "f.toml:6: run: "},
		"closed brace":          {replace(`"{main}"`, `"main}"`), "f.toml:6: run: "},
		"part of a list":        {replace(`"{args}"`, `"-a{args}"`), "f.toml:6: run: "},
		"output of nothing":     {replace(`"tclsh", "{main}"`, `"{output}"`), "f.toml:6: run: "},
		"NUL":                   {replace(`"{main}"`, `"\u0000"`), "f.toml:6: run: "},
		"variable":              {small + "[env]\n\"A=B\" = \"c\"\n", "f.toml:10: env: "},
		"value":                 {small + "[env]\nA = \"{args}\"\n", "f.toml:11: env.A: "},
		"no version":            {replace(`["tclsh", "-v"]`, "[]"), "f.toml:9: details.version: "},
		"version of another":    {replace(`["tclsh", "-v"]`, `["bash"]`), "f.toml:9: details.version: "},
		"example":               {small + "[[details.examples]]\ntitle = \"a\"\n", "f.toml:10: details.examples: "},
		"line comment":          {policy("line_comments = [\"\"]\n"), "f.toml:11: policy.line_comments: "},
		"block comment":         {policy("block_comments = [{ open = \"/*\" }]\n"), "f.toml:11: policy.block_comments: "},
		"string":                {policy("strings = [{ close = \"'\" }]\n"), "f.toml:11: policy.strings: "},
		"two kinds":             {policy("line_comments = [\"#\"]\nstrings = [{ open = \"#\", close = \"#\" }]\n"), "f.toml:10: policy: "},
		"import":                {policy("imports = [\"a b\"]\n"), "f.toml:11: policy.imports: "},
		"separator":             {policy("separators = [\"{\"]\n"), "f.toml:11: policy.separators: "},
		"tool":                  {libraries("install = [\"n\", \"{target}\", \"{libraries}\"]\n"), "f.toml:13: libraries.install: "},
		"no target":             {libraries("install = [\"m\", \"{libraries}\"]\n"), "f.toml:13: libraries.install: "},
		"no libraries":          {libraries("install = [\"m\", \"{target}\"]\n"), "f.toml:13: libraries.install: "},
		"no variable":           {libraries(installs), "f.toml:10: libraries.env: "},
		"registry":              {libraries(installs + "env = { A = \"{target}\" }\nregistries = [\"ftp://localhost\"]\n"), "f.toml:15: libraries.registries: "},
		"credentials":           {libraries(installs + "env = { A = \"{target}\" }\nregistries = [\"https://me:pw@localhost\"]\n"), "f.toml:15: libraries.registries: "},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Parse("f.toml", []byte(c.text))
			if !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, %v, want ErrInvalid that begins with %q", l, err, c.want)
			}
		})
	}
}

func TestLineOf(t *testing.T) {
	for name, c := range map[string]struct {
		text, key string
		want      int
	}{
		"in a string":       {"a = '''\nmain = 1\n'''\nmain = \"\"\n", "main", 4},
		"behind an array":   {"programs = [\n  [\"a\"],\n]\nmain = 1\n", "main", 4},
		"in a table":        {"run = 1\n[ a ]\nrun = 1\n[b]\nrun = 2 # [a]\n", "b.run", 5},
		"in an inline one":  {"a = { b = 1 }\n[c]\nb = 2\n", "a.b", 1},
		"quoted":            {"\"main\" = 1\n", "main", 1},
		"only its table":    {"a = 1\n[details]\nb = 1\n", "details.version", 2},
		"a table of tables": {"a = 1\n[[d.e]]\nb = 1\n", "d.e", 2},
		"neither":           {"a = 1\n", "b", 0},
	} {
		if got := lineOf([]byte(c.text), c.key); got != c.want {
			t.Errorf("%s: line %d, want %d", name, got, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	large, good := filepath.Join(dir, "large.toml"), filepath.Join(dir, "good.toml")
	if err := errors.Join(os.WriteFile(large, make([]byte, MaxFile+1), 0o600), os.WriteFile(good, []byte(small), 0o600)); err != nil {
		t.Fatal(err)
	}
	if l, err := Read(good); err != nil || l.Name != "tcl" {
		t.Errorf("got %v, %v, want tcl", l, err)
	}
	if _, err := Read(large); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), large) {
		t.Errorf("got %v, want ErrInvalid that names the file", err)
	}
	if _, err := Read(filepath.Join(dir, "none.toml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

// FuzzParse: no text makes a language whose plan fails, or that starts what it did not declare.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(withLibraries))
	for _, l := range Builtin() {
		f.Add(l.Declaration)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse("f", text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
			return
		}
		if !validName(l.Name) || len(l.Programs) == 0 {
			t.Errorf("got %+v, want a name and programs", l)
		}
		if plan, err := l.Plan(newSource()); err != nil {
			t.Errorf("Plan: %v, want no error", err)
		} else {
			checkPlan(t, l, plan)
		}
		if l.Libraries != nil {
			installPlan(t, l, "a")
		}
		if l.Scan != nil {
			checkFacts(t, l, []byte("/* \"a\" */ use a::{b, c}; # '"))
		}
	})
}
