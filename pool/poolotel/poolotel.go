// Package poolotel records what happens in a pool as OpenTelemetry spans and metrics.
package poolotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/llmsandbox/llmsandbox/pool"
)

const scope = "github.com/llmsandbox/llmsandbox/pool/poolotel"

// New makes a pool's instruments, under the name of llmsandbox.pool.*, and returns the
// hooks that use them: put them into pool.Config.Hooks. An Acquire is a span below the
// caller's, the opening and the removal of a sandbox are spans of their own. Attributes are
// the language, and what has a few values. It fails when an instrument cannot be made.
func New(tracers trace.TracerProvider, meters metric.MeterProvider) (pool.Hooks, error) {
	meter := meters.Meter(scope)
	wait, err1 := meter.Float64Histogram("llmsandbox.pool.acquire.wait", metric.WithUnit("s"), metric.WithDescription("How long an Acquire took, by how it ended."))
	creation, err2 := meter.Float64Histogram("llmsandbox.pool.creation.duration", metric.WithUnit("s"), metric.WithDescription("How long the opening of a sandbox took."))
	failures, err3 := meter.Int64Counter("llmsandbox.pool.creation.failures", metric.WithDescription("Sandboxes that could not be opened."))
	destroyed, err4 := meter.Int64Counter("llmsandbox.pool.destroyed", metric.WithDescription("Sandboxes removed, by why."))
	states, err5 := meter.Int64UpDownCounter("llmsandbox.pool.sandboxes", metric.WithDescription("Sandboxes that the pool holds, by state."))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return pool.Hooks{}, err
	}
	tracer := tracers.Tracer(scope)
	ctx := context.Background() // no single caller waits for it
	span := func(ctx context.Context, name string, took time.Duration, err error, attrs ...attribute.KeyValue) {
		now := time.Now()
		_, s := tracer.Start(ctx, name, trace.WithTimestamp(now.Add(-took)), trace.WithAttributes(attrs...))
		if err != nil {
			s.RecordError(err)
			s.SetStatus(codes.Error, err.Error())
		}
		s.End(trace.WithTimestamp(now))
	}
	return pool.Hooks{
		Acquired: func(ctx context.Context, a pool.Acquisition) {
			attrs := []attribute.KeyValue{language(a.Key), attribute.String("outcome", a.Outcome())}
			wait.Record(ctx, a.Wait.Seconds(), metric.WithAttributes(attrs...))
			span(ctx, "pool.acquire", a.Wait, a.Err, attrs...)
		},
		Created: func(c pool.Creation) {
			if c.Err != nil {
				failures.Add(ctx, 1, metric.WithAttributes(language(c.Key)))
			} else {
				creation.Record(ctx, c.Duration.Seconds(), metric.WithAttributes(language(c.Key)))
			}
			span(ctx, "pool.create", c.Duration, c.Err, language(c.Key), attribute.Bool("background", c.Background))
		},
		Destroyed: func(d pool.Destruction) {
			attrs := []attribute.KeyValue{language(d.Key), attribute.String("reason", string(d.Reason))}
			destroyed.Add(ctx, 1, metric.WithAttributes(attrs...))
			span(ctx, "pool.destroy", d.Duration, d.Err, attrs...)
		},
		Changed: func(key pool.Key, from, to pool.State) {
			for state, n := range map[pool.State]int64{from: -1, to: 1} {
				if state != pool.None {
					states.Add(ctx, n, metric.WithAttributes(language(key), attribute.String("state", string(state))))
				}
			}
		},
	}, nil
}

func language(k pool.Key) attribute.KeyValue { return attribute.String("language", k.Language) }
