package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// A template is that of all sandboxes, but its libraries and imports are those of its language: of programs, with
// libraries more or without, of sessions, and of other languages.
func TestTemplate(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	dir := t.TempDir()
	testpackage.Wheel(t, dir, "templatemcp", "1.0", map[string]string{"templatemcp.py": "answer = 42\n"})
	testpackage.Wheel(t, dir, "moremcp", "1.0", map[string]string{"moremcp.py": "answer = 1\n"})
	err := llmsandbox.CreateTemplate("data", llmsandbox.Template{
		Libraries: []string{"templatemcp"}, Imports: []string{"templatemcp"}, Env: map[string]string{"WHAT": "data"},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := llmsandbox.Options{Template: "data", Backend: local.New(&local.Options{CacheDir: t.TempDir()}), Install: llmsandbox.InstallOptions{Local: dir}}
	server := newServer(t, Config{Sandbox: o, Warm: 1})
	client := connect(t, server, nil)
	const code = "import os, sys; print(os.environ['WHAT'], 'templatemcp' in sys.modules)"
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"code": code}, "data True\n"},
		{args{"code": code + "; import moremcp; print(moremcp.answer)", "libraries": []string{"moremcp"}}, "data True\n1\n"},
		{args{"code": "echo $WHAT; python3 -c 'import templatemcp' 2>/dev/null || echo none", "language": "bash"}, "data\nnone\n"},
	} {
		if _, got := execute(t, client, c.in); got.Stdout != c.want {
			t.Errorf("%v: %+v, want Stdout = %q", c.in, got, c.want)
		}
	}
	for language, c := range map[string]struct{ code, want string }{
		"python": {"import os, templatemcp; print(os.environ['WHAT'], templatemcp.answer)", "data 42\n"}, "bash": {"echo $WHAT", "data\n"},
	} {
		made := decode[created](t, use(t, client, "create_session", args{"language": language}))
		got := decode[outcome](t, use(t, client, "run_in_session", args{"session_id": made.SessionID, "code": c.code}))
		if got.Stdout != c.want {
			t.Errorf("a session of %s: %+v, want Stdout = %q", language, got, c.want)
		}
	}
	if _, err := New(&Config{Sandbox: llmsandbox.Options{Template: "nosuch"}}); !errors.Is(err, llmsandbox.ErrTemplateNotFound) {
		t.Errorf("New: %v, want ErrTemplateNotFound", err)
	}
	if _, err := New(&Config{Sandbox: llmsandbox.Options{Template: "data", Language: "python"}}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("New with a language: %v, want ErrInvalid", err)
	}
}

// With Zygote, the sandboxes of programs of Python are forked from one interpreter, and others are as without.
func TestZygote(t *testing.T) {
	s := newServer(t, Config{Warm: 1, Zygote: true, Sandbox: llmsandbox.Options{Imports: []string{"decimal"}}})
	if _, err := s.Check(testContext(t)); err != nil {
		t.Fatal(err)
	}
	client := connect(t, s, nil)
	hashes := map[string]bool{}
	for range 3 {
		_, got := execute(t, client, args{"code": "import sys; print('decimal' in sys.modules, hash('x'))"})
		if !strings.HasPrefix(got.Stdout, "True ") {
			t.Errorf("%+v, want a module that is there", got)
		}
		hashes[got.Stdout] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d interpreters, want 1", len(hashes))
	}
	if _, got := execute(t, client, args{"code": "echo 1", "language": "bash"}); got.Stdout != "1\n" {
		t.Errorf("bash: %+v, want Stdout = 1", got)
	}
}

// Check says that no program would run.
func TestZygoteThatCannotBe(t *testing.T) {
	s := newServer(t, Config{Warm: -1, Zygote: true, Sandbox: llmsandbox.Options{Resettable: true}})
	if _, err := s.Check(testContext(t)); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	others := newServer(t, Config{Warm: -1, Zygote: true, Languages: []string{"bash"}, Sandbox: llmsandbox.Options{Resettable: true}})
	if _, err := others.Check(testContext(t)); err != nil {
		t.Errorf("without Python: got %v, want no error", err)
	}
}

// The instructions name the limits and the network of the template.
func TestInstructionsOfTemplate(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	err := llmsandbox.CreateTemplate("net", llmsandbox.Template{
		Limits: llmsandbox.Limits{Timeout: 7e9}, Network: llmsandbox.NetworkAllow, Allow: []string{"example.org"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Config{Sandbox: llmsandbox.Options{Template: "net"}, Warm: -1})
	wantHas(t, s.instructions(), "network access to example.org only", "at most 7 seconds")
	if !s.openWorld() {
		t.Error("openWorld() = false, want true")
	}
	if err := llmsandbox.CreateTemplate("endless", llmsandbox.Template{Limits: llmsandbox.Limits{Timeout: llmsandbox.Unlimited}}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(&Config{Sandbox: llmsandbox.Options{Template: "endless"}}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("New without a time limit: %v, want ErrInvalid", err)
	}
}
