package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/security"
)

// TestRun: the answer to a program is the object that the library writes, whatever becomes of the program.
func TestRun(t *testing.T) {
	c := serve(t, Config{})
	for name, test := range map[string]struct {
		body   string
		status llmsandbox.Status
		stdout string
	}{
		"python":   {`{"language": "python", "code": "print(1)"}`, llmsandbox.StatusOK, "1\n"},
		"default":  {`{"code": "print(2)"}`, llmsandbox.StatusOK, "2\n"},
		"failing":  {`{"language": "bash", "code": "echo out; exit 3"}`, llmsandbox.StatusError, "out\n"},
		"timeout":  {`{"language": "bash", "code": "echo out; sleep 100", "timeout_seconds": 0.5}`, llmsandbox.StatusTimeout, "out\n"},
		"input":    {`{"language": "bash", "code": "cat; echo $1 $A", "stdin": "in\n", "args": ["one"], "env": {"A": "b"}}`, llmsandbox.StatusOK, "in\none b\n"},
		"no input": {`{"language": "bash", "code": "cat; test -p /dev/stdin || echo no pipe"}`, llmsandbox.StatusOK, "no pipe\n"},
		"files":    {`{"language": "bash", "code": "cd \"$(dirname \"$0\")\"; cat a.txt b.bin | od -An -c | tr -s ' '", "files": {"a.txt": "é", "b.bin": {"base64": "AP8="}}}`, llmsandbox.StatusOK, " 303 251 \\0 377\n"},
		"own":      {`{"language": "bash", "code": "ulimit -u", "limits": {"memory_bytes": 100000000}}`, llmsandbox.StatusOK, ""},
		"not utf8": {`{"language": "bash", "code": "printf 'a\\xffb'"}`, llmsandbox.StatusOK, "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			var res result
			c.want(http.StatusOK, &res, http.MethodPost, "/v1/run", test.body)
			if res.Status != test.status || test.stdout != "" && res.Stdout != test.stdout || res.Backend != "local" {
				t.Errorf("%+v, want status %s and stdout %q", res, test.status, test.stdout)
			}
		})
	}
	var list struct{ Sandboxes []apitypes.Sandbox }
	if c.want(http.StatusOK, &list, http.MethodGet, "/v1/sandboxes", ""); len(list.Sandboxes) > 0 {
		t.Errorf("sandboxes %v are left, want none", list.Sandboxes)
	}
}

// TestResultsAreDescribed: the document describes what a result or cell has, all of it and nothing else.
func TestResultsAreDescribed(t *testing.T) {
	network, findings, hints := make([]llmsandbox.NetworkAttempt, 1), make([]security.Finding, 1), make([]llmsandbox.Hint, 1)
	wantDescribed(t, reflect.TypeFor[result](), llmsandbox.Result{
		ExitCode: 1, Signal: "x", ArtifactsDropped: []string{"x"}, Reason: "x", Network: network, NetworkDropped: 1, Findings: findings, Hints: hints,
		Capabilities: backend.Capabilities{Controls: []backend.Control{{Name: "x"}}},
	})
	wantDescribed(t, reflect.TypeFor[cell](), llmsandbox.Cell{
		ExitCode: 1, Signal: "x", Value: map[string]string{"x": ""}, Error: &llmsandbox.CellError{Traceback: "x"}, ArtifactsDropped: []string{"x"}, Network: network, NetworkDropped: 1,
		Findings: findings, Interrupted: true, StateLost: true, Restarted: true, Reason: "x", Hints: hints,
	})
}

func wantDescribed(t *testing.T, by reflect.Type, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var has map[string]any
	if err := json.Unmarshal(b, &has); err != nil {
		t.Fatal(err)
	}
	var described []string
	for f := range by.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		described = append(described, name)
	}
	for name := range has {
		if !slices.Contains(described, name) {
			t.Errorf("%T has %s, which is not described", v, name)
		}
	}
	for _, name := range described {
		if _, ok := has[name]; !ok {
			t.Errorf("%s is described, which no %T has", name, v)
		}
	}
}

