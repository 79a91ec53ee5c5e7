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

// compare runs all contenders for so many rounds after one warm-up, and prints
// each one's times and, round by round, its ratio to the first.
func compare(ctx context.Context, rounds int, all ...contender) error {
	times := make([][]float64, len(all))
	ratios := make([][]float64, len(all))
	for round := -1; round < rounds; round++ {
		var first float64
		for i, c := range all {
			d, err := c.do(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			ms := float64(d.Microseconds()) / 1000
			if i == 0 {
				first = ms
			}
			if round >= 0 {
				times[i] = append(times[i], ms)
				ratios[i] = append(ratios[i], ms/first)
			}
		}
	}
	fmt.Printf("%-44s %10s %10s %14s   N=%d\n", "", "median ms", "p95 ms", "× the first", rounds)
	for i, c := range all {
		fmt.Printf("%-44s %10.2f %10.2f %14.2f\n", c.name, percentile(times[i], 50), percentile(times[i], 95), percentile(ratios[i], 50))
	}
	return nil
}

func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}
