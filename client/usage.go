package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// An Amount is what the sandboxes of a project have used.
type Amount struct {
	CPU            time.Duration
	Sent, Received int64         // bytes over their networks
	Runs           int64         // programs and cells that have ended
	Lived          time.Duration // how long there were sandboxes, all of them together
}

// HourUsage is what a project has used in the hour that begins at Hour.
type HourUsage struct {
	Hour time.Time
	Amount
}

// A ProjectUsage is what a project has used, by the hours of UTC.
type ProjectUsage struct {
	// From is when the first hour begins, and To when the last one ends.
	From, To time.Time
	Hours    []HourUsage // in their order, without those in which nothing was used
	Total    Amount      // of these hours
}

// Usage tells what the key's project has used in the hours of a time of at most 31 days. A zero to is now, and a zero from a day before to. It fails with
// llmsandbox.ErrInvalid for another time, and with llmsandbox.ErrUnsupported where the server keeps no usage.
func (c *Client) Usage(ctx context.Context, from, to time.Time) (ProjectUsage, error) {
	query := url.Values{}
	for name, at := range map[string]time.Time{"from": from, "to": to} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	var u apitypes.ProjectUsage
	if err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/usage", query: query}, &u); err != nil {
		return ProjectUsage{}, fmt.Errorf("tell what the project has used: %w", err)
	}
	out := ProjectUsage{From: u.From, To: u.To, Total: amount(u.Total)}
	for _, h := range u.Hours {
		out.Hours = append(out.Hours, HourUsage{h.Hour, amount(h.Amount)})
	}
	return out, nil
}

func amount(a apitypes.Amount) Amount {
	return Amount{CPU: duration(a.CPU), Sent: a.Sent, Received: a.Received, Runs: a.Runs, Lived: duration(a.Lived)}
}
