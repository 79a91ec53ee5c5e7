package service

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
)

// fakeCounters are those of no sandbox.
type fakeCounters struct {
	id  string
	mu  sync.Mutex
	cpu int64 // in microseconds; -1: it is not known
	net llmsandbox.Traffic
	err error

	memory int64 // 0: it is not known
}

func (f *fakeCounters) ID() string { return f.id }

func (f *fakeCounters) Usage(context.Context) (backend.Usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return backend.Usage{CPUKnown: f.cpu >= 0, CPU: time.Duration(max(f.cpu, 0)) * time.Microsecond, MemoryKnown: f.memory > 0, Memory: f.memory}, f.err
}

func (f *fakeCounters) Traffic(context.Context) (llmsandbox.Traffic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.net, f.err
}

func (f *fakeCounters) set(cpu int64, sent, received int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cpu, f.net, f.err = cpu, llmsandbox.Traffic{Sent: sent, Received: received}, err
}

// fakeUsage is a metering.Store in memory.
type fakeUsage struct {
	mu      sync.Mutex
	hours   map[hour]metering.Amount
	counted map[string]metering.Counted
	err     error // of all that is written
}

func newFakeUsage() *fakeUsage {
	return &fakeUsage{hours: map[hour]metering.Amount{}, counted: map[string]metering.Counted{}}
}

func (f *fakeUsage) AddUsage(_ context.Context, hours []metering.Hour, sandboxes []metering.Counted) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	for _, h := range hours {
		at := hour{h.Project, h.Begins.Unix()}
		f.hours[at] = f.hours[at].Plus(h.Amount)
	}
	for _, c := range sandboxes {
		if f.counted[c.Sandbox] = c; c.Ended {
			delete(f.counted, c.Sandbox)
		}
	}
	return nil
}

func (f *fakeUsage) Counted(_ context.Context, project, sandbox string) (metering.Counted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.counted[sandbox]; ok && c.Project == project {
		return c, nil
	}
	return metering.Counted{}, fs.ErrNotExist
}

func (f *fakeUsage) Usage(_ context.Context, project string, from, to time.Time) (all []metering.Hour, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for h, a := range f.hours {
		if h.project == project && h.begins >= from.Unix() && h.begins < to.Unix() {
			all = append(all, metering.Hour{Project: project, Begins: time.Unix(h.begins, 0).UTC(), Amount: a})
		}
	}
	return all, nil
}

func (f *fakeUsage) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// A fakeClock is set by tests.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *fakeClock { return &fakeClock{at: time.Date(2026, 3, 4, 22, 59, 0, 0, time.UTC)} }

