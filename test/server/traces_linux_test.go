package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestTraces: the spans of a request come to a collector, in the trace of its client, also those that a server has when it ends.
func TestTraces(t *testing.T) {
	var mu sync.Mutex
	var got []*traces.ResourceSpans
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent traces.TracesData
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Tenant") != "a b" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("%s %s %v, %v: want spans, with the headers that were asked for", r.Method, r.URL.Path, r.Header, err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, sent.ResourceSpans...)
	}))
	defer collector.Close()
	m := newMachine(t)
	m.env = append(m.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=a%20b", "OTEL_SERVICE_NAME=of the test")
	s := m.start()
	s.stdout(s.ask(s.key, http.MethodPost, "/v1/run", `{"language": "python", "code": "print(1)"}`, "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	s.end(syscall.SIGTERM)
	mu.Lock()
	defer mu.Unlock()
	var names []string
	for _, of := range got {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		if service != "of the test" {
			t.Errorf("the spans are of %q, want the name that was given", service)
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				if span.TraceId[0] == 0x4b {
					names = append(names, span.Name)
				}
			}
		}
	}
	for _, want := range []string{"POST /v1/run", "wait for a place", "take a sandbox", "pool.acquire", "run"} {
		if !strings.Contains(strings.Join(names, ";")+";", want+";") {
			t.Errorf("the collector has %q, want %q", names, want)
		}
	}
}
