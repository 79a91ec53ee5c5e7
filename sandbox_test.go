package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// endedMachine is one that has ended in some manner, once done is closed.
type endedMachine struct {
	fakeMachine
	done chan struct{}
	end  backend.End
}

func (m *endedMachine) Done() <-chan struct{} { return m.done }
func (m *endedMachine) End() backend.End      { return m.end }

func TestEndIsToldWithItsReason(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for _, c := range []struct {
		name string
		idle time.Duration
		end  backend.End
		want string
	}{
		{"the backend knows", 0, backend.End{Reason: "the pod was evicted"}, "has ended (the pod was evicted)"},
		{"it may have been idle", 10 * time.Minute, backend.End{}, "has ended (its lifetime is over, it was idle for 10m0s, or it was ended from outside)"},
		{"the backend knows nothing", 0, backend.End{}, "has ended (its lifetime is over, or it was ended from outside)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Sandbox{machine: &endedMachine{fakeMachine: fakeMachine{idle: c.idle}, done: done, end: c.end}}
			err := s.alive()
			if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			lost := s.explain(t.Context(), agentproto.ErrStreamLost)
			if !errors.Is(lost, ErrLost) || !strings.Contains(lost.Error(), c.want) {
				t.Errorf("a run that was lost: %v, want %q", lost, c.want)
			}
		})
	}
}

// A sandbox whose end is not known yet when its stream breaks is called again: that tells.
func TestLossIsToldWithWhatTheNextCallSays(t *testing.T) {
	s := &Sandbox{machine: &endedMachine{done: make(chan struct{})}}
	why := errors.New("the container was killed for memory")
	s.link.dial = func(context.Context) (io.ReadWriteCloser, error) { return nil, why }
	err := s.explain(t.Context(), agentproto.ErrStreamLost)
	if !errors.Is(err, ErrLost) || !errors.Is(err, why) {
		t.Errorf("error %v, want ErrLost and %q", err, why)
	}
}

// What was lost with a sandbox that was killed for memory ran out of memory; its output may
// be cut short, and is told to be.
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
		{"its supervisor too", false, false, &unobservedError{agentproto.Exit{OOMKnown: true, OOMKills: 2}}, StatusOutOfMemory},
		{"only its supervisor", false, false, &unobservedError{agentproto.Exit{OOMKnown: true}}, StatusLost},
		{"its supervisor, uncounted", false, false, &unobservedError{}, StatusLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &endedMachine{done: make(chan struct{}), end: backend.End{KilledForMemory: c.memory}}
			if c.ended {
				close(m.done)
			}
			r := &run{sandbox: &Sandbox{machine: m, limits: Limits{Memory: 64 << 20}}, out: newCapture(9, nil), err: newCapture(9, nil)}
			res, err := r.result(t.Context(), c.err)
			if res.Status != c.want || (err == nil) != (c.want == StatusOutOfMemory) || res.ExitCode != nil {
				t.Errorf("status %v, exit code %v, error %v, want %v", res.Status, res.ExitCode, err, c.want)
			}
			if c.want == StatusOutOfMemory && !strings.Contains(res.Reason, "64 MiB") {
				t.Errorf("%q does not tell the limit", res.Reason)
			}
		})
	}
}

var errBroken = fmt.Errorf("the stream broke: %w", ErrLost)

// A machine is closed with a call that asks its agent to end, also when it is wrapped. Without
// a connection there is no agent that acknowledges.
func TestCloseOffersToEndTheAgent(t *testing.T) {
	m := &closingMachine{}
	s := &Sandbox{machine: struct{ backend.Machine }{m}}
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
