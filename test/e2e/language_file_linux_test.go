package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/security"
)

// ownLanguage declares Awk, whose libraries are copied by a tool of the system.
const ownLanguage = `name = "awktest"
title = "Awk of a test"
programs = [["awk"], ["sh"]]
install = "apt-get install mawk"
main = "main.awk"
run = ["awk", "-f", "{main}", "{args}"]

[libraries]
manager = "sh"
programs = [["sh"]]
install = ["sh", "-c", 'for l do echo "BEGIN {{ print \"library $l\" }}" >"$0/$l.awk"; done', "{target}", "{libraries}"]
env = { AWKPATH_TEST = "{target}" }

[details]
version = ["awk", "-W", "version"]

[policy]
line_comments = ["#"]
strings = [{ open = '"', close = '"', escape = '\' }]
`

// TestLoadLanguage: a language of a file is used as a built-in one is, also by a sandbox that another process owns.
func TestLoadLanguage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "awk.toml")
	if err := os.WriteFile(file, []byte(ownLanguage), 0o600); err != nil {
		t.Fatal(err)
	}
	name, err := llmsandbox.LoadLanguage(file)
	if err != nil || name != "awktest" {
		t.Fatalf("got %q, %v, want awktest", name, err)
	}
	t.Run("library", func(t *testing.T) {
		sb := open(t, llmsandbox.Options{Language: name, Libraries: []string{"greet"}})
		res := run(t, sb, `BEGIN { while ((getline line < (ENVIRON["AWKPATH_TEST"] "/greet.awk")) > 0) print line; print ARGV[1] }`, &llmsandbox.RunOptions{Args: []string{"a b"}})
		wantExit(t, res, 0)
		wantStdout(t, res, "BEGIN { print \"library greet\" }\na b\n")
	})
	t.Run("policy", func(t *testing.T) {
		p := security.Policy{Threshold: security.Medium, Names: []security.RestrictedName{{Name: "system", Severity: security.High, Languages: []string{name}}}}
		checker, err := security.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		sb := open(t, llmsandbox.Options{Language: name, Policy: llmsandbox.Policy{Checker: checker}})
		if res := run(t, sb, `BEGIN { system("id") }`, nil); res.Status != llmsandbox.StatusRefused {
			t.Errorf("status %s, want refused", res.Status)
		}
		res := run(t, sb, "# system()\nBEGIN { print \"system()\" }", nil)
		wantExit(t, res, 0)
	})
	t.Run("supervisor", func(t *testing.T) {
		o := llmsandbox.Options{Language: name, Supervisor: supervised(t), Lifetime: time.Hour, BestEffort: true}
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := sb.Destroy(testContext(t)); err != nil {
				t.Error(err)
			}
		}()
		wantStdout(t, run(t, sb, `BEGIN { print 42 }`, nil), "42\n")
	})
	t.Run("template", func(t *testing.T) {
		t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
		if err := llmsandbox.CreateTemplate("own", llmsandbox.Template{Language: name, Env: map[string]string{"A": "1"}}); err != nil {
			t.Fatal(err)
		}
		sb := open(t, llmsandbox.Options{Template: "own"})
		wantStdout(t, run(t, sb, `BEGIN { print ENVIRON["A"] }`, nil), "1\n")
	})
	t.Run("invalid", func(t *testing.T) {
		bad := filepath.Join(t.TempDir(), "bad.toml")
		if err := os.WriteFile(bad, []byte(strings.Replace(ownLanguage, "awktest", "python", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := llmsandbox.LoadLanguage(bad); !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), bad+":1: name: ") {
			t.Errorf("got %v, want ErrInvalid that names file, line and key", err)
		}
	})
}

// TestUnknownLanguage: a sandbox of a language that only its opener knows is attached to, and only its code does not run.
func TestUnknownLanguage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "unknown.toml")
	name := fmt.Sprint("unknown", len(all.All())) // another one each time: it stays loaded in the end
	text := strings.ReplaceAll(ownLanguage, "awktest", name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	command := supervised(t).Command[0]
	id, err := exec.CommandContext(ctx, command, "create", "--language-file", file, "-l", name, "--best-effort", "--quiet").Output()
	if err != nil {
		t.Fatal(err)
	}
	sb, err := llmsandbox.Attach(ctx, strings.TrimSpace(string(id)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Destroy(testContext(t)); err != nil {
			t.Error(err)
		}
	}()
	if res, err := sb.Exec(ctx, []string{"echo", "alive"}, nil); err != nil || res.Stdout != "alive\n" {
		t.Errorf("got %+v, %v, want a command that works", res, err)
	}
	if _, err := sb.Run(ctx, "BEGIN { print 1 }", nil); !errors.Is(err, llmsandbox.ErrUnknownLanguage) || !strings.Contains(err.Error(), "LoadLanguage") {
		t.Errorf("got %v, want ErrUnknownLanguage that names LoadLanguage", err)
	}
	if err := sb.Install(ctx, []string{"a"}, nil); !errors.Is(err, llmsandbox.ErrUnknownLanguage) {
		t.Errorf("got %v, want ErrUnknownLanguage", err)
	}
	if _, err := llmsandbox.LoadLanguage(file); err != nil {
		t.Fatal(err)
	}
	again, err := llmsandbox.Attach(ctx, sb.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, again, "BEGIN { print 1 }", nil), "1\n")
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
