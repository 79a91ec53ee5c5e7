package llmsandbox

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/java"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
)

// TestAheadRequest: what an interpreter cannot take on after its start is run in another one.
func TestAheadRequest(t *testing.T) {
	plan := func(path, code string, args ...string) language.Plan {
		return language.Plan{
			Files: []language.File{{Path: path, Data: []byte(code)}},
			Steps: []language.Step{{Argv: append([]string{"python3", "-u", "/w/main.py"}, args...)}},
		}
	}
	a := &ahead{plan: plan("/w/main.py", ""), env: []string{"A=1", "B=2"}, collection: &collection{root: "/t/c"}}
	same := []string{"A=1", "B=2"}
	for _, c := range []struct {
		name string
		plan language.Plan
		env  []string
		want string // "": none
	}{
		{"code", plan("/w/main.py", "1"), same, `{"op":"run","id":1,"code":"1","file":"/w/main.py","dir":"/w","touch":"/t/c/began"}`},
		{"all", plan("/w/main.py", "é\n", "x", "<"), []string{"B=3", "A=1", "C=a=b"},
			`{"op":"run","id":1,"code":"é\n","file":"/w/main.py","dir":"/w","args":["x","\u003c"],"env":{"B":"3","C":"a=b"},"touch":"/t/c/began"}`},
		{"another file", plan("/w/main.pyw", "1"), same, ""},
		{"other arguments of the interpreter", language.Plan{Files: a.plan.Files, Steps: []language.Step{{Argv: []string{"python3", "-O", "/w/main.py"}}}}, same, ""},
		{"fewer arguments", language.Plan{Files: a.plan.Files, Steps: []language.Step{{Argv: []string{"python3"}}}}, same, ""},
		{"a variable that Python has read", plan("/w/main.py", "1"), []string{"A=1", "B=2", "PYTHONHASHSEED=1"}, ""},
		{"a variable less", plan("/w/main.py", "1"), []string{"A=1"}, ""},
		{"no UTF-8", plan("/w/main.py", "\xff"), same, ""},
		{"an argument without UTF-8", plan("/w/main.py", "1", "\xff"), same, ""},
		{"an argument with a NUL", plan("/w/main.py", "1", "\x00"), same, ""},
		{"two files", language.Plan{Files: append(plan("/w/main.py", "1").Files, language.File{}), Steps: a.plan.Steps}, same, ""},
	} {
		r := &run{sandbox: &Sandbox{}, language: &python.Language, dir: "/w"}
		line, fits := a.request(r, c.plan, c.env, a.collection, 0)
		if fits != (c.want != "") || fits && string(line) != c.want+"\n" {
			t.Errorf("%s: got %s, %v, want %s", c.name, line, fits, c.want)
		}
	}
}

// TestAheadRequestOfCompiler: a compiler that was started ahead gets the arguments of another file, but no others for its JVM.
func TestAheadRequestOfCompiler(t *testing.T) {
	plan := func(path, code, option string) language.Plan {
		return language.Plan{
			Files: []language.File{{Path: path, Data: []byte(code)}},
			Steps: []language.Step{{Argv: []string{"javac", option, "-d", "/t", path}, Compile: true}, {Argv: []string{"java", "-cp", "/t", "Main"}}},
		}
	}
	a := &ahead{plan: plan("/w/Main.java", "", "-J-Xmx1m"), env: []string{"A=1"}, dir: "/w", collection: &collection{root: "/t/c"}}
	argv, _ := java.Language.Ahead.Compiler(a.plan, "/t/c/support")
	if want := []string{"java", "-Xmx1m", "--add-opens=java.base/java.io=ALL-UNNAMED", "/t/c/support/Ahead.java"}; !slices.Equal(argv, want) {
		t.Errorf("started as %q, want %q", argv, want)
	}
	encode := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		name string
		plan language.Plan
		env  []string
		want bool
	}{
		{"another file", plan("/w/É.java", "é#\n", "-J-Xmx1m"), []string{"A=1"}, true},
		{"a variable that the compiler does not read", plan("/w/É.java", "é#\n", "-J-Xmx1m"), []string{"A=2"}, true},
		{"one that it reads", plan("/w/É.java", "é#\n", "-J-Xmx1m"), []string{"A=1", "JDK_JAVAC_OPTIONS=-g"}, false},
		{"other options of the JVM", plan("/w/É.java", "é#\n", "-J-Xmx2m"), []string{"A=1"}, false},
		{"a line break in a path", plan("/w/É\n.java", "é#\n", "-J-Xmx1m"), []string{"A=1"}, false},
		{"one step", language.Plan{Files: a.plan.Files, Steps: a.plan.Steps[:1]}, []string{"A=1"}, false},
	} {
		r := &run{sandbox: &Sandbox{}, language: &java.Language, dir: "/w"}
		line, fits := a.request(r, c.plan, c.env, a.collection, 0)
		text := "/w/É.java\n/t/c/began\n-d\n/t\n/w/É.java"
		want := fmt.Sprintf(`"code64":%q,"text64":%q}`+"\n", encode([]byte("é#\n")), encode([]byte(text)))
		if fits != c.want || fits && !strings.HasSuffix(string(line), want) {
			t.Errorf("%s: got %s, %v, want %s, %v", c.name, line, fits, want, c.want)
		}
	}
}

// TestAheadKeepsTime: the time that a run has taken to install its libraries counts against its timeout.
func TestAheadKeepsTime(t *testing.T) {
	s := &Sandbox{language: &python.Language}
	s.ahead.looked = true
	begun := time.Now().Add(-time.Minute)
	r := &run{sandbox: s, language: s.language, started: begun}
	if ran, err := r.executeAhead(t.Context(), "1", &RunOptions{}); ran || err != nil || !r.started.Equal(begun) {
		t.Errorf("ran %v, %v, started %v, want not run and %v", ran, err, r.started, begun)
	}
}

// TestAheadRequestWithImports: what a module may have looked at does not change any more.
func TestAheadRequestWithImports(t *testing.T) {
	main := language.Plan{
		Files: []language.File{{Path: "/w/main.py", Data: []byte("1")}},
		Steps: []language.Step{{Argv: []string{"python3", "-u", "/w/main.py"}}},
	}
	a := &ahead{plan: main, env: []string{"A=1"}, dir: "/w", imports: true, collection: &collection{root: "/t/c"}}
	for _, c := range []struct {
		name, dir string
		env       []string
		want      bool
	}{
		{"the same", "/w", []string{"A=1"}, true},
		{"another variable", "/w", []string{"A=1", "B=2"}, false},
		{"another value", "/w", []string{"A=2"}, false},
		{"another directory", "/w/d", []string{"A=1"}, false},
	} {
		r := &run{sandbox: &Sandbox{}, language: &python.Language, dir: c.dir}
		if line, fits := a.request(r, main, c.env, a.collection, 0); fits != c.want {
			t.Errorf("%s: got %s, %v, want %v", c.name, line, fits, c.want)
		}
	}
}
