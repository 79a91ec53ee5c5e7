//go:build linux

package guest_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// hang is how long nothing takes that does not wait for what never comes.
const hang = time.Minute

// ends waits for an agent that ends by itself.
func (a *testAgent) ends() agentproto.End {
	a.t.Helper()
	done := make(chan error, 1)
	go func() { done <- a.cmd.Wait() }()
	select {
	case <-done:
		return agentproto.End(a.cmd.ProcessState.ExitCode())
	case <-time.After(hang):
		a.t.Fatal("the agent does not end")
		return 0
	}
}

func (a *testAgent) wantEnd(want agentproto.End, notBefore time.Time) {
	a.t.Helper()
	if got := a.ends(); got != want {
		a.t.Errorf("it ended with %d (%s), want %d", got, got.Reason(time.Second), want)
	}
	if early := time.Until(notBefore); early > 0 {
		a.t.Errorf("it ended %v too early", early)
	}
}

func (a *testAgent) setDeadline(at time.Time) {
	a.t.Helper()
	if err := a.client.SetDeadline(a.t.Context(), at); err != nil {
		a.t.Fatal(err)
	}
	d, err := a.client.Deadline(a.t.Context())
	if want := at.Truncate(time.Millisecond); err != nil || !d.At.Equal(want) || d.Paused {
		a.t.Fatalf("%+v, %v; want %v", d, err, want)
	}
}

// TestDeadlineMoves: a deadline can be set where there was none, moved and cleared.
func TestDeadlineMoves(t *testing.T) {
	a := startAgent(t, modes()[0])
	a.setDeadline(time.Time{})
	first := time.Now().Add(3 * time.Second)
	a.setDeadline(first)
	a.setDeadline(time.Now().Add(time.Hour))
	a.setDeadline(first)
	a.setDeadline(time.Time{})
	at := first.Add(time.Second)
	a.setDeadline(at)
	a.wantEnd(agentproto.EndDeadline, at.Truncate(time.Millisecond))
}

// TestDeadlineOver: one in the past ends the agent.
func TestDeadlineOver(t *testing.T) {
	a := startAgent(t, modes()[0])
	if err := a.client.SetDeadline(t.Context(), time.Unix(1, 0)); err != nil && !errors.Is(err, agentproto.ErrStreamLost) {
		t.Fatal(err)
	}
	a.wantEnd(agentproto.EndDeadline, time.Time{})
}

