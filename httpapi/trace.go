package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/llmsandbox/llmsandbox"
)

// tracerName is the instrumentation scope of the server's spans.
const tracerName = "github.com/llmsandbox/llmsandbox/httpapi"

// trace makes a span of each request for an operation that needs a key, below the one that its traceparent header names.
func (s *Server) trace(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	if s.cfg.Tracers == nil || op.Metadata[needs] == nil {
		next(ctx)
		return
	}
	r, _ := humago.Unwrap(ctx)
	parent := propagation.TraceContext{}.Extract(ctx.Context(), propagation.HeaderCarrier(r.Header))
	in, span := s.cfg.Tracers.Tracer(tracerName).Start(parent, op.Method+" "+op.Path, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", op.Method), attribute.String("http.route", op.Path), attribute.String("llmsandbox.operation", op.OperationID),
	))
	defer span.End()
	if id := sandboxOf(ctx); id != "" {
		span.SetAttributes(attribute.String("llmsandbox.sandbox", id))
	}
	next(huma.WithContext(ctx, in))
	status := cmp.Or(ctx.Status(), http.StatusOK)
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// span makes a span below that of a request, which end ends. Where the request has none, it makes nothing.
func span(ctx context.Context, name string) (in context.Context, end func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	in, span := parent.TracerProvider().Tracer(tracerName).Start(ctx, name)
	return in, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// enter takes one of the places of programs for the caller, which leave gives back.
func (s *Server) enter(ctx context.Context) (leave func(), err error) {
	in, end := span(ctx, "wait for a place")
	leave, err = s.service.Enter(in, s.caller(ctx).Project)
	end(err)
	return leave, err
}

// acquire takes a fresh sandbox for the caller, as service.Service.Acquire does.
func (s *Server) acquire(ctx context.Context, o llmsandbox.Options) (sb *llmsandbox.Sandbox, release func(), err error) {
	in, end := span(ctx, takeSandbox)
	sb, release, err = s.service.Acquire(in, s.caller(ctx).Project, o)
	end(err)
	return sb, release, err
}

const takeSandbox = "take a sandbox"

// ofRun runs something below a span.
func ofRun(ctx context.Context, run func(context.Context) (ending, error)) (ending, error) {
	in, end := span(ctx, "run")
	done, err := run(in)
	end(err)
	if here := trace.SpanFromContext(ctx); here.IsRecording() {
		here.SetAttributes(attribute.String("llmsandbox.status", string(done.status)), attribute.String("llmsandbox.sandbox", done.sandbox))
	}
	return done, err
}
