package llmsandbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
)

// endedMachine is one that has ended in some manner, once done is closed.
type endedMachine struct {
	fakeMachine
	done chan struct{}
	end  backend.End
}

func (m *endedMachine) Done() <-chan struct{} { return m.done }
func (m *endedMachine) End() backend.End      { return m.end }

// What was lost with a sandbox that was killed for memory ran out of memory; its output may
// be cut short, and says so.
func TestLossToMemory(t *testing.T) {
	for _, c := range []struct {
		name   string
		memory bool
		ended  bool
		err    error
		want   Status
	}{
		{"killed for memory", true, true, errBroken, StatusOutOfMemory},
		{"ended otherwise", false, true, errBroken, StatusLost},
		{"not ended", true, false, errBroken, StatusLost},
		{"not lost", true, true, errors.New("no such program"), StatusSetupFailed},
		{"its subreaper too", false, false, &agentlink.UnobservedError{Exit: agentproto.Exit{OOMKnown: true, OOMKills: 2}}, StatusOutOfMemory},
		{"only its subreaper", false, false, &agentlink.UnobservedError{Exit: agentproto.Exit{OOMKnown: true}}, StatusLost},
		{"its subreaper, uncounted", false, false, &agentlink.UnobservedError{}, StatusLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &endedMachine{done: make(chan struct{}), end: backend.End{KilledForMemory: c.memory}}
			if c.ended {
				close(m.done)
			}
			r := &run{sandbox: &Sandbox{machine: m, limits: Limits{Memory: 64 << 20}, net: sandboxNetwork{Network: gateway.NewNetwork(nil, m)}}, out: newCapture(9, nil), err: newCapture(9, nil)}
			res, err := r.result(t.Context(), c.err)
			if res.Status != c.want || (err == nil) != (c.want == StatusOutOfMemory) || res.ExitCode != -1 {
				t.Errorf("status %v, exit code %v, error %v, want %v", res.Status, res.ExitCode, err, c.want)
			}
			if c.want == StatusOutOfMemory && !strings.Contains(res.Reason, "64 MiB") {
				t.Errorf("%q does not tell the limit, want want != StatusOutOfMemory or Reason containing \"64 MiB\"", res.Reason)
			}
		})
	}
}

var errBroken = fmt.Errorf("the stream broke: %w", ErrLost)

// A machine is closed with a call that asks its agent to end, also when it is wrapped. Without
// a connection there is no agent that acknowledges.
func TestCloseOffersToEndTheAgent(t *testing.T) {
	m := &closingMachine{}
	machine := struct{ backend.Machine }{m}
	s := &Sandbox{machine: machine, link: agentlink.New(machine, nil), net: sandboxNetwork{Network: gateway.NewNetwork(nil, machine)}}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if m.endAgent == nil || m.endAgent() {
		t.Errorf("the machine got a call: %t, want one that reports no acknowledgement", m.endAgent != nil)
	}
}

type closingMachine struct {
	fakeMachine
	endAgent func() bool
}

func (m *closingMachine) Close(endAgent func() bool) error {
	m.endAgent = endAgent
	return nil
}
