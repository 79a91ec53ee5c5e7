package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// usageStore is a database of the test's own.
func usageStore(t *testing.T) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "usage.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// usage is what the client's project has used.
func (c *client) usage() (u apitypes.ProjectUsage) {
	c.t.Helper()
	c.want(http.StatusOK, &u, http.MethodGet, "/v1/usage", "")
	return u
}

// burn is code that uses so much CPU time.
func burn(seconds float64) string {
	return fmt.Sprintf(`{"language": "python", "code": "import time\nwhile time.process_time() < %g: pass"}`, seconds)
}

// TestProjectUsage: a project is charged what its programs have used, whatever they ran as, and nothing of another's.
func TestProjectUsage(t *testing.T) {
	c := serve(t, Config{Usage: usageStore(t), MCP: true})
	b := c.as(keyB)
	path, _ := c.create(`{"language": "python"}`)
	var used float64
	charged := func(what string, client *client, programs float64, runs int64) {
		t.Helper()
		before := used
		u := client.usage()
		used = u.Total.CPU
		// Beside the program, there is what starts it, and on a busy machine that takes long.
		if more := used - before; more < programs || more > 5*programs+5 || u.Total.Runs != runs || u.Total.Lived <= 0 || u.Total.Sent != 0 {
			t.Errorf("%s: charged %g s more, %+v, want at least %g s, and %d runs", what, more, u.Total, programs, runs)
		}
	}
	var res result
	c.want(http.StatusOK, &res, http.MethodPost, path+"/run", burn(0.5))
	charged("a run", c, max(res.CPUMS/1000, 0.5), 1)
	var k apitypes.Kernel
	c.want(http.StatusCreated, &k, http.MethodPost, path+"/kernels", `{}`)
	c.want(http.StatusOK, nil, http.MethodPost, path+"/kernels/"+k.ID+"/cells", `{"code": "import time\nt0 = time.process_time()\nwhile time.process_time() - t0 < 0.4: pass"}`)
	charged("a cell", c, 0.4, 2)
	var p apitypes.ProcessState
	c.want(http.StatusCreated, &p, http.MethodPost, path+"/processes", burn(0.3))
	c.want(http.StatusOK, &p, http.MethodGet, fmt.Sprintf("%s/processes/%d?wait_seconds=60", path, p.ID), "")
	charged("a program that goes on", c, 0.3, 3)
	s := c.terminal(path + "/terminals?command=python3&command=-c&command=" + "import%20time%0Awhile%20time.process_time()%3C0.3:pass")
	s.result()
	s.closed()
	charged("a terminal", c, 0.3, 4)

	if u := b.usage(); u.Total != (apitypes.Amount{}) || len(u.Hours) != 0 {
		t.Errorf("%+v of another project, want nothing", u)
	}
	used = 0
	b.want(http.StatusOK, &res, http.MethodPost, "/v1/run", burn(0.4))
	charged("a run of its own", b, max(res.CPUMS/1000, 0.4), 1)
	b.want(http.StatusOK, nil, http.MethodPost, "/v1/run", strings.Replace(burn(0.2), "{", `{"limits": {"pids": 20}, `, 1))
	charged("a run with limits", b, 0.2, 2)
	tool := b.agent()
	code := map[string]any{"code": "import time\nwhile time.process_time() < 0.3: pass"}
	tool("execute_code", code)
	charged("a tool", b, 0.3, 3)
	_, session := tool("create_session", map[string]any{"language": "bash"})
	code["session_id"], code["language"] = session, "python"
	tool("run_in_session", code)
	charged("a session", b, 0.3, 4)
	tool("close_session", map[string]any{"session_id": session})

	_, metrics := c.do(http.MethodGet, "/metrics", "")
	for _, want := range []string{"llmsandbox_sandbox_cpu_seconds_total ", `llmsandbox_sandbox_network_bytes_total{direction="sent"} 0`, "llmsandbox_sandbox_seconds_total "} {
		if !strings.Contains(metrics, "\n"+want) || strings.Contains(metrics, "\nllmsandbox_sandbox_cpu_seconds_total 0\n") {
			t.Errorf("%s: want %s", metrics, want)
		}
	}
	a := c.usage().Total.CPU
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	if after := c.usage().Total.CPU; after < a || after > a+5 {
		t.Errorf("%g s after the removal, %g s before, want little more", after, a)
	}
}

