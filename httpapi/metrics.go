package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/llmsandbox/llmsandbox"
)

// metrics are what /metrics tells: of the server as a whole, and of no project.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	underWay prometheus.Gauge
	programs *prometheus.CounterVec
	tools    *prometheus.CounterVec
	toolTime *prometheus.HistogramVec
}

// buckets are in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "llmsandbox_http_requests_total", Help: "Requests that came to an operation, by its id and the status of the answer.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "llmsandbox_http_request_seconds", Help: "How long requests took to answer, the programs that they run included.",
			Buckets: buckets,
		}, []string{"operation"}),
		underWay: prometheus.NewGauge(prometheus.GaugeOpts{Name: "llmsandbox_http_requests", Help: "Requests that are being answered."}),
		programs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "llmsandbox_programs_total", Help: "Programs that have ended, by the status of their result.",
		}, []string{"status"}),
		tools: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "llmsandbox_mcp_calls_total", Help: "Calls of tools over MCP, by the tool and what became of them, as in the audit log.",
		}, []string{"tool", "outcome"}),
		toolTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "llmsandbox_mcp_call_seconds", Help: "How long calls of tools over MCP took, the programs that they run included.", Buckets: buckets,
		}, []string{"tool"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.underWay, m.programs, m.tools, m.toolTime)
	return m
}

// count counts a request while next answers it.
func (m *metrics) count(ctx huma.Context, next func(huma.Context)) {
	start, operation := time.Now(), ctx.Operation().OperationID
	m.underWay.Inc()
	defer func() {
		m.underWay.Dec()
		m.seconds.WithLabelValues(operation).Observe(time.Since(start).Seconds())
		m.requests.WithLabelValues(operation, strconv.Itoa(ctx.Status())).Inc()
	}()
	next(ctx)
}

// ended counts a program.
func (m *metrics) ended(status llmsandbox.Status) { m.programs.WithLabelValues(string(status)).Inc() }

// serve answers as Prometheus wants it.
func (m *metrics) serve(context.Context, *struct{}) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
	}}, nil
}
