package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/security"
)

// start starts a program and returns its path.
func (c *client) start(sandbox, body string) string {
	c.t.Helper()
	var p apitypes.ProcessState
	c.want(http.StatusCreated, &p, http.MethodPost, sandbox+"/processes", body)
	if p.ID == 0 || p.State != "running" || p.Result != nil {
		c.t.Fatalf("started %+v, want a program that runs", p)
	}
	return fmt.Sprint(sandbox, "/processes/", p.ID)
}

// outcome waits for the end of a program.
func (c *client) outcome(process string) *llmsandbox.Result {
	c.t.Helper()
	var p apitypes.ProcessState
	c.want(http.StatusOK, &p, http.MethodGet, process+"?wait_seconds=60", "")
	if p.State != "ended" || p.Result == nil {
		c.t.Fatalf("%s: %+v, want a program that has ended", process, p)
	}
	return p.Result
}

// outputEvent is an event of output.
type outputEvent struct{ id, name, data string }

func outputEvents(t *testing.T, text string) []outputEvent {
	t.Helper()
	var all []outputEvent
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e outputEvent
		for line := range strings.SplitSeq(block, "\n") {
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			}
		}
		if e.name != "" {
			all = append(all, e)
		}
	}
	return all
}

// output is all that a program writes from an id on, and the names of the events that are no output.
func (c *client) output(process, after string) (stdout, stderr string, others []string) {
	c.t.Helper()
	var headers []string
	if after != "" {
		headers = []string{"Last-Event-ID: " + after}
	}
	res, text := c.do(http.MethodGet, process+"/output", "", headers...)
	if res.StatusCode != http.StatusOK {
		c.t.Fatalf("%d %s, want 200", res.StatusCode, text)
	}
	for _, e := range outputEvents(c.t, text) {
		var part string
		switch e.name {
		case "stdout", "stderr":
			if err := json.Unmarshal([]byte(e.data), &part); err != nil {
				c.t.Fatal(err)
			}
			if e.name == "stdout" {
				stdout += part
			} else {
				stderr += part
			}
		default:
			others = append(others, e.name)
		}
	}
	return stdout, stderr, others
}

// TestProcess: a program goes on without its client, takes input, and its output and result can be read as often as wanted.
func TestProcess(t *testing.T) {
	c := serve(t, Config{})
	path, sb := c.create(`{"language": "bash"}`)
	one := c.start(path, `{"code": "echo begun; printf 'é\\xff' >&2; while read -r line; do echo \"got $line\"; done; exit 3", "stdin_open": true}`)
	var p apitypes.ProcessState
	if c.want(http.StatusOK, &p, http.MethodGet, one, ""); p.State != "running" || p.Result != nil {
		t.Errorf("%+v, want that it runs", p)
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/stdin", "a\n")
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/stdin?close=true", "b\n")
	res := c.outcome(one)
	if res.Status != llmsandbox.StatusError || res.ExitCode != 3 || res.Stdout != "begun\ngot a\ngot b\n" || res.Stderr != "é\ufffd" || res.Language != "bash" || res.SandboxID != sb.ID || res.StdoutTruncated {
		t.Errorf("%+v, want what the program wrote, and exit code 3", res)
	}
	for range 2 {
		if out, errs, others := c.output(one, ""); out != res.Stdout || errs != res.Stderr || len(others) != 1 || others[0] != "result" {
			t.Errorf("%q, %q, %q, want the output and the result", out, errs, others)
		}
	}
	if out, errs, _ := c.output(one, "6-2"); out != "got a\ngot b\n" || errs != "\ufffd" {
		t.Errorf("from 6-2 on: %q, %q, want the rest", out, errs)
	}
	if out, errs, _ := c.output(one, "999999999999999999-3"); out != "" || errs != "" {
		t.Errorf("from beyond the end on: %q, %q, want none", out, errs)
	}
	for id := range strings.FieldsSeq("x 1 1- -1-2 1-2-3 1234567890123456789-0") {
		c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, one+"/output", "", "Last-Event-ID: "+id)
	}
	c.want(http.StatusConflict, nil, http.MethodPost, one+"/stdin", "c\n")
	for range 2 { // that it has ended is no error
		c.want(http.StatusNoContent, nil, http.MethodPost, one+"/signal", `{"signal": "SIGINT"}`)
		c.want(http.StatusNoContent, nil, http.MethodDelete, one, "")
	}
	if again := c.outcome(one); again.ExitCode != 3 {
		t.Errorf("%+v, want what it was", again)
	}
	for _, r := range [][3]string{
		{http.MethodGet, one, ""}, {http.MethodGet, one + "/output", ""}, {http.MethodDelete, one, ""}, {http.MethodPost, one + "/stdin", "x"},
		{http.MethodPost, one + "/signal", `{"signal": "INT"}`}, {http.MethodPost, path + "/processes", `{"code": "true"}`},
	} {
		c.as(keyB).want(http.StatusNotFound, nil, r[0], r[1], r[2])
		if r[0] != http.MethodGet {
			c.as(keyAReads).want(http.StatusForbidden, nil, r[0], r[1], r[2])
		} else {
			c.as(keyAReads).want(http.StatusOK, nil, r[0], r[1], r[2])
		}
	}
	for _, number := range []string{"4096", "18446744073709551615"} {
		c.want(http.StatusNotFound, nil, http.MethodGet, path+"/processes/"+number, "")
	}
	for _, number := range []string{"0", "x", "-1"} {
		c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, path+"/processes/"+number, "")
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	c.want(http.StatusNotFound, nil, http.MethodGet, one, "")
}

