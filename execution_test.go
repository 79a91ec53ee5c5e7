package llmsandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/language"
)

// enteredMachine is one whose programs need an environment; its agent notes what it is
// asked to start.
type enteredMachine struct {
	fakeMachine
	started [][]string
}

func (m *enteredMachine) Guest() backend.Guest {
	return backend.Guest{Workdir: "/w", Command: []string{"enter", "env"}}
}

func (m *enteredMachine) Done() <-chan struct{} { return nil }

func (m *enteredMachine) Dial(context.Context) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	go func() { _ = agentproto.Server(far, agentproto.Hello{}, 0, m) }()
	return near, nil
}

func (m *enteredMachine) ServeCall(c *agentproto.Call) {
	var req agentproto.StartRequest
	if err := c.Request(&req); err != nil {
		_ = c.Fail(agentproto.CodeBadRequest, err.Error())
		return
	}
	m.started = append(m.started, req.Argv)
	if slices.Contains(req.Argv, "nowhere") {
		_ = c.Fail(agentproto.CodeNotFound, "program not found")
		return
	}
	_ = c.Send(&agentproto.Started{ID: 1, PID: 2})
	_ = c.End(&agentproto.Exit{Known: true})
	<-c.Done()
}

// TestCommandPrefix: every step of a run, and a plain command, go through the command
// that enters the environment, and its absence is not taken for the program's.
func TestCommandPrefix(t *testing.T) {
	m := &enteredMachine{}
	s := &Sandbox{machine: m, link: link{dial: m.Dial}}
	defer s.link.close()
	r, err := s.newExecution(execution{timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	plan := language.Plan{Steps: []language.Step{{Argv: []string{"compile", "x"}, Compile: true}, {Argv: []string{"./x"}}}}
	if err := r.execute(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"enter", "env", "compile", "x"}, {"enter", "env", "./x"}, {"enter", "env", "echo", "hi"}}
	if _, err := s.Exec(t.Context(), []string{"echo", "hi"}, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(m.started, want, slices.Equal) {
		t.Errorf("started %q, want %q", m.started, want)
	}
	_, err = s.Exec(t.Context(), []string{"nowhere"}, nil)
	var missing *missingProgramError
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &missing) || !strings.Contains(err.Error(), `["enter" "env"]`) {
		t.Errorf("%v", err)
	}
}