// TestSandbox follows a sandbox from its creation to its end.
func TestSandbox(t *testing.T) {
	c := serve(t, Config{})
	path, sb := c.create(`{"language": "bash", "lifetime_seconds": 600, "labels": {"user": "x"}, "limits": {"pids": 64}, "resettable": true}`)
	if sb.Language != "bash" || sb.Deadline.IsZero() || sb.Labels["user"] != "x" || len(sb.Labels) != 1 || sb.Limits.PIDs != 64 || sb.Limits.Memory == 0 {
		t.Errorf("created %+v, want what was asked for", sb)
	}
	var res result
	for _, run := range []struct{ path, body, stdout string }{
		{"/run", `{"code": "echo kept >file; echo $X", "env": {"X": "1"}}`, "1\n"},
		{"/run", `{"code": "cat file"}`, "kept\n"},
		{"/run", `{"language": "python", "code": "print(open('file').read(), end='')"}`, "kept\n"},
		{"/exec", `{"argv": ["cat", "file"]}`, "kept\n"},
		{"/exec", `{"shell": "cat - file | wc -l", "stdin": "a\nb\n"}`, "3\n"},
		{"/exec", `{"shell": "cat; test -p /dev/stdin || echo no pipe"}`, "no pipe\n"},
	} {
		c.want(http.StatusOK, &res, http.MethodPost, path+run.path, run.body)
		if res.Status != llmsandbox.StatusOK || res.Stdout != run.stdout || res.SandboxID != sb.ID {
			t.Errorf("%s: %+v, want ok and %q", run.body, res, run.stdout)
		}
	}
	var got apitypes.Sandbox
	c.want(http.StatusOK, &got, http.MethodGet, path, "")
	if !reflect.DeepEqual(got, sb) {
		t.Errorf("described as %+v, and created as %+v: want the same", got, sb)
	}
	c.want(http.StatusOK, &got, http.MethodPatch, path, `{"lifetime_seconds": 60}`)
	if got.Deadline.IsZero() || !got.Deadline.Before(sb.Deadline) {
		t.Errorf("deadline %v, want one before %v", got.Deadline, sb.Deadline)
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, path+"/reset", "")
	c.want(http.StatusNotFound, nil, http.MethodGet, path+"/files?path=file", "")
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	for _, gone := range []*http.Request{
		c.request(http.MethodGet, path, ""), c.request(http.MethodDelete, path, ""), c.request(http.MethodPost, path+"/run", `{"code": ""}`),
	} {
		c.want(http.StatusNotFound, nil, gone.Method, gone.URL.Path, map[bool]string{true: `{"code": ""}`}[gone.Method == http.MethodPost])
	}
}

// TestList: by label and piece by piece, in the order of creation.
func TestList(t *testing.T) {
	c := serve(t, Config{})
	var ids []string
	for i := range 3 {
		_, sb := c.create(fmt.Sprintf(`{"language": "bash", "labels": {"n": "%d", "odd": "%t"}}`, i, i%2 == 1))
		ids = append(ids, sb.ID)
	}
	for query, want := range map[string][]string{
		"": ids, "?label=n": ids, "?label=n=1": ids[1:2], "?label=odd=false": {ids[0], ids[2]}, "?label=odd=false&label=n=2": ids[2:], "?label=x": {},
		"?limit=2": ids[:2], "?limit=2&after=" + ids[1]: ids[2:],
	} {
		var list struct {
			Sandboxes []apitypes.Sandbox
			Next      string
		}
		c.want(http.StatusOK, &list, http.MethodGet, "/v1/sandboxes"+query, "")
		got := []string{}
		for _, sb := range list.Sandboxes {
			got = append(got, sb.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
		if more := query == "?limit=2"; (list.Next == ids[1]) != more {
			t.Errorf("%q: next %q, want one: %t", query, list.Next, more)
		}
	}
	c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, "/v1/sandboxes?after=sb-none", "")
}

// TestFiles writes, reads, lists and removes files.
func TestFiles(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	content := strings.Repeat("\x00\xff<b>", 1<<20)
	c.want(http.StatusNoContent, nil, http.MethodPut, path+"/files?path=sub/a.bin&mode=0600", content, "Content-Type: application/octet-stream")
	if res, text := c.do(http.MethodGet, path+"/files?path=sub/a.bin", ""); res.StatusCode != http.StatusOK || text != content || res.Header.Get("Content-Type") != octets {
		t.Errorf("%d, %v, %d bytes: want the %d bytes that were written", res.StatusCode, res.Header, len(text), len(content))
	}
	var file apitypes.FileEntry
	c.want(http.StatusOK, &file, http.MethodGet, path+"/files/stat?path=sub/a.bin", "")
	if file.Size != int64(len(content)) || file.Mode != "0600" || file.Type != "file" || file.Name != "a.bin" {
		t.Errorf("%+v, want the file that was written", file)
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, path+"/files/mkdir?path=sub/dir", "")
	c.want(http.StatusNoContent, nil, http.MethodPost, path+"/files/rename?path=sub/a.bin&to=sub/b.bin", "")
	var list struct{ Entries []apitypes.FileEntry }
	c.want(http.StatusOK, &list, http.MethodGet, path+"/files/list?path=sub", "")
	if len(list.Entries) != 2 || list.Entries[0].Name != "b.bin" || list.Entries[1].Type != "directory" {
		t.Errorf("%+v, want b.bin and dir", list.Entries)
	}
	c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, path+"/files?path=sub", "")
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPut, path+"/files?path=sub", "x") // a directory is there
	c.want(http.StatusNoContent, nil, http.MethodDelete, path+"/files?path=sub", "")
	for _, gone := range []string{"/files?path=sub/b.bin", "/files/stat?path=sub", "/files/list?path=sub", "/files?path=/proc/self/fd/99"} {
		c.want(http.StatusNotFound, nil, http.MethodGet, path+gone, "")
	}
}

