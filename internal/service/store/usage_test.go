package store

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/httpapi/metering"
)

// TestUsage: what is added to an hour of a project is all in it, and sandboxes have what was said of them last.
func TestUsage(t *testing.T) {
	h := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	one := metering.Amount{CPU: 1500 * time.Microsecond, Sent: 10, Received: 1 << 40, Runs: 2, Lived: time.Minute}
	twice := metering.Amount{CPU: 3 * time.Millisecond, Sent: 20, Received: 2 << 40, Runs: 4, Lived: 2 * time.Minute}
	hour := func(project string, at time.Time, a metering.Amount) metering.Hour {
		return metering.Hour{Project: project, Begins: at, Amount: a}
	}
	seen := metering.Counted{Project: "p1", Sandbox: "sb-1", At: h.Add(time.Second), CPU: time.Second, Sent: 5, Received: 6}
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		now := h.Add(time.Hour)
		s.now = func() time.Time { return now }
		first := seen
		first.CPU = time.Millisecond
		ended := seen
		ended.Sandbox, ended.Ended = "sb-2", true
		there := ended
		there.Ended = false
		for i, add := range []struct {
			hours []metering.Hour
			seen  []metering.Counted
		}{
			{[]metering.Hour{hour("p1", h, one), hour("p2", h, one)}, []metering.Counted{first, there}},
			{[]metering.Hour{hour("p1", h, one), hour("p1", h.Add(time.Hour), one)}, []metering.Counted{seen, ended}},
			{nil, nil},
		} {
			if err := s.AddUsage(t.Context(), add.hours, add.seen); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		for _, c := range []struct {
			name, project string
			from, to      time.Time
			want          []metering.Hour
		}{
			{"all", "p1", h, h.Add(2 * time.Hour), []metering.Hour{hour("p1", h, twice), hour("p1", h.Add(time.Hour), one)}},
			{"the first hour", "p1", h, h.Add(time.Hour), []metering.Hour{hour("p1", h, twice)}},
			{"the second hour", "p1", h.Add(time.Second), h.Add(2 * time.Hour), []metering.Hour{hour("p1", h.Add(time.Hour), one)}},
			{"another project", "p2", h, h.Add(time.Hour), []metering.Hour{hour("p2", h, one)}},
			{"none", "p1", h.Add(2 * time.Hour), h.Add(9 * time.Hour), nil},
			{"no project", "p1' OR '1'='1", h, h.Add(time.Hour), nil},
		} {
			got, err := s.Usage(t.Context(), c.project, c.from, c.to)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, want no error; -want +got\n%s", c.name, err, diff)
			}
		}
		if got, err := s.Counted(t.Context(), "p1", "sb-1"); err != nil || got != seen {
			t.Errorf("%+v, %v, want %+v", got, err, seen)
		}
		for project, sandbox := range map[string]string{"p1": "sb-2", "p2": "sb-1"} {
			if got, err := s.Counted(t.Context(), project, sandbox); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of %s: %+v, %v, want fs.ErrNotExist", sandbox, project, got, err)
			}
		}

		now = h.Add(usageAge + 30*time.Minute)
		if err := s.AddUsage(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		got, err := s.Usage(t.Context(), "p1", h, now)
		if diff := cmp.Diff([]metering.Hour{hour("p1", h.Add(time.Hour), one)}, got); err != nil || diff != "" {
			t.Errorf("400 days later: %v, want no error; -want +got\n%s", err, diff)
		}
		if _, err := s.Counted(t.Context(), "p1", "sb-1"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("400 days later: %v, want fs.ErrNotExist", err)
		}
	})
}

// TestUsageAtOnce: what several processes add at once is all there.
func TestUsageAtOnce(t *testing.T) {
	const each = 20
	h := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		for _, s := range stores {
			s.now = func() time.Time { return h }
		}
		errs := make([]error, 4)
		var calls sync.WaitGroup
		for i := range errs {
			calls.Go(func() {
				for range each {
					hours := []metering.Hour{{Project: "a", Begins: h, Amount: metering.Amount{Runs: 1}}, {Project: "b", Begins: h, Amount: metering.Amount{CPU: time.Second}}}
					errs[i] = errors.Join(errs[i], stores[i%2].AddUsage(t.Context(), hours, []metering.Counted{{Project: "a", Sandbox: "sb", At: h}}))
				}
			})
		}
		calls.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for project, want := range map[string]metering.Amount{"a": {Runs: 4 * each}, "b": {CPU: 4 * each * time.Second}} {
			got, err := stores[1].Usage(t.Context(), project, h, h.Add(time.Hour))
			if err != nil || len(got) != 1 || got[0].Amount != want {
				t.Errorf("%s: %+v, %v, want %+v", project, got, err, want)
			}
		}
	})
}
