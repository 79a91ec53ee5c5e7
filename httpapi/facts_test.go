package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
	"github.com/llmsandbox/llmsandbox/security"
)

// TestFacts: what is known of a sandbox is what the library knows.
func TestFacts(t *testing.T) {
	c := serve(t, Config{Sandbox: llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}}}})
	path, sb := c.create(`{"language": "bash"}`)
	opened, err := c.server.service.Get(testContext(t), "a", sb.ID)
	if err != nil {
		t.Fatal(err)
	}
	var caps backend.Capabilities
	c.want(http.StatusOK, &caps, http.MethodGet, path+"/capabilities", "")
	if want := opened.Capabilities(); caps.Backend != "local" || caps.Isolation != want.Isolation || !slices.Equal(caps.Controls, want.Controls) || len(want.Controls) == 0 {
		t.Errorf("%+v, want %+v", caps, want)
	}
	var net apitypes.Network
	if c.want(http.StatusOK, &net, http.MethodGet, path+"/network", ""); net.Mode != llmsandbox.NetworkNone || len(net.Allow) != 0 {
		t.Errorf("%+v, want no network", net)
	}
	c.want(http.StatusOK, nil, http.MethodPatch, path, `{"network": {"mode": "allow", "allow": ["example.org:443"]}}`)
	if c.want(http.StatusOK, &net, http.MethodGet, path+"/network", ""); net.Mode != llmsandbox.NetworkAllow || !slices.Equal(net.Allow, []string{"example.org:443"}) {
		t.Errorf("%+v, want what it was changed to", net)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	for _, gone := range []string{"/usage", "/capabilities", "/network", "/processes"} {
		c.want(http.StatusNotFound, nil, http.MethodGet, path+gone, "")
	}
}

