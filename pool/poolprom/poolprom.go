// Package poolprom counts what happens in a pool as Prometheus metrics.
package poolprom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/llmsandbox/llmsandbox/pool"
)

// New registers a pool's metrics, under the name of llmsandbox_pool_*, and returns the
// hooks that count: put them into pool.Config.Hooks. Labels are the language, and what has
// a few values; several pools may share a registry when constant labels tell them apart.
// It fails when a metric is registered already.
func New(registry prometheus.Registerer, constant prometheus.Labels) (pool.Hooks, error) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "llmsandbox", Subsystem: "pool", Name: name, Help: help, ConstLabels: constant}
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		o := opts(name, help)
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: o.Namespace, Subsystem: o.Subsystem, Name: o.Name, Help: o.Help, ConstLabels: o.ConstLabels,
			Buckets: []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, labels)
	}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
	}
	var (
		wait      = seconds("acquire_wait_seconds", "How long an Acquire took, by how it ended.", "language", "outcome")
		creation  = seconds("creation_seconds", "How long the opening of a sandbox took.", "language")
		failures  = count("creation_failures_total", "Sandboxes that could not be opened.", "language")
		destroyed = count("destroyed_total", "Sandboxes removed, by why.", "language", "reason")
		states    = prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("sandboxes", "Sandboxes that the pool holds, by state.")), []string{"language", "state"})
	)
	var registered []prometheus.Collector
	for _, c := range []prometheus.Collector{wait, creation, failures, destroyed, states} {
		if err := registry.Register(c); err != nil {
			for _, r := range registered {
				registry.Unregister(r)
			}
			return pool.Hooks{}, err
		}
		registered = append(registered, c)
	}
	return pool.Hooks{
		Acquired: func(_ context.Context, a pool.Acquisition) {
			wait.WithLabelValues(a.Key.Language, a.Outcome()).Observe(a.Wait.Seconds())
		},
		Created: func(c pool.Creation) {
			if c.Err != nil {
				failures.WithLabelValues(c.Key.Language).Inc()
				return
			}
			creation.WithLabelValues(c.Key.Language).Observe(c.Duration.Seconds())
		},
		Destroyed: func(d pool.Destruction) {
			destroyed.WithLabelValues(d.Key.Language, string(d.Reason)).Inc()
		},
		Changed: func(key pool.Key, from, to pool.State) {
			if from != pool.None {
				states.WithLabelValues(key.Language, string(from)).Dec()
			}
			if to != pool.None {
				states.WithLabelValues(key.Language, string(to)).Inc()
			}
		},
	}, nil
}
