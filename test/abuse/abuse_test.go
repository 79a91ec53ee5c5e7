package abuse

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCasesAreWhole(t *testing.T) {
	names, used := map[string]bool{}, 0
	for _, c := range Cases() {
		used++
		if names[c.Name] || !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(c.Name) {
			t.Errorf("name %q is taken or odd, want names[c.Name] = false, regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(c.Name) = true", c.Name)
		}
		names[c.Name] = true
		if strings.Contains(c.Source, Canary) {
			t.Errorf("%s holds the canary, want Source without Canary", c.Name)
		}
		if c.Want.Status == "" {
			t.Errorf("%s wants no status", c.Name)
		}
		patterns := slices.Concat(c.Want.Output, c.Want.Never)
		for _, e := range c.Want.Or {
			patterns = append(patterns, e.Says)
			if e.Status == "" || e.Status == c.Want.Status || e.Why == "" {
				t.Errorf("%s has an end without its own status, or without a reason: %+v, want Status not empty, Status != %v, Why not empty", c.Name, e, c.Want.Status)
			}
			// A failure of ours could end so too: something must show that it was the attack.
			if e.Says == "" && (e.Status == "error" || e.Status == "lost" || e.Status == "killed") {
				t.Errorf("%s may end as %s whatever happened, want Says to name the outcome", c.Name, e.Status)
			}
		}
		for _, p := range patterns {
			if _, err := regexp.Compile(p); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "report.") {
			used--
		}
		return err
	})
	if err != nil || used != 0 {
		t.Errorf("%d more cases than programs, %v, want no error, used = 0", used, err)
	}
}

// Programs are compiled, never run: here nothing would hold them.
func TestProgramsCompile(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			var argv []string
			file := filepath.Join(t.TempDir(), "p"+endings[c.Language])
			switch c.Language {
			case "c":
				argv = []string{"gcc", "-Werror", "-fsyntax-only", file}
			case "python":
				argv = []string{"python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", file}
			case "bash":
				argv = []string{"bash", "-n", file}
			default:
				return // the C++ ones do not mean to compile
			}
			if err := os.WriteFile(file, []byte(c.Source), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := exec.LookPath(argv[0]); err != nil {
				if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	report := Case{Number: 42, Name: "x", Want: Want{Status: "ok", Denied: true}}
	end := `{"case":42,"what":"end","result":"end"}` + "\n"
	line := func(result string) string { return `{"case":42,"what":"a","result":"` + result + `"}` + "\n" }
	limits := Case{Number: 1, Name: "y", Want: Want{Status: "ok", Or: []End{{"error", "no room", "chance"}}, Within: time.Second, Output: []string{"^a"}, Never: []string{"b"}, Gone: "left"}}
	cases := []struct {
		name   string
		c      Case
		o      Outcome
		hidden []string
		want   string // part of the error; "" for none
	}{
		{"denied", report, Outcome{Status: "ok", Stdout: line("EPERM") + line("ENOSYS") + end}, nil, ""},
		{"succeeded", report, Outcome{Status: "ok", Stdout: line("EPERM") + line("ok") + end}, nil, "a: ok"},
		{"let through and failed", report, Outcome{Status: "ok", Stdout: line("EFAULT") + end}, nil, "EFAULT"},
		{"no end", report, Outcome{Status: "ok", Stdout: line("EPERM")}, nil, "reach its end"},
		{"more after the end", report, Outcome{Status: "ok", Stdout: line("EPERM") + end + line("EPERM")}, nil, "reach its end"},
		{"nothing tried", report, Outcome{Status: "ok", Stdout: end}, nil, "0 tries"},
		{"noise", report, Outcome{Status: "ok", Stdout: "hello\n" + line("EPERM") + end}, nil, "not a report"},
		{"another case", report, Outcome{Status: "ok", Stdout: strings.ReplaceAll(line("EPERM")+end, "42", "41")}, nil, "not a report"},
		{"status", report, Outcome{Status: "lost", Stdout: line("EPERM") + end}, nil, "lost"},
		{"another end", limits, Outcome{Status: "error", Stdout: "a", Error: "no room"}, nil, ""},
		{"another end for another reason", limits, Outcome{Status: "error", Stdout: "a"}, nil, `status is "error"`},
		{"within limits", limits, Outcome{Status: "ok", Stdout: "a", Duration: time.Second}, nil, ""},
		{"slow", limits, Outcome{Status: "ok", Stdout: "a", Duration: 2 * time.Second}, nil, "took"},
		{"output", limits, Outcome{Status: "ok", Stdout: "c"}, nil, "does not match"},
		{"never", limits, Outcome{Status: "ok", Stdout: "a", Stderr: "b"}, nil, `has "b"`},
		{"left", limits, Outcome{Status: "ok", Stdout: "a", Processes: []string{"what is left over"}}, nil, "process is left"},
		{"canary", limits, Outcome{Status: "ok", Stdout: "a", Stderr: "x" + Canary}, nil, "reveals"},
		{"hidden", limits, Outcome{Status: "ok", Stdout: "a vm7"}, []string{"", "vm7"}, "reveals"},
	}
	for _, c := range cases {
		err := c.c.Check(c.o, c.hidden...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
