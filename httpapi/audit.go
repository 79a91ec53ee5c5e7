package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
)

// NetworkAttempt is the operation of events that are a program's attempts to reach something. There is one for each that the
// results of programs and cells have.
const NetworkAttempt = "network-attempt"

// ProcessEnd is the operation of events that are the end of a program that went on without its client.
const ProcessEnd = "process-end"

// ToolPrefix begins the operations of events that are calls of tools over MCP.
const ToolPrefix = "mcp/"

// A trail is what is found out of an event while its request is answered.
type trail struct {
	sandbox, outcome string
	detail           string
	network          []llmsandbox.NetworkAttempt
	dropped          int // of these
}

// attempts are the events of a request's attempts, which have what it has besides.
func (t *trail) attempts(request AuditEvent) (events []AuditEvent) {
	request.Status, request.Operation = 0, NetworkAttempt
	for _, a := range t.network {
		e := request
		e.Time, e.Outcome = a.Time, "ok"
		if !a.Allowed {
			e.Outcome = cmp.Or(a.Refused, "refused")
		}
		e.Detail = fmt.Sprintf("%s %s:%d, %d bytes sent, %d received", cmp.Or(a.Protocol, "unknown"), a.Name, a.Port, a.Sent, a.Received)
		events = append(events, e)
	}
	if t.dropped > 0 {
		request.Outcome, request.Detail = "not kept", fmt.Sprintf("%d more attempts", t.dropped)
		events = append(events, request)
	}
	return events
}

// by is an event of which that caller is the author.
func by(c Caller, e AuditEvent) AuditEvent {
	e.KeyID, e.KeyName, e.ProjectID = c.KeyID, c.KeyName, c.Project
	return e
}

type trailKey struct{}

// trailOf is the trail of a request; where there is none, one that nobody reads.
func trailOf(ctx context.Context) *trail {
	if t, ok := ctx.Value(trailKey{}).(*trail); ok {
		return t
	}
	return &trail{}
}

// An auditor hands events on, in their order and apart from the requests, which do not wait for it.
type auditor struct {
	write  func(context.Context, []AuditEvent) error
	log    *slog.Logger
	events chan queuedEvent
	quit   chan struct{}
	once   sync.Once
	ended  chan struct{}
}

// A queuedEvent waits to be handed on; or it is none, and written is closed once those before it have been.
type queuedEvent struct {
	AuditEvent

	written chan<- struct{}
}

// Events that wait to be handed on, after which requests wait too; and how many are handed on together.
const (
	auditQueue = 1024
	auditBatch = 64
)

// newAuditor returns nil where nobody wants the events.
func newAuditor(write func(context.Context, []AuditEvent) error, log *slog.Logger) *auditor {
	if write == nil {
		return nil
	}
	a := &auditor{write: write, log: log, events: make(chan queuedEvent, auditQueue), quit: make(chan struct{}), ended: make(chan struct{})}
	go a.run()
	return a
}

func (a *auditor) run() {
	defer close(a.ended)
	for {
		select {
		case e := <-a.events:
			a.hand(e)
		case <-a.quit:
			for {
				select {
				case e := <-a.events:
					a.hand(e)
				default:
					return
				}
			}
		}
	}
}

// hand hands on an event with those that wait behind it.
func (a *auditor) hand(e queuedEvent) {
	var batch []AuditEvent
	for more := true; more; {
		if e.written != nil {
			defer close(e.written)
		} else {
			batch = append(batch, e.AuditEvent)
		}
		if more = len(batch) < auditBatch; more {
			select {
			case e = <-a.events:
			default:
				more = false
			}
		}
	}
	if len(batch) == 0 {
		return
	}
	last := false
	for wait := auditRetry; ; wait = min(2*wait, auditRetryMost) {
		err := a.write(context.Background(), batch)
		if err == nil {
			return
		}
		a.log.Error("the audit log could not be written, which is tried again until the server ends", "events", len(batch), "error", err)
		select {
		case <-a.quit: // once more, at once
			if last {
				a.log.Error("events of the audit log are lost", "events", len(batch))
				return
			}
			last = true
		case <-time.After(wait):
		}
	}
}

// flush returns when the events that were noted before have been handed on, or with ctx.
func (a *auditor) flush(ctx context.Context) {
	if a == nil {
		return
	}
	written := make(chan struct{})
	select {
	case a.events <- queuedEvent{written: written}:
	case <-a.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-written:
	case <-a.ended:
	case <-ctx.Done():
	}
}

// How long a failed write waits for the next try.
const (
	auditRetry     = time.Second
	auditRetryMost = time.Minute
)

// close returns when all events are handed on.
func (a *auditor) close() {
	if a == nil {
		return
	}
	a.once.Do(func() { close(a.quit) })
	<-a.ended
}

// audit notes operations that make, use or remove something, also where they are refused.
func (s *Server) audit(ctx huma.Context, next func(huma.Context)) {
	if s.auditor == nil || ctx.Operation().Metadata[audited] != true {
		next(ctx)
		return
	}
	t, start := &trail{sandbox: sandboxOf(ctx)}, time.Now()
	ctx = huma.WithValue(ctx, trailKey{}, t)
	defer func() {
		e := by(s.caller(ctx.Context()), AuditEvent{Time: start, Operation: ctx.Operation().OperationID, Sandbox: t.sandbox, Status: ctx.Status(), Outcome: t.outcome, Detail: t.detail})
		switch {
		case e.Outcome != "":
		case e.Status >= 400:
			e.Outcome = "invalid" // it did not come to the handler
		default:
			e.Outcome = "ok"
		}
		s.note(append(t.attempts(e), e)...)
	}()
	next(ctx)
}

// note hands events to the auditor, if there is one.
func (s *Server) note(events ...AuditEvent) {
	if s.auditor == nil {
		return
	}
	for _, e := range events {
		select {
		case s.auditor.events <- queuedEvent{AuditEvent: e}:
		case <-s.auditor.ended:
			s.cfg.Log.Error("the audit log is closed: an event is lost", "operation", e.Operation, "sandbox", e.Sandbox)
		}
	}
}