// TestUsage: what is not known is left out, and what is known is a number, also where it is 0.
func TestUsage(t *testing.T) {
	for want, u := range map[string]backend.Usage{
		`{}`:                              {},
		`{"cpu_ms":0,"memory_bytes":0}`:   {CPUKnown: true, MemoryKnown: true},
		`{"cpu_ms":1.5,"memory_bytes":2}`: {CPUKnown: true, CPU: 1_500_000, MemoryKnown: true, Memory: 2},
		`{"peak_memory_bytes":3}`:         {MemoryPeak: 3},
	} {
		if got, err := json.Marshal(usage(u)); err != nil || string(got) != want {
			t.Errorf("%+v: %s, %v, want %s", u, got, err, want)
		}
	}
	c := serve(t, Config{})
	path, sb := c.create(`{"language": "bash"}`)
	opened, err := c.server.service.Get(testContext(t), "a", sb.ID)
	if err != nil {
		t.Fatal(err)
	}
	known, err := opened.Usage(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	var u apitypes.Usage
	c.want(http.StatusOK, &u, http.MethodGet, path+"/usage", "")
	if (u.CPUMS != nil) != known.CPUKnown || (u.Memory != nil) != known.MemoryKnown {
		t.Errorf("%+v, want what is known: %+v", u, known)
	}
}

// TestProcesses: a program is listed while it runs, and not after it.
func TestProcesses(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	var list apitypes.Processes
	if c.want(http.StatusOK, &list, http.MethodGet, path+"/processes", ""); list.Processes == nil || len(list.Processes) != 0 {
		t.Errorf("%+v, want an empty list", list)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	res, err := http.DefaultClient.Do(c.request(http.MethodPost, path+"/exec", `{"argv": ["sh", "-c", "echo up; sleep 1000", "\u00e9"]}`, "Accept: text/event-stream").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all := ""
	for b := make([]byte, 100); !strings.Contains(all, "up"); {
		n, err := res.Body.Read(b)
		if all += string(b[:n]); err != nil {
			t.Fatalf("%q, %v, want output", all, err)
		}
	}
	c.as(keyAReads).want(http.StatusOK, &list, http.MethodGet, path+"/processes", "")
	if len(list.Processes) != 1 || !slices.Equal(list.Processes[0].Argv, []string{"sh", "-c", "echo up; sleep 1000", "é"}) || !list.Processes[0].Running ||
		list.Processes[0].PID < 2 || list.Processes[0].Started.IsZero() {
		t.Errorf("%+v, want the program that runs", list)
	}
	leave()
	// It ends when nothing of the other program is left, since that is what it waits for.
	c.want(http.StatusOK, nil, http.MethodPost, path+"/exec", `{"shell": "while pgrep -x sleep; do :; done"}`)
	if got := process(llmsandbox.ProcessInfo{Argv: []string{"a\xff"}}); got.Argv[0] != "a\ufffd" {
		t.Errorf("%q, want text", got.Argv)
	}
}

// TestLibraries: a sandbox has the libraries that are installed in it, and a client is told why one could not be.
func TestLibraries(t *testing.T) {
	wheels := t.TempDir()
	testpackage.Wheel(t, wheels, "six7", "1.0", map[string]string{"six7.py": "answer = 42\n"})
	preset, err := security.Preset("production")
	if err != nil {
		t.Fatal(err)
	}
	checker, err := security.Compile(preset)
	if err != nil {
		t.Fatal(err)
	}
	var events []AuditEvent
	c := serve(t, Config{
		Sandbox: llmsandbox.Options{
			Backend: local.New(&local.Options{StateDir: t.TempDir(), CacheDir: t.TempDir()}),
			Install: llmsandbox.InstallOptions{Offline: true, Local: wheels}, Policy: llmsandbox.Policy{Checker: checker},
		},
		Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil },
	})
	path, _ := c.create(`{"language": "python"}`)
	for body, want := range map[string]string{
		`{"libraries": ["six8"]}`:     "422 install six8",
		`{"libraries": ["../x"]}`:     "422 invalid ../x",
		`{"libraries": ["requests"]}`: "403 refused requests",
		`{"libraries": []}`:           "422 invalid body.libraries",
		`{"libraries": null}`:         "422 invalid body.libraries",
		`{}`:                          "422 invalid libraries",
	} {
		var p apitypes.Problem
		res, text := c.do(http.MethodPost, path+"/libraries", body)
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Errorf("%s: %v: %s", body, err, text)
		}
		parts := strings.SplitN(want, " ", 3)
		if http.StatusText(res.StatusCode) != p.Title || !strings.HasPrefix(want, res.Status[:3]) || p.Code != parts[1] || !strings.Contains(text, parts[2]) || strings.Contains(text, wheels) {
			t.Errorf("%s: %d %s, want %s", body, res.StatusCode, text, want)
		}
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, path+"/libraries", `{"libraries": ["six7"]}`)
	c.want(http.StatusNoContent, nil, http.MethodPost, path+"/libraries", `{"libraries": ["six7"]}`)
	var res result
	c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "import six7; print(six7.answer)"}`)
	if res.Stdout != "42\n" {
		t.Errorf("%+v, want 42", res)
	}
	c.stop()
	if n := slices.IndexFunc(events, func(e AuditEvent) bool { return e.Operation == "install-libraries" && e.Outcome == "install" }); n < 0 {
		t.Errorf("%+v, want what was tried to be installed", events)
	}
}

// TestCheck: the server's own policy, and the built-in ones by name, say what they refuse, and nothing is run.
func TestCheck(t *testing.T) {
	minimal, err := security.Preset("minimal")
	if err != nil {
		t.Fatal(err)
	}
	checker, err := security.Compile(minimal)
	if err != nil {
		t.Fatal(err)
	}
	own, none := serve(t, Config{Sandbox: llmsandbox.Options{Policy: llmsandbox.Policy{Checker: checker}}}), serve(t, Config{})
	for body, want := range map[string]struct {
		policy  string
		blocked bool
	}{
		`{"code": "import socket"}`:                                            {"minimal", false},
		`{"code": "import os; os.system('x')"}`:                                {"minimal", true},
		`{"code": "import socket", "policy": "strict"}`:                        {"strict", true},
		`{"language": "js", "code": "1 + 1", "policy": "strict"}`:              {"strict", false},
		`{"language": "js", "code": "require('net')", "policy": "production"}`: {"production", true},
		`{"code": "", "policy": "strict"}`:                                     {"strict", false},
	} {
		var r security.Report
		own.as(keyAReads).want(http.StatusOK, &r, http.MethodPost, "/v1/check", body)
		if r.Policy != want.policy || r.Blocked != want.blocked || r.Blocked && len(r.Findings) == 0 {
			t.Errorf("%s: %+v, want policy %s, blocked %t", body, r, want.policy, want.blocked)
		}
	}
	for body, want := range map[string]string{
		`{"code": "1"}`:                                          "name one of minimal,",
		`{"code": "1", "policy": "none"}`:                        "name one of minimal,",
		`{"code": "1", "policy": "/etc/x"}`:                      "name one of minimal,",
		`{"policy": "strict"}`:                                   "property code",
		`{"code": "1", "language": "cobol", "policy": "strict"}`: "cobol",
	} {
		if res, text := none.do(http.MethodPost, "/v1/check", body); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want 422 and %q", body, res.StatusCode, text, want)
		}
	}
	none.as("").want(http.StatusUnauthorized, nil, http.MethodPost, "/v1/check", `{"code": "1"}`)
}
