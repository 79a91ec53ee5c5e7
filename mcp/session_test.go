package mcp

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
	"github.com/llmsandbox/llmsandbox/security"
)

func TestSessionKeepsState(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	s := open(t, client, args{})
	if !s.Stateful || len(s.SessionID) != 26 || s.Language != "python" || s.TTL != 3600 || s.IdleTTL != 900 {
		t.Errorf("%+v, want Stateful true, len(s.SessionID) = 26, Language = \"python\", TTL = 3600, IdleTTL = 900", s)
	}
	run := func(code string) outcome {
		return decode[outcome](t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": code}))
	}
	run("x = 20")
	if got := run("print('a')\nx + 1"); got.Value != "21" || got.Stdout != "a\n" || got.exit() != 0 {
		t.Errorf("%+v, want Value = \"21\", Stdout = \"a\\n\", ExitCode = 0", got)
	}
	got := run("1/0")
	if got.exit() != 1 || got.Status != "error" {
		t.Errorf("%+v, want ExitCode = 1, Status = \"error\"", got)
	}
	wantHas(t, got.Stderr, "ZeroDivisionError")
	if got := run("import os; os._exit(3)"); got.exit() != 3 || !got.StateLost {
		t.Errorf("%+v, want ExitCode = 3, StateLost true", got)
	}
	if got := run("'x' in dir()"); got.Value != "False" {
		t.Errorf("%+v, want Value = \"False\"", got)
	}
	if res := use(t, client, "close_session", args{"session_id": s.SessionID}); text(t, res) != `{"closed":true}` {
		t.Errorf("text(t, res) = %v, want text(t, res) = \"{\\\"closed\\\":true}\"", text(t, res))
	}
	wantHas(t, failure(t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": "1"})), "no such session")
}

func TestSessionsEndWithTheirConnection(t *testing.T) {
	server := newServer(t, Config{})
	client := connect(t, server, nil)
	s := open(t, client, args{"language": "bash"})
	w, done, err := server.use(&call{owner: ownerOfOne(t, server)}, s.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	<-w.sandbox.Done()
}

// ownerOfOne is the owner of what the only client of a server opens.
func ownerOfOne(t *testing.T, s *Server) owner {
	t.Helper()
	for connection := range s.mcp.Sessions() {
		return owner{connection: connection}
	}
	t.Fatal("no session of a client, want one")
	return owner{}
}

func TestLibraries(t *testing.T) {
	dir := t.TempDir()
	testpackage.Wheel(t, dir, "tinymcp", "1.0", map[string]string{"tinymcp.py": "answer = 42\n"})
	client := connect(t, newServer(t, Config{Sandbox: llmsandbox.Options{Install: llmsandbox.InstallOptions{Local: dir, Offline: true}}}), nil)

	_, got := execute(t, client, args{"code": "import tinymcp; print(tinymcp.answer)", "libraries": []string{"tinymcp"}})
	if got.Stdout != "42\n" {
		t.Errorf("%+v, want Stdout = \"42\\n\"", got)
	}
	_, got = execute(t, client, args{"code": "import tinymcp"})
	wantHas(t, got.Stderr, "ModuleNotFoundError")
	failed := decode[outcome](t, use(t, client, "execute_code", args{"code": "1", "libraries": []string{"--index-url=http://evil.example"}}))
	if failed.Status != "setup_failed" || failed.ExitCode != nil || failed.Stderr != "" || failed.Error == "" {
		t.Errorf("%+v, want Status = \"setup_failed\", no ExitCode, no Stderr, an Error", failed)
	}

	// A session's variables outlive an installation.
	id := open(t, client, args{}).SessionID
	run := func(code string) outcome {
		return decode[outcome](t, use(t, client, "run_in_session", args{"session_id": id, "code": code}))
	}
	run("x = 1")
	res := use(t, client, "install_libraries", args{"session_id": id, "libraries": []string{"tinymcp==1.0"}})
	if res.IsError || decode[installed](t, res).StateLost {
		t.Fatalf("text(t, res) = %v, want IsError false, StateLost false", text(t, res))
	}
	if got := run("import tinymcp\nx + tinymcp.answer"); got.Value != "43" {
		t.Errorf("%+v, want Value = \"43\"", got)
	}
	failure(t, use(t, client, "install_libraries", args{"session_id": id, "libraries": []string{"nosuchpackage"}}))
}

// TestPolicyLooksOnce: code that the policy lets pass is read once, whether or not anything
// is found in it, with a warm sandbox as with one that is opened with libraries.
func TestPolicyLooksOnce(t *testing.T) {
	python, err := all.Get("python")
	if err != nil {
		t.Fatal(err)
	}
	var looks atomic.Int32
	scan := python.Scan
	python.Scan = func(m *language.Meter, code []byte) language.Facts {
		looks.Add(1)
		return scan(m, code)
	}
	t.Cleanup(func() { python.Scan = scan })
	checker, err := security.Compile(security.Policy{Threshold: security.High, Modules: []security.RestrictedModule{{Name: "socket", Severity: security.Low}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testpackage.Wheel(t, dir, "tinymcp", "1.0", map[string]string{"tinymcp.py": "answer = 42\n"})
	client := connect(t, newServer(t, Config{Sandbox: llmsandbox.Options{
		Policy: llmsandbox.Policy{Checker: checker}, Install: llmsandbox.InstallOptions{Local: dir, Offline: true},
	}}), nil)
	for _, in := range []args{{"code": "import socket; print(1)"}, {"code": "import socket; print(1)", "libraries": []string{"tinymcp"}}} {
		looks.Store(0)
		_, got := execute(t, client, in)
		if got.Stdout != "1\n" || len(got.Findings) != 1 || got.Findings[0].Rule != "module:socket" {
			t.Errorf("%v: %+v, want Stdout = \"1\\n\", len(got.Findings) = 1, Rule = \"module:socket\"", in, got)
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("%v was looked at %d times, want 1", in, n)
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	checker, err := security.Compile(security.Policy{Name: "test", Threshold: security.Low, Modules: []security.RestrictedModule{{Name: "socket", Severity: security.High}}})
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, newServer(t, Config{Sandbox: llmsandbox.Options{Policy: llmsandbox.Policy{Checker: checker}}}), nil)
	id := open(t, client, args{}).SessionID
	for name, in := range map[string]args{
		"execute_code":   {"code": "import socket"},
		"run_in_session": {"code": "import socket", "session_id": id},
	} {
		res := use(t, client, name, in)
		got := decode[outcome](t, res)
		if !res.IsError || got.exit() != 126 || got.Status != "refused" || len(got.Findings) != 1 || got.Findings[0].Line != 1 || got.Error == "" || got.Stderr != "" {
			t.Errorf("%s: %+v, want IsError true, ExitCode = 126, Status = \"refused\", len(got.Findings) = 1, Line = 1, Error not empty, Stderr empty", name, got)
		}
	}
	got := decode[outcome](t, use(t, client, "execute_code", args{"code": "1", "libraries": []string{"Socket==1.0"}}))
	if got.exit() != 126 || got.Status != "refused" {
		t.Errorf("%+v, want ExitCode = 126, Status = \"refused\"", got)
	}
	if _, got := execute(t, client, args{"code": "print(1)"}); got.Stdout != "1\n" {
		t.Errorf("%+v, want Stdout = \"1\\n\"", got)
	}
	// Nothing is opened for it: here nothing can be.
	client = connect(t, newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{Image: filepath.Join(t.TempDir(), "none.tar"), Policy: llmsandbox.Policy{Checker: checker}}}), nil)
	if got := decode[outcome](t, use(t, client, "execute_code", args{"code": "import socket"})); got.exit() != 126 || got.Status != "refused" {
		t.Errorf("%+v, want ExitCode = 126, Status = \"refused\"", got)
	}
	if got := decode[outcome](t, use(t, client, "execute_code", args{"code": "print(1)"})); got.Status != "setup_failed" {
		t.Errorf("%+v, want Status = \"setup_failed\"", got)
	}
}

// A list of no libraries leaves the session as it is.
func TestInstallingNothingKeepsState(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	s := open(t, client, args{})
	run := func(code string) outcome {
		return decode[outcome](t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": code}))
	}
	run("x = 5")
	res := use(t, client, "install_libraries", args{"session_id": s.SessionID, "libraries": []string{}})
	if got := text(t, res); got != `{"installed":[],"state_lost":false}` {
		t.Errorf("%s, want nothing installed and no state lost", got)
	}
	if got := run("x"); got.Value != "5" {
		t.Errorf("%+v, want Value = \"5\"", got)
	}
}

// Shell commands share the files of a session, and leave its variables alone.
func TestAnotherLanguageInASession(t *testing.T) {
	client := connect(t, newServer(t, Config{Languages: []string{"python", "bash"}}), nil)
	s := open(t, client, args{})
	run := func(language, code string) outcome {
		return decode[outcome](t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "language": language, "code": code}))
	}
	run("py", "x = 5; open('a.txt', 'w').write('one\\ntwo\\n')")
	if got := run("sh", "mv a.txt b.txt && grep -n two *.txt; exit 3"); got.Stdout != "2:two\n" || got.exit() != 3 {
		t.Errorf("%+v, want Stdout = \"2:two\\n\", ExitCode = 3", got)
	}
	if got := run("", "x, open('b.txt').read()"); got.Value != `(5, 'one\ntwo\n')` {
		t.Errorf("%+v, want Value = \"(5, 'one\\\\ntwo\\\\n')\"", got)
	}
	if got := run("ruby", "1"); !strings.HasPrefix(got.Error, "Unsupported language: ruby") {
		t.Errorf("%+v, want Error beginning with \"Unsupported language: ruby\"", got)
	}
}
