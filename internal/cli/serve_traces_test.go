package cli

import "testing"

// TestTraceVariables: variables of OpenTelemetry that make no sense, or have no effect, are refused.
func TestTraceVariables(t *testing.T) {
	const at = "http://localhost:4318"
	for _, test := range []struct {
		env map[string]string
		url string // empty: an error; -: nothing is sent
	}{
		{nil, "-"},
		{map[string]string{"ENDPOINT": at}, at + "/v1/traces"},
		{map[string]string{"ENDPOINT": at + "/x/"}, at + "/x/v1/traces"},
		{map[string]string{"TRACES_ENDPOINT": at + "/y", "ENDPOINT": at}, at + "/y"},
		{map[string]string{"ENDPOINT": at, "HEADERS": "a=b,c=d%3D"}, at + "/v1/traces"},
		{map[string]string{"ENDPOINT": "localhost:4317"}, ""},
		{map[string]string{"ENDPOINT": at, "PROTOCOL": "grpc"}, ""},
		{map[string]string{"ENDPOINT": at, "CERTIFICATE": "x"}, ""},
		{map[string]string{"ENDPOINT": at, "HEADERS": "a"}, ""},
		{map[string]string{"ENDPOINT": at, "HEADERS": "=b"}, ""},
		{map[string]string{"ENDPOINT": at, "HEADERS": "a=%"}, ""},
		{map[string]string{"ENDPOINT": at, "TIMEOUT": "1s"}, ""},
	} {
		for _, name := range []string{"ENDPOINT", "TRACES_ENDPOINT", "HEADERS", "PROTOCOL", "CERTIFICATE", "TIMEOUT"} {
			t.Setenv("OTEL_EXPORTER_OTLP_"+name, test.env[name])
		}
		c, err := newTraceClient()
		got := "-"
		switch {
		case err != nil:
			got = ""
		case c != nil:
			got = c.url
		}
		if got != test.url {
			t.Errorf("%v: %q, %v, want %q", test.env, got, err, test.url)
		}
	}
}