// TestProjectUsageOfNetwork: what programs send and receive is charged, also while they run, and a project that has sent what it may in a day begins nothing more.
func TestProjectUsageOfNetwork(t *testing.T) {
	const most = 1 << 20
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, n/2))
	}))
	defer host.Close()
	address := strings.TrimPrefix(host.URL, "http://")
	network := `"network": {"mode": "allow", "allow": ["` + address + `"]}`
	c := serve(t, Config{Usage: usageStore(t), MaxDaySent: most, Sandbox: llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{address}}}})
	path, _ := c.create(`{"language": "python", ` + network + `}`)
	send := `"code": "import http.client, os\nto = http.client.HTTPConnection(os.environ['http_proxy'].removeprefix('http://').rstrip('/'))\nto.request('POST', '` + host.URL + `', bytes(600_000))\nassert len(to.getresponse().read()) == 300_000"}`
	var res result
	if c.want(http.StatusOK, &res, http.MethodPost, path+"/run", "{"+send); res.Status != llmsandbox.StatusOK {
		t.Fatalf("%+v, want it to send", res)
	}
	u := c.usage()
	if u.Total.Sent < 600_000 || u.Total.Sent > 610_000 || u.Total.Received < 300_000 || u.Total.Received > 310_000 {
		t.Errorf("%+v, want 600 kB sent, 300 kB received", u)
	}
	c.want(http.StatusOK, nil, http.MethodPost, "/v1/run", `{"language": "python", `+network+`, `+send)
	if u = c.usage(); u.Total.Sent < 1_200_000 || u.Total.Received < 600_000 {
		t.Errorf("%+v, want what a sandbox of its own has sent, too", u)
	}
	var q apitypes.Quotas
	c.want(http.StatusOK, &q, http.MethodGet, "/v1/quotas", "")
	if q.Today == nil || q.Today.Sent != (apitypes.Quota{Used: u.Total.Sent, Most: most}) || q.Today.CPU != (apitypes.Quota{Used: int64(u.Total.CPU * 1000)}) || time.Until(q.Today.Ends) > 24*time.Hour {
		t.Errorf("quotas %+v, want of today what there is in all: %+v", q.Today, u)
	}
	for what, begin := range map[string][3]string{
		"a run": {http.MethodPost, "/v1/run", `{"code": "1"}`}, "a run in a sandbox": {http.MethodPost, path + "/run", `{"code": "1"}`},
		"a sandbox": {http.MethodPost, "/v1/sandboxes", `{}`}, "a program": {http.MethodPost, path + "/processes", `{"code": "1"}`}, "a kernel": {http.MethodPost, path + "/kernels", `{}`},
		"a terminal": {http.MethodGet, path + "/terminals", ""},
	} {
		res, text := c.do(begin[0], begin[1], begin[2])
		after, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if left := time.Until(q.Today.Ends).Seconds(); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"code":"quota"`) || err != nil || float64(after) < left || float64(after) > left+60 {
			t.Errorf("%s: %d %s, to come back after %d seconds, want it refused until %v", what, res.StatusCode, text, after, q.Today.Ends)
		}
	}
	c.as(keyB).want(http.StatusOK, nil, http.MethodPost, "/v1/run", `{"language": "bash", "code": "1"}`)
	c.want(http.StatusOK, nil, http.MethodGet, path+"/files/list?path=.", "")
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
}

// TestProjectUsageOfTools: a project that has used what it may in a day begins nothing with a tool either, and can still end what it has.
func TestProjectUsageOfTools(t *testing.T) {
	c := serve(t, Config{Usage: usageStore(t), MaxDayCPU: 200 * time.Millisecond, MCP: true})
	tool := c.agent()
	_, session := tool("create_session", map[string]any{"language": "python"})
	tool("run_in_session", map[string]any{"session_id": session, "code": "import time\nwhile time.process_time() < 0.5: pass"})
	c.usage() // which waits until that is counted
	for _, call := range []string{"create_session", "execute_code", "run_in_session", "install_libraries"} {
		if text, _ := tool(call, map[string]any{"session_id": session, "code": "1", "libraries": []string{}}); !strings.Contains(text, "quota reached") {
			t.Errorf("%s: %s, want that the quota is reached", call, text)
		}
	}
	if text, _ := tool("close_session", map[string]any{"session_id": session}); !strings.Contains(text, "true") {
		t.Errorf("close_session: %s, want it closed", text)
	}
}

// TestProjectUsageRange: an answer is about a bounded time.
func TestProjectUsageRange(t *testing.T) {
	db := usageStore(t)
	c := serve(t, Config{Usage: db})
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -40)
	for _, hours := range []int{0, 1, 30 * 24, 32 * 24} {
		if err := db.AddUsage(t.Context(), []metering.Hour{{Project: "a", Begins: day.Add(time.Duration(hours) * time.Hour), Amount: metering.Amount{Runs: 1, CPU: time.Second}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	at := func(d time.Duration) string { return day.Add(d).Format(time.RFC3339Nano) }
	for query, want := range map[string]int64{
		"?from=" + at(0) + "&to=" + at(31*24*time.Hour): 3, "?from=" + at(30*time.Minute) + "&to=" + at(time.Hour): 1, "?from=" + at(time.Hour) + "&to=" + at(time.Hour+1): 1,
		"?to=" + at(time.Hour+time.Second): 2, "?from=" + at(12*24*time.Hour) + "&to=" + at(33*24*time.Hour): 2, "": 0, "?from=" + at(time.Hour+time.Minute) + "&to=" + at(31*24*time.Hour+time.Hour+time.Minute): 2,
	} {
		var u apitypes.ProjectUsage
		c.want(http.StatusOK, &u, http.MethodGet, "/v1/usage"+query, "")
		if u.Total.Runs != want || u.Total.CPU != float64(want) || int64(len(u.Hours)) != want {
			t.Errorf("%s: %+v, want %d runs", query, u, want)
		}
	}
	for _, query := range []string{"?from=" + at(0) + "&to=" + at(0), "?from=" + at(time.Hour) + "&to=" + at(0), "?from=" + at(0) + "&to=" + at(31*24*time.Hour+2*time.Hour), "?from=" + at(0), "?from=yesterday"} {
		c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, "/v1/usage"+query, "")
	}
	c.as(keyAReads).want(http.StatusOK, nil, http.MethodGet, "/v1/usage", "")
	c.as(keyAAudit).want(http.StatusForbidden, nil, http.MethodGet, "/v1/usage", "")
	var p apitypes.Problem
	if serve(t, Config{}).want(http.StatusUnprocessableEntity, &p, http.MethodGet, "/v1/usage", ""); p.Code != "unsupported" {
		t.Errorf("of a server that keeps none: %+v, want unsupported", p)
	}
}