// TestProcessIsFollowed: output comes while a program runs, also to one who comes back.
func TestProcessIsFollowed(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	one := c.start(path, `{"argv": ["cat"], "stdin_open": true}`)
	last := ""
	for _, line := range []string{"a\n", "bé\n"} {
		r := c.request(http.MethodGet, one+"/output", "")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		c.want(http.StatusNoContent, nil, http.MethodPost, one+"/stdin", line)
		var got, text string
		for got != line {
			part := make([]byte, 4096)
			n, err := res.Body.Read(part)
			if text += string(part[:n]); err != nil {
				t.Fatalf("%v after %q", err, text)
			}
			end := strings.LastIndex(text, "\n\n")
			if end < 0 {
				continue
			}
			got = ""
			for _, e := range outputEvents(t, text[:end]) {
				var part string
				if err := json.Unmarshal([]byte(e.data), &part); err != nil {
					t.Fatal(err)
				}
				got, last = got+part, e.id
			}
		}
		res.Body.Close()
	}
	if last != "6-0" {
		t.Errorf("the last event is %s, want the number of bytes that came", last)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, one, "")
	if res := c.outcome(one); res.Status != llmsandbox.StatusKilled || res.Signal != "SIGKILL" || res.Stdout != "a\nbé\n" {
		t.Errorf("%+v, want a program that was killed", res)
	}
}

