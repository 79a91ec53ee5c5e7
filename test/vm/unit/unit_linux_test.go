// Package unit tests deploy/systemd/llmsandbox.service in a machine that test/vm boots.
package unit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	command = "/usr/local/bin/llmsandbox"
	service = "/etc/systemd/system/llmsandbox.service"
	address = "http://127.0.0.1:8321"
)

// TestUnit: the server starts, runs code within its limits, and sandboxes live on when it is killed, started again and stopped.
func TestUnit(t *testing.T) {
	payload := os.Getenv("UNIT_PAYLOAD")
	if payload == "" {
		t.Skip("it changes the machine: test/vm runs it in one of its own")
	}
	install(t, payload+"/llmsandbox", command, 0o755)
	install(t, payload+"/llmsandbox.service", service, 0o644)
	run(t, "systemctl", "daemon-reload")
	run(t, "systemctl", "start", "llmsandbox") // returns when it serves
	c := client{t, strings.TrimSpace(run(t, command, "serve", "key", "create", "test"))}

	var res struct{ Status, Stdout string }
	c.call(&res, http.MethodPost, "/v1/run", `{"code": "print(6 * 7)"}`)
	if res.Status != "ok" || res.Stdout != "42\n" {
		t.Errorf("%+v, want 42", res)
	}
	var sb struct{ ID string }
	c.call(&sb, http.MethodPost, "/v1/sandboxes", `{"limits": {"memory_bytes": 67108864}}`)
	path := "/v1/sandboxes/" + sb.ID
	c.call(nil, http.MethodPut, path+"/files?path=kept", "here")
	lives := func(after string) {
		t.Helper()
		c.call(&res, http.MethodPost, path+"/run", `{"code": "print(open('kept').read())"}`)
		if res.Status != "ok" || res.Stdout != "here\n" {
			t.Errorf("after %s: %+v, want the sandbox with its file", after, res)
		}
	}
	c.call(&res, http.MethodPost, path+"/run", `{"code": "x = bytearray(256 << 20)"}`)
	if res.Status != "out_of_memory" {
		t.Errorf("%+v, want out_of_memory", res)
	}
	run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", "llmsandbox")
	run(t, "systemctl", "start", "llmsandbox")
	lives("a kill")
	run(t, "systemctl", "restart", "llmsandbox")
	lives("a restart")
	run(t, "systemctl", "stop", "llmsandbox")
	if out := run(t, command, "ls", "--json"); !strings.Contains(out, sb.ID) {
		t.Errorf("%s, want the sandbox that lives on", out)
	}
	run(t, "systemctl", "start", "llmsandbox")
	c.setClock(path, lives)
	if t.Failed() {
		out, _ := exec.Command("journalctl", "--no-pager", "-u", "llmsandbox").CombinedOutput()
		t.Logf("%s", out)
	}
}

// setClock sets the machine's clock while programs run in a sandbox: their time limits do not notice, and the sandbox ends when its own end has come by the
// clock.
func (c client) setClock(path string, lives func(string)) {
	c.t.Helper()
	var p struct {
		ID     uint64
		State  string
		Result struct{ Status, Stdout string }
	}
	start := func() (program string) {
		c.t.Helper()
		c.call(&p, http.MethodPost, path+"/processes", `{"code": "print(input())", "stdin_open": true}`)
		return fmt.Sprintf("%s/processes/%d", path, p.ID)
	}
	for _, by := range []string{"20 minutes", "40 minutes ago"} {
		program := start()
		run(c.t, "date", "--set", by)
		c.call(nil, http.MethodPost, program+"/stdin?close=true", "typed")
		if c.call(&p, http.MethodGet, program+"?wait_seconds=30", ""); p.State != "ended" || p.Result.Status != "ok" || p.Result.Stdout != "typed\n" {
			c.t.Errorf("the clock set to %s: %+v, want that the program ends well", by, p)
		}
		lives("setting the clock to " + by)
	}
	program := start()
	run(c.t, "date", "--set", "3 hours")
	status, text := c.ask(http.MethodGet, program+"?wait_seconds=30", "")
	for range 3 { // which may take a busy machine a while
		if status == http.StatusOK {
			status, text = c.ask(http.MethodGet, program+"?wait_seconds=30", "")
		}
	}
	if status != http.StatusNotFound {
		c.t.Errorf("past its end: %d %s, want that there is no sandbox", status, text)
	}
	id := path[strings.LastIndexByte(path, '/')+1:]
	for late := time.Now().Add(time.Minute); ; { // its owner removes it at any time after its end
		out := run(c.t, command, "ls", "--json")
		if !strings.Contains(out, id) {
			break
		}
		if time.Now().After(late) {
			c.t.Fatalf("%s, want no sandbox past its end", out)
		}
	}
}

func install(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, mode); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		journal, _ := exec.Command("journalctl", "--no-pager", "-u", "llmsandbox").CombinedOutput()
		t.Fatalf("%s: %v\n%s%s%s", argv, err, out, stderr.Bytes(), journal)
	}
	return string(out)
}

type client struct {
	t   *testing.T
	key string
}

// call sends a request that succeeds, and reads the answer.
func (c client) call(into any, method, path, body string) {
	c.t.Helper()
	status, text := c.ask(method, path, body)
	if status >= 300 {
		c.t.Fatalf("%s %s: %d: %s", method, path, status, text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

func (c client) ask(method, path, body string) (status int, answer []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %s, %v: %s", method, path, res.Status, err, text)
	}
	return res.StatusCode, text
}
