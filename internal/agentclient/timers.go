package agentclient

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TimerArgs are an agent's arguments about when it ends by itself.
func TimerArgs(deadline time.Time, idle time.Duration) []string {
	var args []string
	if !deadline.IsZero() {
		args = append(args, "--deadline", strconv.FormatInt(deadline.UnixMilli(), 10))
	}
	if idle > 0 {
		args = append(args, "--idle", strconv.FormatInt(max(1, idle.Milliseconds()), 10))
	}
	return args
}

// A Deadline is when the agent ends by itself.
type Deadline struct {
	At     time.Time // zero: never; while paused, when it was before
	Paused bool      // the agent's timers are
}

// Deadline asks for it.
func (c *Client) Deadline(ctx context.Context) (Deadline, error) {
	return c.timers(ctx, agentproto.MethodDeadline, &agentproto.DeadlineRequest{})
}

// SetDeadline has the agent end at that time of its wall clock; the zero time is never.
func (c *Client) SetDeadline(ctx context.Context, at time.Time) error {
	req := agentproto.DeadlineRequest{Set: true}
	if !at.IsZero() {
		req.Millis = uint64(max(1, at.UnixMilli()))
	}
	_, err := c.timers(ctx, agentproto.MethodDeadline, &req)
	return err
}

// MoveDeadline is SetDeadline for who keeps a record of it, where others look. Several may
// do so at once: when the last of them is done the record is what the agent has.
func (c *Client) MoveDeadline(ctx context.Context, at time.Time, record func(context.Context, time.Time) error) error {
	if err := c.SetDeadline(ctx, at); err != nil {
		if !at.IsZero() && !time.Now().Before(at) && errors.Is(err, agentproto.ErrStreamLost) {
			return nil // it has ended by that
		}
		return err
	}
	for now := at; ; {
		if err := record(ctx, now); err != nil {
			return err
		}
		d, err := c.Deadline(ctx)
		if errors.Is(err, agentproto.ErrStreamLost) && !now.IsZero() && !time.Now().Before(now) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.At.UnixMilli() == now.UnixMilli() {
			return nil
		}
		now = d.At
	}
}

// PauseTimers stops the clock of all that the agent does when a time is over: its deadline,
// its grace time without a connection, processes' timeouts, the idle timeout. It is for who
// freezes the sandbox: until ResumeTimers the agent lives without anybody.
func (c *Client) PauseTimers(ctx context.Context) (Deadline, error) {
	return c.timers(ctx, agentproto.MethodPauseTimers, &agentproto.Empty{})
}

// ResumeTimers gives each timer what was left of it, and returns the deadline, which has
// moved by that: a caller that keeps a record of it writes that one.
func (c *Client) ResumeTimers(ctx context.Context) (Deadline, error) {
	return c.timers(ctx, agentproto.MethodResumeTimers, &agentproto.Empty{})
}

func (c *Client) timers(ctx context.Context, m agentproto.Method, req agentproto.Message) (Deadline, error) {
	var reply agentproto.Deadline
	if err := c.request(ctx, m, req, &reply); err != nil {
		return Deadline{}, err
	}
	d := Deadline{Paused: reply.Paused}
	if reply.Millis > 0 {
		d.At = time.UnixMilli(int64(reply.Millis))
	}
	return d, nil
}

// Busy has the sandbox not be idle until done is called, while a process of
// [agentproto.RestAlways] works. A stream that is lost makes it idle, and tells so to others.
func (p *Process) Busy() (done func()) {
	call, err := p.client.conn.Open(agentproto.MethodBusy, &agentproto.Empty{})
	if err != nil {
		return func() {}
	}
	return call.Cancel
}