// TestProcessSignal: a program gets the signal that is sent to it.
func TestProcessSignal(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	one := c.start(path, `{"code": "trap 'echo caught; exit 0' USR1; echo; read -r line", "stdin_open": true}`)
	res, err := http.DefaultClient.Do(c.request(http.MethodGet, one+"/output", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for text := ""; !strings.Contains(text, "event: stdout"); { // then its trap is set
		part := make([]byte, 4096)
		n, err := res.Body.Read(part)
		if text += string(part[:n]); err != nil {
			t.Fatal(err)
		}
	}
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, one+"/signal", `{"signal": "SIGNONE"}`)
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/signal", `{"signal": "SIGUSR1"}`)
	if res := c.outcome(one); res.Stdout != "\ncaught\n" || res.Status != llmsandbox.StatusOK {
		t.Errorf("%+v, want that it has caught the signal", res)
	}
}

// TestProcessOfMuch: what is more than is kept while a program runs is in its result, and nothing is missing for who comes late.
func TestProcessOfMuch(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	const size = 5_000_000
	one := c.start(path, fmt.Sprintf(`{"argv": ["sh", "-c", "head -c %d /dev/zero | tr '\\0' x; echo end >&2"]}`, size))
	res := c.outcome(one)
	if len(res.Stdout) != size || strings.Trim(res.Stdout, "x") != "" || res.Stderr != "end\n" || res.StdoutTruncated {
		t.Errorf("%s, %d bytes, %q, want all", res.Status, len(res.Stdout), res.Stderr)
	}
	if out, errs, others := c.output(one, fmt.Sprintf("%d-0", size-3)); out != "xxx" || errs != "end\n" || len(others) != 1 {
		t.Errorf("%q, %q, %q, want the end", out, errs, others)
	}
}

// TestProcessBounds: what is not allowed for a run is not for a program that goes on, and it has the place of one until it ends.
func TestProcessBounds(t *testing.T) {
	preset, err := security.Preset("minimal")
	if err != nil {
		t.Fatal(err)
	}
	checker, err := security.Compile(preset)
	if err != nil {
		t.Fatal(err)
	}
	var events []AuditEvent
	c := serve(t, Config{
		MaxRuns: 1, Sandbox: llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: time.Minute}, Policy: llmsandbox.Policy{Checker: checker}},
		Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil },
	})
	path, _ := c.create(`{"language": "python"}`)
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"both":       {`{"code": "1", "argv": ["true"]}`, http.StatusUnprocessableEntity},
		"none":       {`{}`, http.StatusUnprocessableEntity},
		"too long":   {`{"code": "1", "timeout_seconds": 61}`, http.StatusForbidden},
		"of code":    {`{"argv": ["true"], "args": ["x"]}`, http.StatusUnprocessableEntity},
		"two inputs": {`{"code": "1", "stdin": "x", "stdin_open": true}`, http.StatusUnprocessableEntity},
		"much input": {`{"code": "1", "stdin": "` + strings.Repeat("x", apitypes.MaxStdin+1) + `"}`, http.StatusUnprocessableEntity},
		"language":   {`{"code": "1", "language": "cobol"}`, http.StatusUnprocessableEntity},
		"no program": {`{"argv": ["no-such-program"]}`, http.StatusNotFound},
		"unknown":    {`{"code": "1", "shell": "ls"}`, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			d := *c
			d.t = t
			d.want(test.status, nil, http.MethodPost, path+"/processes", test.body)
		})
	}
	var p apitypes.ProcessState
	c.want(http.StatusOK, &p, http.MethodPost, path+"/processes", `{"code": "import os; os.system('x')"}`)
	if p.ID != 0 || p.State != "ended" || p.Result == nil || p.Result.Status != llmsandbox.StatusRefused || len(p.Result.Findings) == 0 {
		t.Errorf("%+v, want code that was refused", p)
	}
	one := c.start(path, `{"argv": ["cat"], "stdin_open": true, "timeout_seconds": 60}`)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { // waits for the place
		leave, err := c.server.service.Enter(ctx, "b")
		if err == nil {
			leave()
		}
		waited <- err
	}()
	cancel()
	if err := <-waited; err == nil {
		t.Error("there is a place beside a program that goes on, want none")
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/stdin?close=true", "")
	if res := c.outcome(one); res.Status != llmsandbox.StatusOK {
		t.Errorf("%+v, want ok", res)
	}
	slow := c.start(path, `{"argv": ["cat"], "stdin_open": true, "timeout_seconds": 0.5}`) // there is a place again
	if res := c.outcome(slow); res.Status != llmsandbox.StatusTimeout {
		t.Errorf("%+v, want timeout", res)
	}
	var usage strings.Builder
	_, text := c.do(http.MethodGet, "/metrics", "")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "llmsandbox_programs_total") {
			usage.WriteString(line)
		}
	}
	for _, want := range []string{`{status="refused"} 1`, `{status="ok"} 1`, `{status="timeout"} 1`} {
		if !strings.Contains(usage.String(), want) {
			t.Errorf("the metrics have %s, want %s", usage.String(), want)
		}
	}
	c.stop()
	var ends []string
	for _, e := range events {
		if e.KeyName != "one" || e.Sandbox == "" {
			t.Errorf("%+v, want who has started it, and where", e)
		}
		if e.Operation == ProcessEnd || e.Status == http.StatusOK {
			ends = append(ends, e.Operation+" "+e.Outcome)
		}
	}
	if want := []string{"start-process refused", "process-end ok", "process-end timeout"}; !slices.Equal(ends, want) {
		t.Errorf("the audit log has %q, want %q", ends, want)
	}
}