// TestProjects: what is one project's, another does not see, and a key that may look only changes nothing.
func TestProjects(t *testing.T) {
	c := serve(t, Config{})
	path, sb := c.create(`{"language": "bash"}`)
	c.want(http.StatusNoContent, nil, http.MethodPut, path+"/files?path=a", "x")
	none := strings.Replace(path, sb.ID, sb.ID[:len(sb.ID)-1]+"0", 1)
	for _, r := range [][3]string{
		{http.MethodGet, "", ""}, {http.MethodDelete, "", ""}, {http.MethodPatch, "", `{"lifetime_seconds": 1}`}, {http.MethodPost, "/reset", ""},
		{http.MethodPost, "/run", `{"code": "true"}`}, {http.MethodPost, "/exec", `{"argv": ["true"]}`}, {http.MethodGet, "/files?path=a", ""}, {http.MethodPut, "/files?path=a", "y"},
		{http.MethodDelete, "/files?path=a", ""}, {http.MethodGet, "/files/list?path=.", ""}, {http.MethodGet, "/files/stat?path=a", ""},
		{http.MethodPost, "/files/mkdir?path=b", ""}, {http.MethodPost, "/files/rename?path=a&to=b", ""},
		{http.MethodGet, "/usage", ""}, {http.MethodGet, "/capabilities", ""}, {http.MethodGet, "/processes", ""}, {http.MethodGet, "/network", ""},
		{http.MethodPost, "/libraries", `{"libraries": ["none"]}`},
	} {
		_, theirs := c.as(keyB).do(r[0], path+r[1], r[2])
		_, noones := c.as(keyB).do(r[0], none+r[1], r[2])
		if !strings.Contains(theirs, "not_found") || strings.ReplaceAll(theirs, sb.ID, "") != strings.ReplaceAll(noones, none[len("/v1/sandboxes/"):], "") {
			t.Errorf("%s %s: of another project %s, of none %s: want the same, and not_found", r[0], r[1], theirs, noones)
		}
		want := http.StatusForbidden
		if r[0] == http.MethodGet {
			want = http.StatusOK
		}
		c.as(keyAReads).want(want, nil, r[0], path+r[1], r[2])
	}
	var list struct{ Sandboxes []apitypes.Sandbox }
	if c.as(keyB).want(http.StatusOK, &list, http.MethodGet, "/v1/sandboxes", ""); len(list.Sandboxes) != 0 {
		t.Errorf("another project sees %v, want nothing", list.Sandboxes)
	}
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, "/v1/sandboxes", `{}`)
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, "/v1/run", `{"code": ""}`)
	if res, text := c.do(http.MethodGet, path+"/files?path=a", ""); text != "x" {
		t.Errorf("%d, %q, want the file as it was", res.StatusCode, text)
	}
}