func TestDeadlineNonsense(t *testing.T) {
	a := startAgent(t, modes()[0])
	err := a.client.SetDeadline(t.Context(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	var known *agentproto.Error
	if !errors.As(err, &known) || known.Code != agentproto.CodeBadRequest {
		t.Errorf("the year 10000: %v, want an error of type %T, Code = CodeBadRequest", err, known)
	}
}

// TestIdle: an agent ends when nothing has gone on for so long, also with clients connected.
func TestIdle(t *testing.T) {
	const idle = 3 * time.Second
	// Each returns when what it does has ended at the earliest.
	for name, do := range map[string]func(*testing.T, *testAgent) time.Time{
		"nothing": func(*testing.T, *testAgent) time.Time { return time.Time{} },
		"a process": func(t *testing.T, a *testAgent) time.Time {
			start := time.Now()
			if r := a.run(sh("sleep 4")); r.exit.Code != 0 || r.exit.Signal != 0 {
				t.Errorf("%+v, want Code = 0, Signal = 0", r)
			}
			return start.Add(4 * time.Second)
		},
		"a process without a client": func(t *testing.T, a *testAgent) time.Time {
			start := time.Now()
			p, err := a.client.Start(t.Context(), sh("sleep 4"))
			if err != nil {
				t.Fatal(err)
			}
			p.Detach()
			return start.Add(4 * time.Second)
		},
		"what a process left": func(t *testing.T, a *testAgent) time.Time {
			start := time.Now()
			req := sh("sleep 4 >&- 2>&- &")
			req.KeepChildren = true
			if r := a.run(req); r.exit.Code != 0 {
				t.Errorf("%+v, want Code = 0", r)
			}
			return start.Add(4 * time.Second)
		},
		"a call": func(t *testing.T, a *testAgent) time.Time {
			time.Sleep(time.Second)
			start := time.Now()
			if _, err := a.client.Processes(t.Context()); err != nil {
				t.Error(err)
			}
			return start
		},
		"one that is fed": func(t *testing.T, a *testAgent) time.Time {
			start := time.Now()
			req := sh("read -r line <&3; sleep 4; echo $line")
			req.Control, req.Rest = true, agentproto.RestUntilFed
			p, err := a.client.Start(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(p.Requests(), "fed\n"); err != nil {
				t.Fatal(err)
			}
			if r, err := collect(t.Context(), p); err != nil || r.out != "fed\n" {
				t.Errorf("%+v, %v, want no error, out = \"fed\\n\"", r, err)
			}
			return start.Add(4 * time.Second)
		},
		"one that has work": func(t *testing.T, a *testAgent) time.Time {
			req := sh("cat <&3")
			req.Control, req.Rest = true, agentproto.RestAlways
			p, err := a.client.Start(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			done := p.Busy()
			time.Sleep(4 * time.Second)
			defer done()
			return time.Now()
		},
		"those that wait": func(t *testing.T, a *testAgent) time.Time {
			for _, rest := range []agentproto.Rest{agentproto.RestUntilFed, agentproto.RestAlways} {
				req := sh("cat <&3")
				req.Control, req.Rest = true, rest
				if _, err := a.client.Start(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := a.client.Listen(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			return time.Time{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			a := startAgent(t, mode{name: "idle", args: []string{"--idle", "3000"}})
			a.wantEnd(agentproto.EndIdle, later(start, do(t, a)).Add(idle))
		})
	}
}

// TestPause: while the timers are paused none of them is over, and afterwards what was left
// of each is left of it.
func TestPause(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want agentproto.End
		set  func(*testing.T, *testAgent)
	}{
		"idle":  {args: []string{"--idle", "2000"}, want: agentproto.EndIdle},
		"alone": {args: []string{"--grace", "2"}, want: agentproto.EndAlone},
		"deadline": {want: agentproto.EndDeadline, set: func(t *testing.T, a *testAgent) {
			a.setDeadline(time.Now().Add(2 * time.Second))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, mode{name: name, args: c.args})
			if c.set != nil {
				c.set(t, a)
			}
			before, err := a.client.PauseTimers(t.Context())
			if err != nil || !before.Paused {
				t.Fatalf("%+v, %v, want no error, Paused true", before, err)
			}
			if _, err := a.client.PauseTimers(t.Context()); err != nil { // once more changes nothing
				t.Fatal(err)
			}
			if c.want == agentproto.EndAlone {
				if err := a.client.Close(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(4 * time.Second)
			resumer := a.client
			if c.want == agentproto.EndAlone {
				resumer = a.dial()
			}
			resumed := time.Now()
			after, err := resumer.ResumeTimers(t.Context())
			if err != nil || after.Paused || after.At.IsZero() != before.At.IsZero() {
				t.Fatalf("%+v, %v; before %+v, want no error, Paused false, after.At.IsZero() = before.At.IsZero()", after, err, before)
			}
			if moved := after.At.Sub(before.At); !before.At.IsZero() && moved < 4*time.Second {
				t.Errorf("the deadline moved by %v, want before.At.IsZero() = true or moved >= 4s", moved)
			}
			if c.want == agentproto.EndAlone {
				if err := resumer.Close(); err != nil {
					t.Fatal(err)
				}
				resumed = resumed.Add(2 * time.Second)
			}
			a.wantEnd(c.want, later(resumed, after.At))
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestPauseTimeout: a process's timeout is one of the timers.
func TestPauseTimeout(t *testing.T) {
	a := startAgent(t, modes()[0])
	if _, err := a.client.PauseTimers(t.Context()); err != nil {
		t.Fatal(err)
	}
	req := sh("sleep 600")
	req.TimeoutMillis = 500
	p, err := a.client.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	list, err := a.client.Processes(t.Context())
	if err != nil || len(list) != 1 || !list[0].Running {
		t.Fatalf("%+v, %v, want no error, len(list) = 1, Running true", list, err)
	}
	if _, err := a.client.ResumeTimers(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := collect(t.Context(), p)
	if err != nil || r.exit.Reason != agentproto.KilledTimeout {
		t.Errorf("%+v, %v, want no error, Reason = KilledTimeout", r, err)
	}
}
