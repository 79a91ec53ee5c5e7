package e2b

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/service"
)

// about is what the control plane says of a sandbox.
func (h *host) about(id string) (l listed) {
	h.t.Helper()
	status, text, _ := h.ask(testKey, http.MethodGet, "/sandboxes/"+id, "")
	if err := json.Unmarshal([]byte(text), &l); status != http.StatusOK || err != nil {
		h.t.Fatalf("info: %d %s, %v", status, text, err)
	}
	return l
}

// becomes waits until a sandbox has a state.
func (h *host) becomes(id, state string) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); h.about(id).State != state; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("after a minute it is %+v, want it %s", h.about(id), state)
		}
	}
}

// needsPause skips a test where no sandbox can be paused, which needs control groups.
func (h *host) needsPause(id string) {
	h.t.Helper()
	sb, err := h.service.Get(testContext(h.t), testProject, innerID(id))
	if err != nil {
		h.t.Fatal(err)
	}
	if memory, _ := sb.Capabilities().Get("memory"); !memory.Enforced {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			h.t.Fatalf("cannot run here: %+v", memory)
		}
		h.t.Skipf("no sandbox can be paused here: %+v", memory)
	}
}

func TestPause(t *testing.T) {
	h := serve(t)
	made := h.make(`{"timeout": 100}`)
	h.needsPause(made.ID)
	before := h.about(made.ID)
	if before.State != running || before.Lifecycle != nil || before.PauseMode != "" {
		t.Errorf("new, it is %+v", before)
	}
	health := func() int {
		status, _, _ := h.ask("", http.MethodGet, "/health", "", sandboxHeader, made.ID)
		return status
	}
	steps := []struct {
		method, path, body string
		status             int
		health             int
	}{
		{http.MethodPost, "/sandboxes/ID/resume", `{"timeout": 15}`, http.StatusConflict, http.StatusNoContent},
		{http.MethodPost, "/sandboxes/ID/pause", `{"memory": false}`, http.StatusBadRequest, http.StatusNoContent},
		{http.MethodPost, "/sandboxes/ID/pause", `{}`, http.StatusNoContent, http.StatusBadGateway},
		{http.MethodPost, "/sandboxes/ID/pause", ``, http.StatusConflict, http.StatusBadGateway},
		{http.MethodPost, "/sandboxes/ID/timeout", `{"timeout": 100}`, http.StatusConflict, http.StatusBadGateway},
		{http.MethodPost, "/v2/sandboxes/ID/connect", `{"memory": false}`, http.StatusBadRequest, http.StatusBadGateway},
		{http.MethodPost, "/v2/sandboxes/ID/connect", `{"timeout": 15}`, http.StatusCreated, http.StatusNoContent},
		{http.MethodPost, "/v2/sandboxes/ID/connect", `{"timeout": 15}`, http.StatusOK, http.StatusNoContent},
		{http.MethodPost, "/sandboxes/ID/pause", ``, http.StatusNoContent, http.StatusBadGateway},
		{http.MethodPost, "/sandboxes/ID/resume", `{"timeout": 15, "autoPause": false}`, http.StatusCreated, http.StatusNoContent},
		{http.MethodPost, "/sandboxes/ID/pause", ``, http.StatusNoContent, http.StatusBadGateway},
	}
	for _, c := range steps {
		path := strings.Replace(c.path, "ID", made.ID, 1)
		if status, text, _ := h.ask(testKey, c.method, path, c.body); status != c.status {
			t.Fatalf("%s %s: %d %s, want %d", c.path, c.body, status, text, c.status)
		}
		if got := health(); got != c.health {
			t.Fatalf("health after %s %s: %d, want %d", c.path, c.body, got, c.health)
		}
	}
	if now := h.about(made.ID); now.State != paused || now.PauseMode != "full" || now.Token != made.Token || now.End.Before(before.End) {
		t.Errorf("paused, it is %+v, want the token and no earlier end than %v", now, before.End)
	}
	for query, want := range map[string]bool{"?state=paused": true, "?state=running": false, "": true} {
		status, text, header := h.ask(testKey, http.MethodGet, "/v2/sandboxes"+query, "")
		if there := strings.Contains(text, made.ID); status != http.StatusOK || there != want || header.Get("X-Total-Running") != "0" {
			t.Errorf("list %q: %d %s, running %s, want it there: %v", query, status, text, header.Get("X-Total-Running"), want)
		}
	}
	if _, text, _ := h.ask(testKey, http.MethodGet, "/sandboxes", ""); text != "[]\n" && text != "[]" {
		t.Errorf("the older list: %s, want none", text)
	}
	// Nothing wakes one that was not made so.
	if status, text, _ := h.ask("", http.MethodGet, "/files?path=x", "", sandboxHeader, made.ID, tokenHeader, made.Token); status != http.StatusBadGateway || !strings.Contains(text, goneMessage) {
		t.Errorf("a file of it: %d %s, want it not found", status, text)
	}
	if status, _, _ := h.ask(testKey, http.MethodDelete, "/sandboxes/"+made.ID, ""); status != http.StatusNoContent {
		t.Errorf("kill: %d", status)
	}
}

