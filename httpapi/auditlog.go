package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// auditTime is how long a search may take: a log can be long, and what is looked for rare.
var auditTime = 10 * time.Second // but in tests

// auditCursor is what tokens that continue a list are sealed for. The numbers in them count the events of all projects, so they are sealed.
const auditCursor = "audit cursor "

// auditCursorTime is how long such a token is good.
const auditCursorTime = 24 * time.Hour

type auditSearch struct {
	Since     time.Time `query:"since" doc:"Only what was done at this time or later" example:"2026-08-01T00:00:00Z"`
	Until     time.Time `query:"until" doc:"Only what was done before"`
	Key       string    `query:"key" maxLength:"64" doc:"The id or the name of the key that it was done with"`
	Sandbox   string    `query:"sandbox" maxLength:"40" doc:"A sandbox's id"`
	Operation string    `query:"operation" maxLength:"64" doc:"What was done" example:"create-sandbox"`
	Outcome   string    `query:"outcome" maxLength:"64" doc:"What became of it" example:"ok"`
	After     string    `query:"after" maxLength:"128" doc:"What next was in the answer before"`
	Limit     int       `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"At most so many"`
}

func (s *Server) auditRoutes() {
	type answer struct{ Body apitypes.AuditEntries }
	register(s, operation{
		id: "list-audit", method: http.MethodGet, path: "/v1/audit", tag: "Server", scope: "audit", summary: "List what was done with the project's sandboxes",
		doc: "The latest first. A key needs the scope audit.",
	}, func(ctx context.Context, in *auditSearch) (*answer, error) {
		if s.cfg.AuditLog == nil {
			return nil, fmt.Errorf("the audit log: %w: this server has none that can be read", llmsandbox.ErrUnsupported)
		}
		q := database.AuditQuery{
			ProjectID: s.caller(ctx).Project, Key: in.Key, Operation: in.Operation, Sandbox: in.Sandbox, Outcome: in.Outcome, Since: in.Since, Until: in.Until, Limit: in.Limit + 1,
		}
		if q.ProjectID == "" {
			return nil, errors.New("read the audit log: the caller has no project") // which would be all of them
		}
		if in.After != "" {
			if _, ok := s.sealer.unseal(auditCursor+q.ProjectID, in.After, &q.Before); !ok {
				return nil, newProblem(http.StatusUnprocessableEntity, "invalid", "after is not what this server has answered as next in the last day: begin again without it")
			}
		}
		searching, cancel := context.WithTimeout(ctx, auditTime)
		defer cancel()
		s.auditor.flush(searching) // who has just done something finds it
		found, err := s.cfg.AuditLog(searching, q)
		switch {
		case errors.Is(searching.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
			return nil, newProblem(http.StatusUnprocessableEntity, "timeout", "the search took too long: ask for a shorter time, or name a sandbox")
		case err != nil:
			return nil, err
		}
		out := &answer{apitypes.AuditEntries{Entries: make([]apitypes.AuditEntry, 0, len(found))}}
		for i, r := range found {
			if i == in.Limit {
				if out.Body.Next, err = s.sealer.seal(auditCursor+q.ProjectID, time.Now().Add(auditCursorTime), found[i-1].Number); err != nil {
					return nil, err
				}
				break
			}
			out.Body.Entries = append(out.Body.Entries, apitypes.AuditEntry{
				Time: r.Time, KeyID: r.KeyID, KeyName: r.KeyName, Operation: r.Operation, Sandbox: r.Sandbox, Outcome: r.Outcome, Detail: r.Detail,
			})
		}
		return out, nil
	})
}
