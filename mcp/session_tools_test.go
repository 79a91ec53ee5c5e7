package mcp

import (
	"testing"
)

func TestSessionKeepsState(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	s := open(t, client, args{})
	if !s.Stateful || len(s.SessionID) != 32 || s.Language != "python" || s.TTL != 3600 || s.IdleTTL != 900 {
		t.Errorf("%+v", s)
	}
	run := func(code string) outcome {
		return decode[outcome](t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": code}))
	}
	run("x = 20")
	if got := run("print('a')\nx + 1"); got.Value != "21" || got.Stdout != "a\n" || got.ExitCode != 0 {
		t.Errorf("%+v", got)
	}
	got := run("1/0")
	if got.ExitCode != 1 || got.Status != "error" {
		t.Errorf("%+v", got)
	}
	wantHas(t, got.Stderr, "ZeroDivisionError")
	if got := run("import os; os._exit(3)"); got.ExitCode != 3 || !got.StateLost {
		t.Errorf("%+v", got)
	}
	if got := run("'x' in dir()"); got.Value != "False" {
		t.Errorf("%+v", got)
	}
	if res := use(t, client, "close_session", args{"session_id": s.SessionID}); text(t, res) != `{"closed":true}` {
		t.Error(text(t, res))
	}
	wantHas(t, failure(t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": "1"})), "no such session")
}
