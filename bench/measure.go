package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A contender is one way to do the same thing. It returns how long the part that
// counts took.
type contender struct {
	name string
	do   func(context.Context) (time.Duration, error)
}

// timed makes a contender of something that counts as a whole.
func timed(name string, do func(context.Context) error) contender {
	return contender{name, func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := do(ctx)
		return time.Since(start), err
	}}
}

// compare measures all contenders and prints their times and ratios.
func compare(ctx context.Context, rounds int, all ...contender) error {
	t, err := measure(ctx, rounds, all...)
	if err != nil {
		return err
	}
	t.print()
	return nil
}

// measure runs all contenders for so many rounds after one warm-up.
func measure(ctx context.Context, rounds int, all ...contender) (*table, error) {
	t := newTable()
	for _, c := range all {
		t.names = append(t.names, c.name)
	}
	for round := -1; round < rounds; round++ {
		for _, c := range all {
			d, err := c.do(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= 0 {
				t.times[c.name] = append(t.times[c.name], float64(d.Microseconds())/1000)
			}
		}
	}
	return t, nil
}

// percentile is the value that p percent lie below; between two values, as much of each.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := float64(len(sorted)-1) * float64(p) / 100
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
