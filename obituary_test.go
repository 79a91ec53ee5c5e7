package llmsandbox

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// endedMachine is one that has ended, and may tell why.
type endedMachine struct {
	fakeMachine
	done chan struct{}
}

func (m *endedMachine) Done() <-chan struct{} { return m.done }

type tellingMachine struct {
	endedMachine
	words string
}

func (m *tellingMachine) Ended() string { return m.words }

func TestEndIsToldWithItsReason(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for _, c := range []struct {
		name    string
		machine backend.Machine
		want    string
	}{
		{"the backend knows", &tellingMachine{endedMachine{done: done}, "the pod was evicted"}, "has ended (the pod was evicted)"},
		{"the backend knows nothing", &tellingMachine{endedMachine{done: done}, ""}, "has ended (its lifetime is over, or somebody ended it)"},
		{"the backend cannot tell", &endedMachine{done: done}, "has ended (its lifetime is over, or somebody ended it)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Sandbox{machine: c.machine}
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
