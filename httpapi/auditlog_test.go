package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// An auditLog is one in memory.
type auditLog []AuditEvent

func (l auditLog) read(_ context.Context, q database.AuditQuery) (found []AuditEvent, err error) {
	for _, r := range slices.Backward(l) {
		if r.ProjectID == q.ProjectID && (q.Before == 0 || r.Number < q.Before) && (q.Operation == "" || r.Operation == q.Operation) && len(found) < q.Limit {
			found = append(found, r)
		}
	}
	return found, nil
}

// TestAuditLog: a project's entries come page by page, the latest first, to keys that may read them, and nothing tells of another project's.
func TestAuditLog(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var log auditLog
	for i := range 9 {
		project := string("ab"[i%2])
		log = append(log, AuditEvent{
			Number: int64(1000 + i), Time: start.Add(time.Duration(i) * time.Second), ProjectID: project, KeyID: "id", KeyName: "name of " + project, Operation: fmt.Sprint("op-", i), Sandbox: "sb-1", Outcome: "ok", Detail: "d",
		})
	}
	var asked database.AuditQuery
	c := serve(t, Config{AuditLog: func(ctx context.Context, q database.AuditQuery) ([]AuditEvent, error) {
		asked = q
		return log.read(ctx, q)
	}}).as(keyAAudit)
	var got apitypes.AuditEntries
	var pages []string
	for query := "?limit=2"; ; query = "?limit=2&after=" + got.Next {
		got = apitypes.AuditEntries{}
		res, text := c.do(http.MethodGet, "/v1/audit"+query, "")
		if strings.Contains(text, "name of b") || strings.Contains(text, "100") {
			t.Errorf("%d %s, want nothing of another project, and no number", res.StatusCode, text)
		}
		c.want(http.StatusOK, &got, http.MethodGet, "/v1/audit"+query, "")
		var page []string
		for _, e := range got.Entries {
			page = append(page, e.Operation)
		}
		if pages = append(pages, strings.Join(page, " ")); got.Next == "" {
			break
		}
	}
	if want := []string{"op-8 op-6", "op-4 op-2", "op-0"}; !slices.Equal(pages, want) {
		t.Errorf("pages %q, want %q", pages, want)
	}
	if want := (apitypes.AuditEntry{Time: start, KeyID: "id", KeyName: "name of a", Operation: "op-0", Sandbox: "sb-1", Outcome: "ok", Detail: "d"}); got.Entries[0] != want {
		t.Errorf("entry %+v, want %+v", got.Entries[0], want)
	}
	c.want(http.StatusOK, &got, http.MethodGet, "/v1/audit?key=k&sandbox=sb-1&operation=o&outcome=x&since=2026-03-04T05:06:07Z&until=2026-03-04T07:06:07%2B01:00", "")
	if want := (database.AuditQuery{ProjectID: "a", Key: "k", Operation: "o", Sandbox: "sb-1", Outcome: "x", Since: start, Until: start.Add(time.Hour), Limit: 101}); !asked.Since.Equal(want.Since) || !asked.Until.Equal(want.Until) ||
		asked.Key != want.Key || asked.Operation != want.Operation || asked.Sandbox != want.Sandbox || asked.Outcome != want.Outcome || asked.Limit != want.Limit || asked.ProjectID != want.ProjectID {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	c.want(http.StatusOK, &got, http.MethodGet, "/v1/audit?limit=2", "")
	other, err := c.server.sealer.seal(auditCursor+"b", time.Now().Add(time.Hour), 1005)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"?after=" + got.Next[1:]: "begin again", "?after=" + other: "begin again", "?after=" + url.QueryEscape("1004"): "begin again", "?limit=201": "limit", "?limit=0": "limit", "?since=now": "since",
		"?key=" + strings.Repeat("x", 65): "key", "?project=b": "project",
	} {
		if res, text := c.do(http.MethodGet, "/v1/audit"+query, ""); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want 422 and %q", query, res.StatusCode, text, want)
		}
	}
	for key, want := range map[string]int{keyA: 403, keyAReads: 403, keyB: 403, "": 401} {
		c.as(key).want(want, nil, http.MethodGet, "/v1/audit", "")
	}
	c.want(http.StatusForbidden, nil, http.MethodGet, "/v1/sandboxes", "")
	c.want(http.StatusForbidden, nil, http.MethodPost, "/v1/sandboxes", "{}")
	written := make(chan []AuditEvent, 1) // what is done is found at once, however long it takes to write it
	written <- nil
	c = serve(t, Config{Audit: func(_ context.Context, events []AuditEvent) error {
		all := <-written
		for _, e := range events {
			e.Number = int64(len(all) + 1)
			all = append(all, e)
		}
		written <- all
		return nil
	}, AuditLog: func(ctx context.Context, q database.AuditQuery) ([]AuditEvent, error) {
		all := <-written
		defer func() { written <- all }()
		return auditLog(all).read(ctx, q)
	}})
	for i := range 100 {
		c.want(http.StatusNotFound, nil, http.MethodDelete, fmt.Sprint("/v1/sandboxes/sb-", i), "")
		c.as(keyAAudit).want(http.StatusOK, &got, http.MethodGet, "/v1/audit?limit=1", "")
		if len(got.Entries) != 1 || got.Entries[0].Sandbox != fmt.Sprint("sb-", i) {
			t.Fatalf("after the removal of sb-%d: %+v, want it", i, got.Entries)
		}
	}

	defer func(d time.Duration) { auditTime = d }(auditTime)
	auditTime = time.Millisecond
	slow := serve(t, Config{AuditLog: func(ctx context.Context, _ database.AuditQuery) ([]AuditEvent, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}).as(keyAAudit)
	if res, text := slow.do(http.MethodGet, "/v1/audit", ""); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "shorter") {
		t.Errorf("a search without end: %d %s, want 422 and what to do", res.StatusCode, text)
	}
	serve(t, Config{}).as(keyAAudit).want(http.StatusUnprocessableEntity, nil, http.MethodGet, "/v1/audit", "")
}