// TestRefused: what is more than the operator allows, or makes no sense, is refused with the reason.
func TestRefused(t *testing.T) {
	c := serve(t, Config{
		Sandbox:      llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}}},
		MaxSandboxes: 1, Images: []string{"python:3*"},
	})
	for body, want := range map[string]string{
		`{"limits": {"memory_bytes": 99999999999}}`:                "403 not_allowed limits.memory_bytes",
		`{"limits": {"cpus": 1.5}}`:                                "403 not_allowed limits.cpus",
		`{"limits": {"timeout_seconds": 1e12}}`:                    "403 not_allowed limits.timeout_seconds",
		`{"lifetime_seconds": 1e6}`:                                "403 not_allowed lifetime_seconds",
		`{"network": {"mode": "full"}}`:                            "403 not_allowed example.org:443",
		`{"network": {"mode": "allow", "allow": ["example.com"]}}`: `403 not_allowed example.com`,
		`{"image": "node:22"}`:                                     "403 not_allowed python:3*",
		`{"language": "cobol"}`:                                    "422 unknown_language cobol",
		`{"limits": {"cpus": -1}}`:                                 "422 invalid body.limits.cpus",
		`{"unknown": 1}`:                                           "422 invalid body.unknown",
		`{"labels": {"llmsandbox.project": "b"}}`:                  "422 invalid llmsandbox.",
		`{`:    "400 invalid ",
		`null`: "422 invalid ",
		``:     "400 invalid ",
	} {
		res, text := c.do(http.MethodPost, "/v1/sandboxes", body)
		var p apitypes.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Errorf("%s: %v: %s", body, err, text)
		}
		parts := strings.SplitN(want, " ", 3)
		if fmt.Sprint(res.StatusCode) != parts[0] || p.Code != parts[1] || !strings.Contains(text, parts[2]) || p.Status != res.StatusCode || res.Header.Get("Content-Type") != apitypes.ProblemType {
			t.Errorf("%s: %d %s, want %s", body, res.StatusCode, text, want)
		}
	}
	c.create(`{"language": "bash", "network": {"mode": "allow", "allow": ["example.org:443"]}}`)
	if res, text := c.do(http.MethodPost, "/v1/sandboxes", `{}`); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"quota"`) || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s, want 429, a quota, and when to come back", res.StatusCode, res.Header, text)
	}
	c.as(keyB).create(`{"language": "bash"}`) // has its own
	for body, want := range map[string]string{
		`{"code": "1", "timeout_seconds": 1000}`: "not_allowed", `{"code": "1", "language": "cobol"}`: "unknown_language", `{}`: "property code",
		`{"code": "1", "files": {"../a": "x"}}`: "422", `{"code": "1", "files": {"a": {"base64": "?"}}}`: "invalid", `{"code": "1", "dir": "none"}`: "workdir",
	} {
		if res, text := c.do(http.MethodPost, "/v1/run", body); res.StatusCode < 400 || res.StatusCode >= 500 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", body, res.StatusCode, text, want)
		}
	}
}

// TestStream: output comes as it is written, characters as a whole, and what became of the program last.
func TestStream(t *testing.T) {
	c := serve(t, Config{})
	for body, want := range map[string][3]string{ // stdout, stderr, and the last event
		`{"language": "bash", "code": "echo a; read x; echo b >&2; echo $x", "stdin": "c\n"}`:                             {"a\nc\n", "b\n", `result {"status":"ok"`},
		`{"language": "bash", "code": "printf '\\xc3'; sleep 0.2; printf '\\xa9'; sleep 0.2; printf 'x\\xff\\xe2\\x82'"}`: {"éx\ufffd\ufffd", "", `result {"status":"ok"`},
		`{"language": "bash", "code": "exit 2"}`:                                                                          {"", "", `result {"status":"error"`},
		`{"language": "bash", "code": "true", "dir": "none"}`:                                                             {"", "", `problem {"title":`},
	} {
		res, text := c.do(http.MethodPost, "/v1/run", body, "Accept: text/event-stream")
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != eventStream {
			t.Errorf("%s: got %d, %v, want events", body, res.StatusCode, res.Header)
		}
		if got := streamed(t, text); got[0] != want[0] || got[1] != want[1] || !strings.HasPrefix(got[2], want[2]) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

// streamed is what events tell: the standard output, the standard error, and the last event.
func streamed(t *testing.T, text string) (got [3]string) {
	t.Helper()
	for event := range strings.SplitSeq(text, "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		if !ok {
			continue
		}
		got[2] = name + " " + data
		var output string
		if at := slices.Index([]string{"stdout", "stderr"}, name); at >= 0 {
			if err := json.Unmarshal([]byte(data), &output); err != nil {
				t.Errorf("got %s: %v, want a string", data, err)
			}
			got[at] += output
		}
	}
	return got
}

// TestDisconnect: the program of a client that goes away is killed.
func TestDisconnect(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	res, err := http.DefaultClient.Do(c.request(http.MethodPost, path+"/exec", `{"shell": "echo up; sleep 1000"}`, "Accept: text/event-stream"))
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for b := make([]byte, 100); !strings.Contains(all, "up"); {
		n, err := res.Body.Read(b)
		if all += string(b[:n]); err != nil {
			t.Fatalf("%q, %v, want output", all, err)
		}
	}
	res.Body.Close()
	var got result
	// It ends when nothing of the other program is left, since that is what it waits for.
	c.want(http.StatusOK, &got, http.MethodPost, path+"/exec", `{"shell": "while pgrep -x sleep; do :; done; echo gone"}`)
	if !strings.HasSuffix(got.Stdout, "gone\n") {
		t.Errorf("%+v, want gone", got)
	}
}

// TestGate: who is not let in.
func TestGate(t *testing.T) {
	c := serve(t, Config{})
	for name, test := range map[string]struct {
		headers []string
		status  int
	}{
		"key in its own header": {[]string{"Authorization: ", "X-API-Key: " + keyA}, http.StatusUnauthorized}, // an empty one is one too many
		"another host":          {[]string{"Host: evil.example"}, http.StatusForbidden},
		"another page":          {[]string{"Origin: https://evil.example"}, http.StatusForbidden},
		"another key":           {[]string{"Authorization: Bearer nobody"}, http.StatusUnauthorized},
		"another scheme":        {[]string{"Authorization: Basic " + keyA}, http.StatusUnauthorized},
	} {
		if res, text := c.do(http.MethodGet, "/v1/sandboxes", "", test.headers...); res.StatusCode != test.status || !strings.Contains(text, `"detail"`) {
			t.Errorf("%s: %d %s, want %d", name, res.StatusCode, text, test.status)
		}
	}
	nobody := c.as("")
	nobody.want(http.StatusUnauthorized, nil, http.MethodGet, "/v1/sandboxes", "")
	nobody.want(http.StatusOK, nil, http.MethodGet, "/v1/sandboxes", "", "X-API-Key: "+keyA)
	for _, open := range []string{"/healthz", "/readyz", "/openapi.json"} {
		nobody.want(http.StatusOK, nil, http.MethodGet, open, "")
	}
	if res, text := c.do(http.MethodGet, "/none", ""); res.StatusCode != http.StatusNotFound || !strings.Contains(text, `"no_such_path"`) {
		t.Errorf("got %d %s, want 404 and no_such_path, which is not that of a sandbox", res.StatusCode, text)
	}
	if res, text := c.do(http.MethodTrace, "/v1/languages", ""); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") == "" || !strings.Contains(text, `"method_not_allowed"`) {
		t.Errorf("another method: %d %v %s, want 405, the methods that there are, and a problem", res.StatusCode, res.Header, text)
	}
	c.want(http.StatusRequestEntityTooLarge, nil, http.MethodPost, "/v1/run", strings.Repeat(" ", apitypes.MaxBody+1))
}

// TestMetrics: what was asked for is counted, and no project is named.
func TestMetrics(t *testing.T) {
	c := serve(t, Config{})
	c.want(http.StatusOK, nil, http.MethodPost, "/v1/run", `{"language": "bash", "code": "exit 1"}`)
	path, sb := c.create(`{"language": "bash"}`)
	c.want(http.StatusOK, nil, http.MethodPost, path+"/run", `{"code": "true"}`, "Accept: text/event-stream")
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodGet, path, "")
	c.as("").want(http.StatusUnauthorized, nil, http.MethodGet, "/metrics", "")
	_, text := c.do(http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`llmsandbox_http_requests_total{operation="run",status="200"} 1`, `llmsandbox_http_requests_total{operation="get-sandbox",status="404"} 1`,
		`llmsandbox_programs_total{status="error"} 1`, `llmsandbox_programs_total{status="ok"} 1`, "llmsandbox_http_requests 1", "llmsandbox_pool_",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, sb.ID) || strings.Contains(text, sb.ID[:len("sb-00000000")]) {
		t.Errorf("a sandbox is named in\n%s", text)
	}
}

// TestAudit: who did what to which sandbox with what outcome, in the order of the requests, and nothing of what was only looked at.
func TestAudit(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil }})
	path, sb := c.create(`{"language": "bash"}`)
	for _, r := range [][3]string{
		{http.MethodGet, path, ""}, {http.MethodPost, path + "/run", `{"code": "exit 1"}`}, {http.MethodPost, path + "/run", `{}`}, {http.MethodPost, path + "/exec", `{"argv": ["none"]}`},
		{http.MethodPut, path + "/files?path=.", "x"}, {http.MethodDelete, path, ""},
	} {
		c.do(r[0], r[1], r[2])
	}
	c.as(keyAReads).do(http.MethodDelete, path, "")
	c.as(keyB).do(http.MethodDelete, path, "")
	c.stop()
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintln(e.ProjectID, e.KeyName, e.Operation, e.Sandbox == sb.ID, e.Status, e.Outcome))
	}
	want := []string{
		"a one create-sandbox true 201 ok\n", "a one run-in-sandbox true 200 error\n", "a one run-in-sandbox true 422 invalid\n", "a one exec-in-sandbox true 404 file_not_found\n",
		"a one write-file true 422 invalid\n", "a one remove-sandbox true 204 ok\n", "a looks remove-sandbox true 403 scope\n", "b two remove-sandbox true 404 not_found\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAuditOfNetwork: what a program tried to reach is in the audit log, with who ran it.
func TestAuditOfNetwork(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{
		Sandbox: llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}}},
		Audit:   func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil },
	})
	path, sb := c.create(`{"language": "bash", "network": {"mode": "allow", "allow": ["example.org:443"]}}`)
	var res result
	c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "p=${http_proxy#http://}; p=${p%/}; exec 3<>/dev/tcp/${p%:*}/${p#*:}; printf 'GET http://a.example/ HTTP/1.0\\r\\nHost: a.example\\r\\n\\r\\n' >&3; cat <&3"}`)
	c.stop()
	if n := len(events); n != 3 {
		t.Fatalf("%+v, want three events", events)
	}
	e, run := events[1], events[2]
	if e.Operation != NetworkAttempt || e.Sandbox != sb.ID || e.Outcome != "not-allowed" || e.Status != 0 || e.KeyName != run.KeyName || e.ProjectID != run.ProjectID || !strings.HasPrefix(e.Detail, "http a.example:80, 0 bytes sent, ") {
		t.Errorf("%+v of %+v, want a refused attempt", e, res)
	}
	if run.Operation != "run-in-sandbox" || run.Outcome != string(res.Status) || run.Detail != "" {
		t.Errorf("%+v, want the run", run)
	}
}

// TestPages: pages of other sites have no use of the server, and no browser shows what comes from inside a sandbox.
func TestPages(t *testing.T) {
	c := serve(t, Config{Origins: []string{"https://app.example.org"}, Hosts: []string{"sandbox.example.org"}})
	for origin, want := range map[string]int{"https://app.example.org": http.StatusOK, "https://evil.example": http.StatusForbidden, "null": http.StatusForbidden} {
		res, text := c.do(http.MethodGet, "/v1/sandboxes", "", "Origin: "+origin)
		if allowed := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != want || (allowed == origin) != (want == http.StatusOK) {
			t.Errorf("a page of %s: %d %s, allowed %q, want %d", origin, res.StatusCode, text, allowed, want)
		}
		if res, _ := c.as("").do(http.MethodOptions, "/v1/run", "", "Origin: "+origin, "Access-Control-Request-Method: POST"); (res.StatusCode == http.StatusNoContent) != (want == http.StatusOK) {
			t.Errorf("the question of a page of %s: %d, want it answered: %t", origin, res.StatusCode, want == http.StatusOK)
		}
	}
	c.want(http.StatusOK, nil, http.MethodGet, "/v1/sandboxes", "", "Host: sandbox.example.org")
	// A form of another site, which needs no question before, has another type and no key.
	c.want(http.StatusUnsupportedMediaType, nil, http.MethodPost, "/v1/run", `{"code": "1"}`, "Content-Type: text/plain")
	path, _ := c.create(`{"language": "bash"}`)
	c.want(http.StatusNoContent, nil, http.MethodPut, path+"/files?path=a.html", "<script>alert(1)</script>")
	res, _ := c.do(http.MethodGet, path+"/files?path=a.html", "")
	if h := res.Header; h.Get("Content-Type") != octets || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Disposition") != "attachment" {
		t.Errorf("%v, want headers by which no browser shows it", h)
	}
	// The connection may be closed before the answer is read.
	if res, err := http.DefaultClient.Do(c.request(http.MethodGet, "/v1/sandboxes", "", "X-Long: "+strings.Repeat("x", 2*maxHeader))); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%d, want that headers are bounded", res.StatusCode)
		}
	}
}

