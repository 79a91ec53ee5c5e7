//go:build linux

package guest_test

import (
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

func TestExit(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		for _, c := range []struct {
			script       string
			out, err     string
			code, signal uint32
		}{
			{script: "true"},
			{script: "exit 7", code: 7},
			{script: "echo out; echo err >&2; exit 3", out: "out\n", err: "err\n", code: 3},
			{script: "kill -9 $$", signal: 9},
			{script: "kill -15 $$", signal: 15},
			{script: "cat", out: ""},
			{script: "exec >&-; exec 2>&-; sleep 0.1; exit 4", code: 4},
		} {
			r := a.run(sh(c.script))
			if r.out != c.out || r.err != c.err || !r.exit.Known || r.exit.Code != c.code || r.exit.Signal != c.signal || r.exit.Reason != agentproto.NotKilled {
				t.Errorf("%s: %+v, want out = %v, err = %v, Known true, Code = %v, Signal = %v, Reason = NotKilled", c.script, r, c.out, c.err, c.code, c.signal)
			}
			if r.exit.PeakRSS == 0 || r.exit.WallMicros == 0 {
				t.Errorf("%s: no usage: %+v, want PeakRSS != 0, WallMicros != 0", c.script, r.exit)
			}
		}
	})
}

func TestStartErrors(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		for _, c := range []struct {
			name string
			req  agentproto.StartRequest
			code agentproto.ErrorCode
		}{
			{"no program", agentproto.StartRequest{}, agentproto.CodeBadRequest},
			{"not in PATH", agentproto.StartRequest{Argv: []string{"no-such-program"}}, agentproto.CodeNotFound},
			{"no such path", agentproto.StartRequest{Argv: []string{"/no/such"}}, agentproto.CodeNotFound},
			{"a folder", agentproto.StartRequest{Argv: []string{"/etc"}}, agentproto.CodeNotExecutable},
			{"not executable", agentproto.StartRequest{Argv: []string{"/etc/passwd"}}, agentproto.CodeNotExecutable},
			{"no working folder", agentproto.StartRequest{Argv: []string{"true"}, Dir: "/no/such"}, agentproto.CodeWorkdir},
			{"file as folder", agentproto.StartRequest{Argv: []string{"true"}, Dir: "/etc/passwd"}, agentproto.CodeWorkdir},
			{"NUL", agentproto.StartRequest{Argv: []string{"a\x00b"}}, agentproto.CodeBadRequest},
			{"unknown user", agentproto.StartRequest{Argv: []string{"true"}, User: "no-such-user"}, agentproto.CodeNotFound},
			{"unknown limit", agentproto.StartRequest{Argv: []string{"true"}, Rlimits: []agentproto.Rlimit{{Resource: 99}}}, agentproto.CodeBadRequest},
		} {
			_, err := runOn(t.Context(), a.client, c.req)
			var known *agentproto.Error
			if !errors.As(err, &known) || known.Code != c.code {
				t.Errorf("%s: %v, want an error of type %T, Code = %v", c.name, err, known, c.code)
			}
		}
		if r := a.run(sh("echo ok")); r.out != "ok\n" {
			t.Errorf("after the failures: %+v, want out = \"ok\\n\"", r)
		}
	})
}
