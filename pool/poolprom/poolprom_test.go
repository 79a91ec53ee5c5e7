package poolprom

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/llmsandbox/llmsandbox/pool"
)

// values are a registry's metrics by name and labels: of a histogram how many there were.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[f.GetName()+" "+strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

func TestMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	h, err := New(r, prometheus.Labels{"pool": "main"})
	if err != nil {
		t.Fatal(err)
	}
	key := pool.Key{Language: "python"}
	for _, a := range []pool.Acquisition{
		{Key: key, Hit: true}, {Key: key, Hit: true}, {Key: key}, {Key: key, Err: fmt.Errorf("x: %w", pool.ErrExhausted)},
		{Key: key, Err: context.Canceled}, {Key: key, Err: errors.New("broken")},
	} {
		h.Acquired(t.Context(), a)
	}
	h.Created(pool.Creation{Key: key, Duration: time.Second})
	h.Created(pool.Creation{Key: key, Err: errors.New("broken")})
	h.Destroyed(pool.Destruction{Key: key, Reason: pool.Died})
	h.Changed(key, pool.None, pool.Creating)
	h.Changed(key, pool.Creating, pool.Idle)
	h.Changed(key, pool.Idle, pool.None)
	got := values(t, r)
	want := map[string]float64{
		"llmsandbox_pool_acquire_wait_seconds python hit main":       2,
		"llmsandbox_pool_acquire_wait_seconds python miss main":      1,
		"llmsandbox_pool_acquire_wait_seconds python exhausted main": 1,
		"llmsandbox_pool_acquire_wait_seconds python cancelled main": 1,
		"llmsandbox_pool_acquire_wait_seconds python failed main":    1,
		"llmsandbox_pool_creation_seconds python main":               1,
		"llmsandbox_pool_creation_failures_total python main":        1,
		"llmsandbox_pool_destroyed_total python main died":           1,
		"llmsandbox_pool_sandboxes python main creating":             0,
		"llmsandbox_pool_sandboxes python main idle":                 0,
	}
	for name, n := range want {
		if v, there := got[name]; !there || v != n {
			t.Errorf("%s is %v, want %v", name, v, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d metrics, want %d: %v", len(got), len(want), got)
	}
}

func TestRegisteredTwice(t *testing.T) {
	r := prometheus.NewRegistry()
	if _, err := New(r, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := New(r, nil); err == nil {
		t.Error("the same metrics were registered twice: got no error, want an error")
	}
	// What was there in part is taken back.
	r = prometheus.NewRegistry()
	taken := prometheus.NewGauge(prometheus.GaugeOpts{Name: "llmsandbox_pool_sandboxes", Help: "another"})
	r.MustRegister(taken)
	if _, err := New(r, nil); err == nil {
		t.Error("a name was registered twice: got no error, want an error")
	}
	wait := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "llmsandbox_pool_acquire_wait_seconds", Help: "How long an Acquire took, by how it ended.",
	}, []string{"language", "outcome"})
	if err := r.Register(wait); err != nil {
		t.Errorf("after a failure: %v", err)
	}
}
