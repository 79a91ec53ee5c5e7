package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A sink gets spans as they end.
type sink chan sdktrace.ReadOnlySpan

func (s sink) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		if span.Name() != "pool.create" && span.Name() != "pool.destroy" { // nobody waits for these
			s <- span
		}
	}
	return nil
}

func (s sink) Shutdown(context.Context) error { return nil }

// request returns the spans of a request, the last of which is its own.
func (s sink) request() (spans []sdktrace.ReadOnlySpan) {
	for len(spans) == 0 || spans[len(spans)-1].SpanKind() != trace.SpanKindServer {
		spans = append(spans, <-s)
	}
	return spans
}

// TestTrace: a request is a span of its client's trace, with those of what it waits for and runs below it; what has no sense in a header counts for nothing.
func TestTrace(t *testing.T) {
	spans := make(sink, 100)
	c := serve(t, Config{Tracers: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	const traceID, parentID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	path, sb := c.create(`{"language": "bash"}`)
	spans.request()
	for name, test := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		want               []string // name and name of the parent
	}{
		"run":            {http.MethodPost, "/v1/run", `{"language": "bash", "code": "true"}`, nil, 200, []string{"POST /v1/run <", "wait for a place < POST /v1/run", "take a sandbox < POST /v1/run", "pool.acquire < take a sandbox", "run < POST /v1/run"}},
		"stream":         {http.MethodPost, "/v1/run", `{"language": "bash", "code": "true"}`, []string{"Accept: text/event-stream"}, 200, []string{"run < POST /v1/run"}},
		"in a sandbox":   {http.MethodPost, path + "/run", `{"code": "true"}`, nil, 200, []string{"POST /v1/sandboxes/{id}/run <", "wait for a place < POST /v1/sandboxes/{id}/run", "take a sandbox < POST /v1/sandboxes/{id}/run", "run < POST /v1/sandboxes/{id}/run"}},
		"no sandbox":     {http.MethodPost, "/v1/sandboxes/sb-none/run", `{"code": "true"}`, nil, 404, []string{"take a sandbox < POST /v1/sandboxes/{id}/run"}},
		"invalid":        {http.MethodPost, "/v1/run", `{}`, nil, 422, []string{"POST /v1/run <"}},
		"needs no key":   {http.MethodGet, "/healthz", "", nil, 200, nil},
		"wrong trace":    {http.MethodGet, "/v1/sandboxes", "", []string{"traceparent: 00-" + strings.Repeat("0", 32) + "-" + parentID + "-01"}, 200, []string{"GET /v1/sandboxes"}},
		"no trace":       {http.MethodGet, "/v1/sandboxes", "", []string{"traceparent: " + strings.Repeat("x", 1000)}, 200, []string{"GET /v1/sandboxes"}},
		"not sampled":    {http.MethodGet, "/v1/sandboxes", "", []string{"traceparent: 00-" + traceID + "-" + parentID + "-00"}, 200, nil},
		"of another key": {http.MethodGet, "/v1/sandboxes", "", []string{"Authorization: Bearer x"}, 401, nil},
	} {
		known := "traceparent: 00-" + traceID + "-" + parentID + "-01"
		res, text := c.do(test.method, test.path, test.body, append([]string{known}, test.headers...)...)
		if res.StatusCode != test.status {
			t.Fatalf("%s: %d %s, want %d", name, res.StatusCode, text, test.status)
		}
		if test.want == nil { // any spans would be found with the next request, or at the end
			continue
		}
		got, names := spans.request(), map[string]string{parentID: ""}
		for _, s := range got {
			names[s.SpanContext().SpanID().String()] = s.Name()
		}
		var all []string
		for _, s := range got {
			above, ok := names[s.Parent().SpanID().String()]
			if ours := s.SpanContext().TraceID().String() == traceID; ours != ok {
				t.Errorf("%s: %s is of the trace %s, below %s", name, s.Name(), s.SpanContext().TraceID(), s.Parent().SpanID())
			} else if ours {
				all = append(all, strings.TrimSpace(s.Name()+" < "+above))
			} else {
				all = append(all, s.Name())
			}
		}
		for _, want := range test.want {
			if !strings.Contains("\n"+strings.Join(all, "\n")+"\n", "\n"+want+"\n") {
				t.Errorf("%s: %q, want %q", name, all, want)
			}
		}
		if name != "in a sandbox" {
			continue
		}
		for _, s := range got {
			said := map[string]string{}
			for _, a := range s.Attributes() {
				said[string(a.Key)] = a.Value.String()
			}
			if strings.HasPrefix(s.Name(), "POST") && (said["llmsandbox.sandbox"] != sb.ID || said["llmsandbox.status"] != "ok" || said["http.response.status_code"] != "200" || said["llmsandbox.operation"] != "run-in-sandbox") {
				t.Errorf("the span has %v, want what it is about", said)
			}
		}
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	c.stop()
	if spans.request(); len(spans) > 0 {
		t.Errorf("there is %s, want no more spans", (<-spans).Name())
	}
}

// TestNoTrace: where nobody wants spans, they cost nothing.
func TestNoTrace(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, end := span(ctx, "x")
		end(nil)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
