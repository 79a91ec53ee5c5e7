package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// mostUsage is how much time an answer tells of at most, and defaultUsage where the request does not say.
const (
	mostUsage    = 31 * 24 * time.Hour
	defaultUsage = 24 * time.Hour
)

type usageSearch struct {
	From time.Time `query:"from" doc:"From this hour on; a day before to where it is left out" example:"2026-08-01T00:00:00Z"`
	To   time.Time `query:"to" doc:"Only hours that begin before; now where it is left out. At most 31 days after from"`
}

func (s *Server) usageRoutes() {
	answer(s, operation{
		id: "get-project-usage", method: http.MethodGet, path: "/v1/usage", tag: "Server", summary: "Tell what the project has used, by the hour",
		doc: "What is counted counts for the hour in which it is seen. Hours and days are those of UTC.",
	}, func(ctx context.Context, in *usageSearch) (out apitypes.ProjectUsage, err error) {
		to := in.To
		if to.IsZero() {
			to = time.Now()
		}
		from := cmp.Or(in.From, to.Add(-defaultUsage)).UTC().Truncate(time.Hour)
		to = to.Add(time.Hour - 1).UTC().Truncate(time.Hour)
		if !from.Before(to) || to.Sub(from) > mostUsage+time.Hour {
			return out, fmt.Errorf("from and to: %w: to must be after from, and at most 31 days", llmsandbox.ErrInvalid)
		}
		hours, err := s.service.Usage(ctx, s.caller(ctx).Project, from, to)
		if err != nil {
			return out, err
		}
		var total metering.Amount
		out = apitypes.ProjectUsage{From: from, To: to, Hours: apitypes.All(hours, func(h metering.Hour) apitypes.HourUsage {
			total = total.Plus(h.Amount)
			return apitypes.HourUsage{Hour: h.Begins, Amount: amount(h.Amount)}
		})}
		out.Total = amount(total)
		return out, nil
	})
}

func amount(a metering.Amount) apitypes.Amount {
	return apitypes.Amount{CPU: a.CPU.Seconds(), Sent: a.Sent, Received: a.Received, Runs: a.Runs, Lived: a.Lived.Seconds()}
}

// countUsage tells in the metrics what all projects have used.
func (s *Server) countUsage() {
	for _, c := range []struct {
		name, help string
		labels     prometheus.Labels
		of         func(metering.Amount) float64
	}{
		{"llmsandbox_sandbox_cpu_seconds_total", "CPU time of sandboxes.", nil, func(a metering.Amount) float64 { return a.CPU.Seconds() }},
		{"llmsandbox_sandbox_seconds_total", "How long there were sandboxes, all of them together.", nil, func(a metering.Amount) float64 { return a.Lived.Seconds() }},
		{"llmsandbox_sandbox_network_bytes_total", "What went over the networks of sandboxes.", prometheus.Labels{"direction": "sent"}, func(a metering.Amount) float64 { return float64(a.Sent) }},
		{"llmsandbox_sandbox_network_bytes_total", "What went over the networks of sandboxes.", prometheus.Labels{"direction": "received"}, func(a metering.Amount) float64 { return float64(a.Received) }},
	} {
		s.metrics.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help, ConstLabels: c.labels}, func() float64 {
			return c.of(s.service.Used())
		}))
	}
}
