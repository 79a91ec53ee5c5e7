package poolotel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/llmsandbox/llmsandbox/pool"
)

func TestSpansAndMetrics(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	reader := metric.NewManualReader()
	h, err := New(tracers, metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	key := pool.Key{Language: "python"}
	ctx, caller := tracers.Tracer("test").Start(t.Context(), "caller")
	h.Acquired(ctx, pool.Acquisition{Key: key, Hit: true, Wait: time.Second})
	h.Acquired(ctx, pool.Acquisition{Key: key, Err: pool.ErrExhausted})
	h.Created(pool.Creation{Key: key, Duration: time.Second, Background: true})
	h.Created(pool.Creation{Key: key, Err: errors.New("broken")})
	h.Destroyed(pool.Destruction{Key: key, Reason: pool.Released})
	h.Changed(key, pool.None, pool.Creating)
	h.Changed(key, pool.Creating, pool.Idle)

	want := []struct {
		name  string
		took  time.Duration
		fails bool
	}{
		{"pool.acquire", time.Second, false}, {"pool.acquire", 0, true}, {"pool.create", time.Second, false},
		{"pool.create", 0, true}, {"pool.destroy", 0, false},
	}
	ended := spans.Ended()
	if len(ended) != len(want) {
		t.Fatalf("%d spans, want %d", len(ended), len(want))
	}
	for i, w := range want {
		s := ended[i]
		if s.Name() != w.name || s.EndTime().Sub(s.StartTime()) != w.took || (s.Status().Code == codes.Error) != w.fails {
			t.Errorf("span %d: %s of %v, %v; want %+v", i, s.Name(), s.EndTime().Sub(s.StartTime()), s.Status(), w)
		}
		if below := s.Parent().SpanID() == caller.SpanContext().SpanID(); below != (w.name == "pool.acquire") {
			t.Errorf("span %d, %s: below the caller's: %t, want %t", i, s.Name(), below, w.name == "pool.acquire")
		}
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sums[m.Name+labels(p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					sums[m.Name+labels(p.Attributes)] = int64(p.Count)
				}
			}
		}
	}
	wanted := map[string]int64{
		"llmsandbox.pool.acquire.wait python hit":       1,
		"llmsandbox.pool.acquire.wait python exhausted": 1,
		"llmsandbox.pool.creation.duration python":      1,
		"llmsandbox.pool.creation.failures python":      1,
		"llmsandbox.pool.destroyed python released":     1,
		"llmsandbox.pool.sandboxes python creating":     0,
		"llmsandbox.pool.sandboxes python idle":         1,
	}
	if fmt.Sprint(sums) != fmt.Sprint(wanted) {
		t.Errorf("metrics\n%v, want\n%v", sums, wanted)
	}
}

func labels(set attribute.Set) (text string) {
	for _, kv := range set.ToSlice() {
		text += " " + kv.Value.String()
	}
	return text
}
