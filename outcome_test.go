package llmsandbox

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
)

// fakeMachine counts out-of-memory kills as the test sets them.
type fakeMachine struct {
	backend.Machine
	kills int64
	known bool
}

func (m *fakeMachine) OOMKills(context.Context) (int64, bool) { return m.kills, m.known }
func (m *fakeMachine) ID() string                             { return "sb-fake" }
func (m *fakeMachine) Info() backend.Info                     { return backend.Info{} }
func (m *fakeMachine) Capabilities() backend.Capabilities     { return backend.Capabilities{} }

func TestOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		exit  agentproto.Exit
		kills int64 // during the run
		known bool
		want  Status
		code  int // -1: none

		reason string // a part of it
		hint   HintKind
	}{
		"ok":                       {exit: agentproto.Exit{}, want: StatusOK, code: 0},
		"ok though a child died":   {exit: agentproto.Exit{}, kills: 1, known: true, want: StatusOK, code: 0},
		"error":                    {exit: agentproto.Exit{Code: 3}, known: true, want: StatusError, code: 3},
		"timeout":                  {exit: agentproto.Exit{Signal: 9, Reason: agentproto.KilledTimeout}, want: StatusTimeout, code: -1},
		"timeout beats memory":     {exit: agentproto.Exit{Signal: 9, Reason: agentproto.KilledTimeout}, kills: 1, known: true, want: StatusTimeout, code: -1},
		"output":                   {exit: agentproto.Exit{Signal: 9, Reason: agentproto.KilledOutputLimit, OutCut: true}, want: StatusOutputLimit, code: -1},
		"output, and its own end":  {exit: agentproto.Exit{Code: 3, Reason: agentproto.KilledOutputLimit, OutCut: true}, want: StatusOutputLimit, code: 3},
		"memory":                   {exit: agentproto.Exit{Signal: 9}, kills: 1, known: true, want: StatusOutOfMemory, code: -1},
		"memory of a child":        {exit: agentproto.Exit{Code: 1}, kills: 2, known: true, want: StatusOutOfMemory, code: 1},
		"memory not known":         {exit: agentproto.Exit{Signal: 9}, kills: 1, want: StatusKilled, code: -1},
		"segfault is never memory": {exit: agentproto.Exit{Signal: 11}, kills: 1, known: true, want: StatusKilled, code: -1},
		"memory by the agent":      {exit: agentproto.Exit{Signal: 9, OOMKnown: true, OOMKills: 1}, want: StatusOutOfMemory, code: -1},
		"the agent knows better":   {exit: agentproto.Exit{Signal: 9, OOMKnown: true}, kills: 1, known: true, want: StatusKilled, code: -1},
		"an agent that knows none": {exit: agentproto.Exit{Signal: 9, OOMKills: 1}, known: true, want: StatusKilled, code: -1},
		"disk":                     {exit: agentproto.Exit{Signal: 9, Reason: agentproto.KilledDiskLimit, OOMKnown: true, OOMKills: 1}, want: StatusKilled, code: -1, reason: "remove files", hint: HintDisk},
		"killed":                   {exit: agentproto.Exit{Signal: 15}, known: true, want: StatusKilled, code: -1},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeMachine{known: c.known}
			s := &Sandbox{machine: m, net: sandboxNetwork{Network: gateway.NewNetwork(nil, m)}}
			r := &run{sandbox: s, out: newCapture(9, nil), err: newCapture(9, nil), exit: c.exit, ooms: watchOOM(context.Background(), m)}
			m.kills += c.kills
			res, err := r.result(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != c.want {
				t.Errorf("status %s, want %s", res.Status, c.want)
			}
			if res.ExitCode != c.code {
				t.Errorf("exit code %d, want %d", res.ExitCode, c.code)
			}
			if c.exit.OutCut != res.StdoutTruncated {
				t.Errorf("truncated %v", res.StdoutTruncated)
			}
			if c.hint != "" && (len(res.Hints) != 1 || res.Hints[0].Kind != c.hint) || !strings.Contains(res.Reason, c.reason) {
				t.Errorf("hints %v, reason %q, want one of %s, %q", res.Hints, res.Reason, c.hint, c.reason)
			}
			encoded, err := json.Marshal(res)
			if err != nil || strings.Contains(string(encoded), `"exit_code"`) != (c.code >= 0) {
				t.Errorf("%s, %v: an exit code that was not observed is absent, want no error, strings.Contains(string(encoded), `\"exit_code\"`) = %v", encoded, err, c.code >= 0)
			}
		})
	}
}
