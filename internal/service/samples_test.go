package service

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestSamples: what a sandbox uses over time is what its meter sees, and what it has not seen is no sample.
func TestSamples(t *testing.T) {
	clock := newClock()
	u := countingWith(t, newFakeUsage(), clock)
	fake := &fakeCounters{id: "sb", cpu: 900, memory: 1}
	m := &meter{counters: fake, project: "p", known: true}
	m.counted.At = clock.now()
	for _, c := range []struct {
		after       time.Duration
		cpu, memory int64
		err         error
		want        []Sample
	}{
		{time.Millisecond, 900, 1, nil, nil}, // since when it has used that is not known
		{0, 900, 1, nil, nil},
		{5 * time.Second, 900 + 10e6, 7, nil, []Sample{{CPUs: 2, Memory: 7}}},
		{time.Second, 900 + 11e6, 8, nil, []Sample{{CPUs: 2, Memory: 7}, {CPUs: 1, Memory: 8}}},
		{time.Second, 900 + 11e6, 9, nil, []Sample{{CPUs: 2, Memory: 7}, {CPUs: 0.5, Memory: 9}}}, // close to the one before, which is not kept
		{3 * time.Second, 900 + 16e6, 0, nil, []Sample{{CPUs: 2, Memory: 7}, {CPUs: 0.5, Memory: 9}}},
		{3 * time.Second, 900 + 19e6, 5, errors.New("for a moment"), []Sample{{CPUs: 2, Memory: 7}, {CPUs: 0.5, Memory: 9}}},
		{2 * time.Second, 2e6, 6, nil, []Sample{{CPUs: 2, Memory: 7}, {CPUs: 0.3, Memory: 6}}}, // it was made anew
	} {
		fake.mu.Lock()
		fake.memory = c.memory
		fake.mu.Unlock()
		fake.set(c.cpu, 0, 0, c.err)
		clock.add(c.after)
		u.read(m)
		got := m.samples.list()
		if len(got) > 0 && c.err == nil && c.memory > 0 && !got[len(got)-1].At.Equal(clock.now()) {
			t.Errorf("the last of %v is not of now, %v", got, clock.now())
		}
		for i := range got {
			got[i].At = time.Time{}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %v, CPU %d, memory %d and error %v: %v, want %v", c.after, c.cpu, c.memory, c.err, got, c.want)
		}
	}
}

// TestSamplesOfLongTime: a sandbox that lives for long has as many samples as others at most, from its beginning to its end, and no CPU time is lost.
func TestSamplesOfLongTime(t *testing.T) {
	var s samples
	first := newClock().at
	at, used := first, time.Duration(0)
	s.add(at, time.Hour, 1)
	for n := range 20_000 {
		spent := time.Duration(n%7) * time.Second
		// They come a little sooner and later.
		at, used = at.Add(5*time.Second+time.Duration(n%3-1)*100*time.Millisecond), used+spent
		s.add(at, spent, int64(n))
		if n%997 != 0 && n != 19_999 {
			continue
		}
		all, before, sum, longest := s.list(), first, 0.0, time.Duration(0)
		for _, l := range all {
			longest = max(longest, l.At.Sub(before))
			sum += l.CPUs * l.At.Sub(before).Seconds()
			before = l.At
		}
		if len(all) > mostSamples || !before.Equal(at) || all[len(all)-1].Memory != int64(n) || math.Abs(sum-used.Seconds()) > 1e-3 {
			t.Fatalf("%d samples up to %v with %g s of CPU time; want at most %d up to %v with %v", len(all), before, sum, mostSamples, at, used)
		}
		if fair := at.Sub(first) / (mostSamples / 4); longest > max(fair, 2*meterEvery) {
			t.Fatalf("two samples of %v are %v apart, want at most %v", at.Sub(first), longest, fair)
		}
	}
}

// TestLastSamples: one project does not see another's, and where nothing is kept there are none.
func TestLastSamples(t *testing.T) {
	m, unseen := &meter{project: "a"}, &meter{project: "a"}
	s := &Service{usage: countingWith(t, newFakeUsage(), newClock()), handles: map[string]*handle{"sb": {project: "a", meter: m}, "unseen": {project: "a", meter: unseen}}}
	at := newClock().at
	unseen.samples.add(at, 0, 1)
	m.samples.add(at, 0, 1)
	m.samples.add(at.Add(time.Second), time.Second, 2)
	for project, want := range map[string]map[string]Sample{"a": {"sb": {at.Add(time.Second), 1, 2}}, "b": {}} {
		if got, err := s.LastSamples(project, []string{"sb", "unseen", "none"}); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", project, got, err, want)
		}
	}
	s.usage = nil
	_, one := s.Samples(t.Context(), "a", "sb")
	_, many := s.LastSamples("a", []string{"sb"})
	if !errors.Is(one, llmsandbox.ErrUnsupported) || !errors.Is(many, llmsandbox.ErrUnsupported) {
		t.Errorf("where nothing is kept: %v and %v, want llmsandbox.ErrUnsupported", one, many)
	}
}
