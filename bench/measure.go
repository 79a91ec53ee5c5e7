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

// A table holds the times of some contenders, in ms, round by round.
type table struct {
	names []string
	times map[string][]float64
}

func newTable(names ...string) *table { return &table{names: names, times: map[string][]float64{}} }

// print prints each contender's times and, round by round, its ratio to the first.
func (t *table) print() {
	first := t.names[0]
	fmt.Printf("%-44s %10s %10s %14s   N=%d\n", "", "median ms", "p95 ms", "× the first", len(t.times[first]))
	for _, name := range t.names {
		fmt.Printf("%-44s %10.2f %10.2f %14.2f\n", name, percentile(t.times[name], 50), percentile(t.times[name], 95), t.ratio(name, first))
	}
}

// ratio is the median of the ratios of one contender to another in each round.
func (t *table) ratio(name, to string) float64 {
	ratios := make([]float64, len(t.times[name]))
	for i, ms := range t.times[name] {
		ratios[i] = ms / t.times[to][i]
	}
	return percentile(ratios, 50)
}

// more is the median of the differences of one contender to another in each round, in ms.
func (t *table) more(name, than string) float64 {
	more := make([]float64, len(t.times[name]))
	for i, ms := range t.times[name] {
		more[i] = ms - t.times[than][i]
	}
	return percentile(more, 50)
}

// aimAtMost prints whether a figure is as small as it should be.
func aimAtMost(what string, most, is float64) { printAim("≤", what, most, is, is <= most) }

// aimAtLeast prints whether a figure is as large as it should be.
func aimAtLeast(what string, least, is float64) { printAim("≥", what, least, is, is >= least) }

func printAim(sign, what string, wanted, is float64, reached bool) {
	verdict := "not reached"
	if reached {
		verdict = "reached"
	}
	fmt.Printf("aim: %s %s %.4g: %.4g, %s\n", what, sign, wanted, is, verdict)
}
