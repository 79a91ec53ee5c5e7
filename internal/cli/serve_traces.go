package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// tracesStop is how long the end of a server waits for its last spans to be sent.
const tracesStop = 5 * time.Second

// tracing returns what makes spans and sends them by OTLP over HTTP, as the standard variables of OpenTelemetry say, and what ends that; nil: they do not
// say where to.
func tracing(ctx context.Context, log *slog.Logger) (*trace.TracerProvider, func(), error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, func() {}, nil
	}
	client, err := newTraceClient()
	if client == nil || err != nil {
		return nil, func() {}, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans are lost", "error", err) }))
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, func() {}, err
	}
	// The later ones count: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "llmsandbox"), attribute.String("service.version", version)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, func() {}, errors.Join(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err), exporter.Shutdown(ctx))
	}
	p := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	return p, func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesStop)
		defer cancel()
		if err := p.Shutdown(stop); err != nil {
			log.Warn("the last spans are lost", "error", err)
		}
	}, nil
}

// A traceClient sends spans to a collector. The module's own client brings gRPC, which would cost each start of the command a millisecond.
type traceClient struct {
	url    string
	header http.Header
	client *http.Client
}

// traceEnv is a variable of the exporter: that of traces, or that of all signals.
func traceEnv(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// newTraceClient reads the variables; nil: there is no collector.
func newTraceClient() (*traceClient, error) {
	at := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); at == "" && base != "" {
		at = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if at == "" {
		return nil, nil
	}
	if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: use a URL, such as http://localhost:4318") // it may have a password
	}
	if protocol := cmp.Or(traceEnv("PROTOCOL"), "http/protobuf"); protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%s: spans are sent by http/protobuf only: leave it out, and name the collector's port for HTTP, mostly 4318", protocol)
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"} {
		if traceEnv(name) != "" {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_%s has no effect here: name certificates that are to be trusted with SSL_CERT_FILE", name)
		}
	}
	c := &traceClient{url: at, header: http.Header{"Content-Type": {"application/x-protobuf"}}}
	for field := range strings.SplitSeq(traceEnv("HEADERS"), ",") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		name, value, ok := strings.Cut(field, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: use NAME=VALUE,NAME=VALUE") // they may be secrets
		}
		c.header.Set(name, value)
	}
	milliseconds, err := strconv.ParseUint(cmp.Or(traceEnv("TIMEOUT"), "10000"), 10, 31)
	if err != nil {
		return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT: use a number of milliseconds")
	}
	c.client = &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: time.Duration(milliseconds) * time.Millisecond,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects") },
	}
	return c, nil
}

// Start implements otlptrace.Client.
func (c *traceClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *traceClient) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *traceClient) UploadTraces(ctx context.Context, spans []*traces.ResourceSpans) error {
	body, err := proto.Marshal(&traces.TracesData{ResourceSpans: spans}) // it has the form of a request
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = c.header.Clone()
	res, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", res.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // for the next request on the connection
	return err
}