// TestSecrets: sandboxes without a network have none of the operator's secrets, and those with one have them by their placeholders.
func TestSecrets(t *testing.T) {
	c := serve(t, Config{Sandbox: llmsandbox.Options{
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}},
		Secrets: []llmsandbox.Secret{{Name: "TOKEN", Value: "value-of-the-secret", Hosts: []string{"example.org:443"}}},
	}})
	for more, want := range map[string]func(string) bool{
		``:                         func(token string) bool { return token == "" },
		`, "limits": {"pids": 64}`: func(token string) bool { return token == "" },
		`, "network": {"mode": "allow", "allow": ["example.org:443"]}`: func(token string) bool { return token != "" && !strings.Contains(token, "value") },
	} {
		var res result
		c.want(http.StatusOK, &res, http.MethodPost, "/v1/run", `{"language": "bash", "code": "echo -n $TOKEN"`+more+`}`)
		if res.Status != llmsandbox.StatusOK || !want(res.Stdout) {
			t.Errorf("%s: %+v, want another TOKEN", more, res)
		}
	}
}

// TestEndedMeanwhile: what fails because the sandbox has ended is no failure of the server.
func TestEndedMeanwhile(t *testing.T) {
	c := serve(t, Config{})
	path, sb := c.create(`{"language": "bash"}`)
	ctx := context.WithValue(context.WithValue(t.Context(), callerKey{}, Caller{Project: "a"}), sandboxKey{}, sb.ID)
	failed := errors.New("connection refused")
	if p := c.server.problem(ctx, failed); p.Status != http.StatusInternalServerError || strings.Contains(p.Detail, "refused") {
		t.Errorf("while it lives: %+v, want a failure of the server that says nothing of it", p)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	if p := c.server.problem(ctx, failed); p.Status != http.StatusNotFound || p.Code != "not_found" {
		t.Errorf("%+v, want that it has ended", p)
	}
}

// TestAuditAgain: events that could not be handed on are handed on again, also when the server ends meanwhile.
func TestAuditAgain(t *testing.T) {
	failing := make(chan struct{})
	var calls, kept int
	c := serve(t, Config{Audit: func(_ context.Context, more []AuditEvent) error {
		if calls++; calls == 1 {
			close(failing)
			return errors.New("the database is gone")
		}
		kept += len(more)
		return nil
	}})
	c.create(`{"language": "bash"}`)
	<-failing
	c.stop()
	if kept != 1 {
		t.Errorf("%d events, want that of the sandbox", kept)
	}
}

// TestNotReady: a server whose database does not answer says so.
func TestNotReady(t *testing.T) {
	c := serve(t, Config{Ready: func(context.Context) error { return errors.New("in /a/place") }})
	if res, text := c.do(http.MethodGet, "/readyz", ""); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, `"not_ready"`) || strings.Contains(text, "/a/place") {
		t.Errorf("%d %s, want 503", res.StatusCode, text)
	}
	c.want(http.StatusOK, nil, http.MethodGet, "/healthz", "")
}