// countingWith counts with a store and a clock until the test ends.
func countingWith(t *testing.T, store metering.Store, clock *fakeClock) *usage {
	t.Helper()
	u := newUsage(&Config{Usage: store, now: clock.now, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(u.close)
	return u
}

// TestRead: what a sandbox is charged is what its counters have grown by, whatever becomes of them.
func TestRead(t *testing.T) {
	const us = time.Microsecond
	failed := errors.New("ended")
	for name, c := range map[string]struct {
		known bool
		kept  metering.Counted // before
		steps []fakeCounters
		want  metering.Amount
		seen  metering.Counted // but for whose it is
	}{
		"a new one":         {true, metering.Counted{}, []fakeCounters{{cpu: 2, net: llmsandbox.Traffic{Sent: 3, Received: 4}}, {cpu: 7, net: llmsandbox.Traffic{Sent: 3, Received: 5}}}, metering.Amount{CPU: 7 * us, Sent: 3, Received: 5, Lived: 2 * time.Minute}, metering.Counted{CPU: 7 * us, Sent: 3, Received: 5}},
		"nothing new":       {true, metering.Counted{}, []fakeCounters{{cpu: 2}, {cpu: 2}}, metering.Amount{CPU: 2 * us, Lived: 2 * time.Minute}, metering.Counted{CPU: 2 * us}},
		"made anew":         {true, metering.Counted{}, []fakeCounters{{cpu: 9, net: llmsandbox.Traffic{Sent: 8}}, {cpu: 1, net: llmsandbox.Traffic{Sent: 2}}, {cpu: 3, net: llmsandbox.Traffic{Sent: 2}}}, metering.Amount{CPU: 12 * us, Sent: 10, Lived: 3 * time.Minute}, metering.Counted{CPU: 3 * us, Sent: 2}},
		"nobody counts CPU": {true, metering.Counted{}, []fakeCounters{{cpu: -1, net: llmsandbox.Traffic{Sent: 1}}}, metering.Amount{Sent: 1, Lived: time.Minute}, metering.Counted{Sent: 1}},
		"it has ended":      {true, metering.Counted{}, []fakeCounters{{cpu: 5, net: llmsandbox.Traffic{Sent: 6}}, {err: failed}}, metering.Amount{CPU: 5 * us, Sent: 6, Lived: 2 * time.Minute}, metering.Counted{CPU: 5 * us, Sent: 6}},
		"for a moment":      {true, metering.Counted{}, []fakeCounters{{cpu: 5}, {err: failed}, {cpu: 8}}, metering.Amount{CPU: 8 * us, Lived: 3 * time.Minute}, metering.Counted{CPU: 8 * us}},
		"of a server before": {
			false, metering.Counted{At: newClock().at.Add(-time.Hour), CPU: 5 * us, Sent: 6, Received: 7}, []fakeCounters{{cpu: 8, net: llmsandbox.Traffic{Sent: 6, Received: 9}}},
			metering.Amount{CPU: 3 * us, Received: 2, Lived: time.Hour + time.Minute}, metering.Counted{CPU: 8 * us, Sent: 6, Received: 9},
		},
		"of a server that kept nothing": {false, metering.Counted{}, []fakeCounters{{cpu: 8}}, metering.Amount{CPU: 8 * us}, metering.Counted{CPU: 8 * us}},
		"a clock that is set back":      {false, metering.Counted{At: newClock().at.Add(time.Hour)}, []fakeCounters{{cpu: 8}}, metering.Amount{CPU: 8 * us}, metering.Counted{CPU: 8 * us}},
	} {
		store, clock := newFakeUsage(), newClock()
		if c.kept != (metering.Counted{}) {
			c.kept.Project, c.kept.Sandbox = "p", "sb"
			store.counted["sb"] = c.kept
		}
		u := countingWith(t, store, clock)
		fake := &fakeCounters{id: "sb", err: failed} // until the test says what is counted
		m := &meter{counters: fake, project: "p", stays: true, known: c.known}
		if c.known {
			m.counted.At = clock.now()
		}
		for i := range c.steps {
			s := &c.steps[i]
			fake.set(s.cpu, s.net.Sent, s.net.Received, s.err)
			clock.add(time.Minute)
			u.read(m)
		}
		u.close()
		got := metering.Amount{}
		for _, a := range store.hours {
			got = got.Plus(a)
		}
		want := c.seen
		want.Project, want.Sandbox, want.At = "p", "sb", clock.now()
		if got != c.want || store.counted["sb"] != want {
			t.Errorf("%s: charged %+v, want %+v; kept %+v, want %+v", name, got, c.want, store.counted["sb"], want)
		}
	}
}

// TestUsageIsKeptOnce: what a server could not write is written later or counted again by the next one, and never both.
func TestUsageIsKeptOnce(t *testing.T) {
	store, clock := newFakeUsage(), newClock()
	first := countingWith(t, store, clock)
	fake := &fakeCounters{id: "sb"}
	one := first.begin(&meter{counters: fake, project: "a", stays: true, known: true})
	other := first.begin(&meter{counters: &fakeCounters{id: "other", cpu: 1000}, project: "b", stays: true, known: true})
	charged := func(when string, want map[string]int64) {
		t.Helper()
		store.mu.Lock()
		defer store.mu.Unlock()
		got := map[string]int64{}
		for h, a := range store.hours {
			got[h.project] += a.CPU.Microseconds()
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: charged %v, want %v", when, got, want)
		}
	}
	fake.set(5, 0, 0, nil)
	first.read(one)
	if err := first.write(); err != nil {
		t.Fatal(err)
	}
	charged("at first", map[string]int64{"a": 5})

	store.fail(errors.New("no space"))
	fake.set(7, 0, 0, nil)
	first.read(one)
	if err := first.write(); err == nil {
		t.Fatal("it was written, want an error")
	}
	if used, _, err := first.today(t.Context(), "a"); err != nil || used.CPU.Microseconds() != 7 {
		t.Errorf("%+v, %v, want what is not kept yet, too", used, err)
	}
	clock.add(2 * time.Minute) // another hour
	fake.set(9, 0, 0, nil)
	first.read(one)
	store.fail(nil)
	if err := first.write(); err != nil {
		t.Fatal(err)
	}
	charged("after a failure", map[string]int64{"a": 9})
	if hours, err := store.Usage(t.Context(), "a", time.Unix(0, 0), clock.now()); err != nil || len(hours) != 2 {
		t.Errorf("%v, %v, want that of each hour", hours, err)
	}

	store.fail(errors.New("gone")) // and the server with it
	fake.set(20, 0, 0, nil)
	first.end(one, false)
	first.close()
	store.fail(nil)
	next := countingWith(t, store, clock)
	fake.set(21, 0, 0, nil)
	again := next.begin(&meter{counters: fake, project: "a", stays: true})
	next.read(again)
	next.close()
	charged("by the next server", map[string]int64{"a": 21})
	if c := store.counted["sb"]; c.CPU.Microseconds() != 21 {
		t.Errorf("kept %+v, want what was counted last", c)
	}

	last := countingWith(t, store, clock)
	last.end(last.begin(&meter{counters: fake, project: "a", stays: true}), true)
	last.close()
	charged("without anything new", map[string]int64{"a": 21})
	if len(store.counted) != 0 {
		t.Errorf("%v is kept of sandboxes that have ended, want nothing", store.counted)
	}
	first.end(other, true) // after all
}

// TestUsed: what has ended in a sandbox is counted by itself, and who asks finds it.
func TestUsed(t *testing.T) {
	store, clock := newFakeUsage(), newClock()
	u := countingWith(t, store, clock)
	s := &Service{usage: u}
	stays, once := &fakeCounters{id: "stays"}, &fakeCounters{id: "once"}
	u.begin(&meter{counters: stays, project: "a", stays: true, known: true})
	m := u.begin(&meter{counters: once, project: "a", once: true, known: true})
	for i := range int64(50) {
		stays.set(i+1, 0, 0, nil)
		once.set(10*(i+1), 0, 0, nil)
		s.Ran("a", "stays")
		s.Ran("a", "once")
		s.Ran("b", "") // of no sandbox
		hours, err := s.Usage(t.Context(), "a", clock.now().Truncate(time.Hour), clock.now())
		if want := (metering.Amount{CPU: time.Duration(11*(i+1)) * time.Microsecond, Runs: 2 * (i + 1)}); err != nil || len(hours) != 1 || hours[0].Amount != want {
			t.Fatalf("%+v, %v, want %+v", hours, err, want)
		}
	}
	u.end(m, true)
	s.Ran("a", "once") // which is not there any more
	hours, err := s.Usage(t.Context(), "b", clock.now().Truncate(time.Hour), clock.now())
	if err != nil || len(hours) != 1 || hours[0].Amount != (metering.Amount{Runs: 50}) {
		t.Errorf("%+v, %v, want 50 runs of the other project, and nothing of the first", hours, err)
	}
	if got := s.Used(); got.CPU.Microseconds() != 550 || got.Runs != 151 {
		t.Errorf("in all %+v, want CPU 550, Runs 151", got)
	}
}

// TestSpent: a project that has used what it may in a day begins nothing more on that day; others do, and it does on the next one.
func TestSpent(t *testing.T) {
	store, clock := newFakeUsage(), newClock()
	s, err := New(&Config{
		Sandbox: llmsandbox.Options{Backend: local.New(&local.Options{StateDir: t.TempDir()}), BestEffort: true}, Warm: -1,
		Usage: store, MaxDayCPU: time.Minute, MaxDaySent: 1000, now: clock.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	day := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	store.hours = map[hour]metering.Amount{
		{"before", day.Unix() - 3600}: {CPU: time.Hour, Sent: 1 << 40}, {"almost", day.Unix()}: {CPU: time.Minute - 1, Sent: 999, Received: 1 << 40},
		{"cpu", day.Unix()}: {CPU: 40 * time.Second}, {"cpu", day.Unix() + 3600}: {CPU: 20 * time.Second}, {"sent", day.Unix()}: {Sent: 1000},
	}
	begin := func(project string) map[string]error {
		leave, entered := s.Enter(t.Context(), project)
		if entered == nil {
			leave()
		}
		sb, created := s.Create(t.Context(), project, llmsandbox.Options{Language: "bash", Network: llmsandbox.Network{Mode: "none such"}})
		if created == nil {
			t.Fatalf("%s: sandbox %v with a network of no kind", project, sb)
		}
		return map[string]error{"admit": s.Admit(t.Context(), project), "enter": entered, "create": created}
	}
	check := func(spent ...string) {
		t.Helper()
		for _, project := range []string{"before", "almost", "cpu", "sent", "none"} {
			for what, err := range begin(project) {
				var told *SpentError
				is := errors.As(err, &told)
				if is != slices.Contains(spent, project) || is && (!errors.Is(err, ErrQuota) || !told.Until.Equal(day.Add(24*time.Hour))) {
					t.Errorf("%v: %s of %s: %v, want those to be told to come on the next day: %v", clock.now(), what, project, err, spent)
				}
			}
		}
	}
	check("cpu", "sent")
	clock.add(59 * time.Minute)
	check("cpu", "sent")
	clock.add(2 * time.Minute)
	check()
	s.usage.mu.Lock()
	s.usage.add("none", clock.now(), metering.Amount{Sent: 1000}) // which is not written yet, or has just been
	s.usage.mu.Unlock()
	day = day.Add(24 * time.Hour)
	check("none")
	if _, err := New(&Config{MaxDayCPU: time.Second}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("a bound of what is not counted: %v, want ErrInvalid", err)
	}
}
