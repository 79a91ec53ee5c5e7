package declared

import (
	"errors"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// newSource is one that asks for the last of alternatives.
func newSource(args ...string) language.Source {
	return language.Source{
		Code: []byte("code"), Args: args, RunID: "r1", Workdir: "/work dir", TempDir: "/tmp",
		Program: func(names ...string) string { return names[len(names)-1] },
	}
}

func parse(t *testing.T, text string) *language.Language {
	t.Helper()
	l, err := Parse("f.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPlan(t *testing.T) {
	head := strings.Split(small, "run =")[0]
	const tail = "\n[details]\nversion = [\"cc\"]\n"
	for name, c := range map[string]struct {
		commands string
		src      language.Source
		files    []string
		want     []language.Step
		cleanup  []string
	}{
		"interpreted": {
			`run = ["tclsh8.6", "-I{dir}", "{main}", "{args}", "{{a}}"]`, newSource("a b", "{main}", ""),
			[]string{"/work dir/.run-r1.tcl"},
			[]language.Step{{Argv: []string{"tclsh", "-I/work dir", "/work dir/.run-r1.tcl", "a b", "{main}", "", "{a}"}}},
			[]string{"/work dir/.run-r1.tcl"},
		},
		"environment": {
			"run = [\"tclsh\", \"{main}\"]\nenv = { B = \"{temp}:{workdir}\", A = \"x\" }", newSource(),
			[]string{"/work dir/.run-r1.tcl"},
			[]language.Step{{Argv: []string{"tclsh", "/work dir/.run-r1.tcl"}, Env: []string{"A=x", "B=/tmp:/work dir"}}},
			[]string{"/work dir/.run-r1.tcl"},
		},
		"compiled": {
			"compile = [[\"cc\", \"-o{output}.o\", \"{main}\"], [\"cc\", \"-o\", \"{output}\", \"{output}.o\", \"x/{output}/../../y\"]]\nrun = [\"{output}\", \"{args}\"]", newSource("a"),
			[]string{"/work dir/.run-r1.tcl"},
			[]language.Step{
				{Argv: []string{"cc", "-o/tmp/.run-r1.o", "/work dir/.run-r1.tcl"}, Compile: true},
				{Argv: []string{"cc", "-o", "/tmp/.run-r1", "/tmp/.run-r1.o", "x//tmp/.run-r1/../../y"}, Compile: true},
				{Argv: []string{"/tmp/.run-r1", "a"}},
			},
			[]string{"/work dir/.run-r1.tcl", "/tmp/.run-r1.o", "/tmp/.run-r1"},
		},
		"directory": {
			"directory = true\nrun = [\"tclsh\", \"{sources}\"]", newSource(),
			[]string{"/work dir/.run-r1/main.tcl"},
			[]language.Step{{Argv: []string{"tclsh", "/work dir/.run-r1/main.tcl"}}},
			[]string{"/work dir/.run-r1"},
		},
		"project": {
			`run = ["tclsh", "-I{dir}", "{sources}"]`,
			func() language.Source {
				s := newSource()
				s.Files = []language.File{{Path: "lib/a.tcl"}, {Path: "data.csv"}}
				return s
			}(),
			[]string{"/work dir/.run-r1/main.tcl", "/work dir/.run-r1/lib/a.tcl", "/work dir/.run-r1/data.csv"},
			[]language.Step{{Argv: []string{"tclsh", "-I/work dir/.run-r1", "/work dir/.run-r1/main.tcl", "/work dir/.run-r1/lib/a.tcl"}}},
			[]string{"/work dir/.run-r1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := parse(t, head+c.commands+tail).Plan(c.src)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range plan.Files {
				names = append(names, f.Path)
			}
			if !slices.Equal(names, c.files) || !reflect.DeepEqual(plan.Steps, c.want) || !slices.Equal(plan.Cleanup, c.cleanup) {
				t.Errorf("files %q, steps %+v, cleanup %q,\nwant %q, %+v, %q", names, plan.Steps, plan.Cleanup, c.files, c.want, c.cleanup)
			}
		})
	}
}

func TestPlanRefusesArguments(t *testing.T) {
	l := parse(t, strings.Replace(small, `, "{args}"`, "", 1))
	if _, err := l.Plan(newSource("a")); !errors.Is(err, language.ErrInvalidSource) || !strings.Contains(err.Error(), "programs in Tcl take none") {
		t.Errorf("got %v, want ErrInvalidSource", err)
	}
	if _, err := l.Plan(newSource()); err != nil {
		t.Error(err)
	}
}

// checkPlan fails the test unless a plan keeps the rules for every declaration.
func checkPlan(t *testing.T, l *language.Language, plan language.Plan) {
	t.Helper()
	for i, s := range plan.Steps {
		if len(s.Argv) == 0 || s.Argv[0] == "" || s.Compile != (i < len(plan.Steps)-1) {
			t.Errorf("step %d is %+v, want a program, and all but the last to compile", i, s)
			continue
		}
		known := slices.ContainsFunc(l.Programs, func(names []string) bool { return slices.Contains(names, s.Argv[0]) })
		if !known && !strings.HasPrefix(s.Argv[0], "/tmp/.run-r1") {
			t.Errorf("step %d starts %q, want one of %q or what was compiled", i, s.Argv[0], l.Programs)
		}
	}
	for _, p := range plan.Cleanup {
		if dir := path.Dir(path.Clean(p)); dir != "/tmp" && dir != "/work dir" || !strings.HasPrefix(path.Base(path.Clean(p)), ".run-r1") {
			t.Errorf("%q is removed, want only what is the run's own", p)
		}
	}
}
