package mcp

import (
	"context"
	"github.com/llmsandbox/llmsandbox/internal/sessions"
	"testing"

	"github.com/llmsandbox/llmsandbox/pool"
)

// What a call needs is there before it comes.
func TestCallsFindTheirSandboxReady(t *testing.T) {
	s := newServer(t, Config{Warm: 2})
	ready, hits := make(chan error, 100), make(chan bool, 100)
	cfg := s.cfg.pool()
	cfg.Hooks = []pool.Hooks{{
		Created:  func(c pool.Creation) { ready <- c.Err },
		Acquired: func(_ context.Context, a pool.Acquisition) { hits <- a.Hit },
	}}
	p, err := pool.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.sandboxes.pool = p
	for range 2 {
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
	}
	client := connect(t, s, nil)
	for range 2 {
		execute(t, client, args{"code": "1"})
		if !<-hits {
			t.Error("a call had a sandbox opened: <-hits = false, want true")
		}
	}
}

func TestPoolHasRoomForAll(t *testing.T) {
	for name, c := range map[string]struct {
		cfg            Config
		max, min, keys int
	}{
		"usual":     {Config{MaxCalls: 8, Warm: 2, WarmLanguages: []string{"python"}}, 10, 2, 1},
		"several":   {Config{MaxCalls: 3, Warm: 1, WarmLanguages: []string{"python", "go"}}, 5, 1, 2},
		"none warm": {Config{MaxCalls: 8, Warm: -1, WarmLanguages: []string{"python"}}, 8, 0, 0},
		"nothing":   {Config{MaxCalls: 8, Warm: 2}, 8, 0, 0},
	} {
		p := c.cfg.pool()
		if p.Max != c.max || p.Min != c.min || len(p.Keys) != c.keys || p.NoPrewarm != (c.keys == 0) {
			t.Errorf("%s: %+v, want Max = %v, Min = %v, len(p.Keys) = %v, NoPrewarm = %v", name, p, c.max, c.min, c.keys, c.keys == 0)
		}
	}
}

// Calls beyond those that may run at a time are reported so, as an error of the tool.
func TestBusyIsAnError(t *testing.T) {
	s := newServer(t, Config{MaxCalls: 1, Warm: -1})
	s.sandboxes.places = sessions.NewQueue(1, 8, 1)
	leave, err := s.sandboxes.places.Enter(testContext(t), "")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	res := use(t, connect(t, s, nil), "execute_code", args{"code": "1"})
	wantHas(t, failure(t, res), "busy", "try again", `"status":"setup_failed"`)
}