// TestPauseAtTimeout: a sandbox is paused when its timeout is over, also where another server made it, and goes on with a request that may
// use it.
func TestPauseAtTimeout(t *testing.T) {
	h := serveWith(t, func(core *service.Config, _ *Config) { core.MaxLifetime = time.Hour })
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes", `{"autoPause": true, "autoPauseMemory": false}`); status != http.StatusBadRequest {
		t.Errorf("a pause with files only: %d %s", status, text)
	}
	for seconds, want := range map[float64]time.Duration{100: 100*time.Second + spare, 3600: time.Hour, 3590: time.Hour, 3601: 3601 * time.Second} {
		if got := h.server.lifetime(map[string]string{lifecycleLabel: `{"pause": true}`}, seconds); got != want {
			t.Errorf("with a timeout of %v s it lives %v, want %v", seconds, got, want)
		}
	}
	made := h.make(`{"timeout": 1000, "autoPause": true, "autoResume": {"enabled": true}}`)
	h.needsPause(made.ID)
	about := h.about(made.ID)
	if left := time.Until(about.End); left > 1000*time.Second || left < 900*time.Second || about.Lifecycle == nil || *about.Lifecycle != (listedLifecycle{true, "pause"}) {
		t.Errorf("it is %+v, want its end within 1000 s, and its lifecycle", about)
	}
	timeout := func(body string) {
		t.Helper()
		if status, text, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+made.ID+"/timeout", body); status != http.StatusNoContent {
			t.Fatalf("timeout %s: %d %s", body, status, text)
		}
	}
	timeout(`{"timeout": 0.5}`)
	h.becomes(made.ID, paused)

	ask := func(token string) int {
		status, _, _ := h.ask("", http.MethodGet, "/files?path=none", "", sandboxHeader, made.ID, tokenHeader, token)
		return status
	}
	if status := ask("wrong"); status != http.StatusBadGateway || h.about(made.ID).State != paused {
		t.Errorf("a request without its token: %d, and it is %s", status, h.about(made.ID).State)
	}
	if status := ask(made.Token); status != http.StatusNotFound {
		t.Errorf("a request with its token: %d, want that the file is not there", status)
	}
	if now := h.about(made.ID); now.State != running || time.Until(now.End) < 200*time.Second {
		t.Errorf("then it is %+v, want it running for another 300 s", now)
	}
	timeout(`{"timeout": 0}`)
	h.becomes(made.ID, paused)

	// One whose server stops before the timeout is paused by the next.
	if status, text, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+made.ID+"/connect", `{"timeout": 1}`); status != http.StatusCreated {
		t.Fatalf("connect: %d %s", status, text)
	}
	timeout(`{"timeout": 1}`)
	h.server.Close()
	next, err := New(h.server.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	h.becomes(made.ID, paused)
}