// TestProcessAtEnd: requests that watch a program end when the server is to end, at once.
func TestProcessAtEnd(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	one := c.start(path, `{"argv": ["cat"], "stdin_open": true}`)
	res, err := http.DefaultClient.Do(c.request(http.MethodGet, one+"/output", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	begun := time.Now()
	c.stop()
	text, err := io.ReadAll(res.Body)
	if err != nil || strings.Contains(string(text), "event:") || time.Since(begun) > stopTime {
		t.Errorf("%q, %v after %v, want the end of the stream", text, err, time.Since(begun))
	}
}

// TestIdempotencyKey: a request that is sent again with its key does nothing, and gets the answer that the first one got.
func TestIdempotencyKey(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil }})
	const body, all, key = `{"language": "bash"}`, "/v1/sandboxes", "Idempotency-Key: a key"
	_, first := c.do(http.MethodPost, all, body, key)
	if _, again := c.do(http.MethodPost, all, ` {"language":  "bash"}`, key); again != first {
		t.Errorf("answered %s, and then %s: want the same", first, again)
	}
	c.want(http.StatusConflict, nil, http.MethodPost, all, `{"language": "python"}`, key)
	for _, wrong := range []string{"\u00e9", strings.Repeat("x", 256)} {
		c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, all, body, "Idempotency-Key: "+wrong)
	}
	var sb, other apitypes.Sandbox
	if err := json.Unmarshal([]byte(first), &sb); err != nil {
		t.Fatal(err)
	}
	c.as(keyB).want(http.StatusCreated, &other, http.MethodPost, all, body, key)
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, all, body, key)
	var list struct{ Sandboxes []apitypes.Sandbox }
	if c.want(http.StatusOK, &list, http.MethodGet, all, ""); len(list.Sandboxes) != 1 || list.Sandboxes[0].ID != sb.ID || other.ID == sb.ID {
		t.Errorf("%+v, and of another project %s, want one sandbox each", list.Sandboxes, other.ID)
	}
	processes := all + "/" + sb.ID + "/processes"
	c.want(http.StatusNotFound, nil, http.MethodPost, processes, `{"argv": ["/none"]}`, key)
	_, first = c.do(http.MethodPost, processes, `{"argv": ["sh", "-c", "echo >>file"]}`, key) // what failed can be sent again, also as another one
	_, again := c.do(http.MethodPost, processes, `{"argv": ["sh", "-c", "echo >>file"]}`, key)
	var p apitypes.ProcessState
	if err := json.Unmarshal([]byte(first), &p); err != nil || p.ID == 0 || again != first {
		t.Errorf("answered %s, and then %s: want the same program", first, again)
	}
	c.want(http.StatusConflict, nil, http.MethodPost, processes, `{"argv": ["true"]}`, key)
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodPost, processes, `{"argv": ["sh", "-c", "echo >>file"]}`, key)
	c.outcome(fmt.Sprint(processes, "/", p.ID))
	var res result
	if c.want(http.StatusOK, &res, http.MethodPost, all+"/"+sb.ID+"/exec", `{"shell": "wc -l <file"}`); res.Stdout != "1\n" {
		t.Errorf("the program ran %q times, want once", res.Stdout)
	}
	c.stop()
	var outcomes []string
	for _, e := range events[:4] {
		outcomes = append(outcomes, e.Outcome)
	}
	if want := []string{"ok", "repeated", "idempotency", "invalid"}; !slices.Equal(outcomes, want) {
		t.Errorf("the audit log has %q, want %q", outcomes, want)
	}
}

// FuzzEventID: an id that is taken is one that is given out.
func FuzzEventID(f *testing.F) {
	for _, seed := range []string{"", "0-0", "12-345", "999999999999999999-0", "1", "-1-1", "01-1", "1-1 ", "a-b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		from, err := parseEventID(id)
		if err != nil || id == "" {
			return
		}
		again, err := parseEventID(formatEventID(from))
		if err != nil || again != from || from[0] < 0 || from[1] < 0 {
			t.Errorf("%q is %v, and again %v, %v: want the same", id, from, again, err)
		}
	})
}
