//go:build linux

package guest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const memoryOfStatus = "Name:\tVmSize: 9\\nx\nUmask:\t0022\nVmPeak:\t     999 kB\nVmSize:\t     100 kB\nVmRSS:\t      60 kB\n" +
	"RssAnon:\t      30 kB\nRssFile:\t      20 kB\nRssShmem:\t      10 kB\nVmPTE:\t       4 kB\nHugetlbPages:\t       8 kB\nThreads:\t3\nVmSwap:\t       3 kB\n"

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]memoryStatus{
		memoryOfStatus:                        {size: 100 << 10, anonymous: 30 << 10, shared: 10 << 10, swapped: 3 << 10, own: 12 << 10},
		"Name:\tx\nVmRSS:\t60 kB\n":           {anonymous: 60 << 10},
		"Name:\tx\nState:\tZ (zombie)\n":      {},
		"RssAnon:\t-1 kB\nVmSwap:":            {},
		"RssAnon:\t99999999999999999999 kB\n": {},
	} {
		if got, threads := parseMemory([]byte(text)); got != want || strings.Contains(text, "Threads:\t3") != (threads == 3) {
			t.Errorf("%q: %+v, %d threads, want %+v", text, got, threads, want)
		}
	}
}

func TestParseShares(t *testing.T) {
	for text, want := range map[string]uint64{
		"55-7f ---p 00000000 00:00 0   [rollup]\nRss:  423 kB\nPss:  300 kB\nPss_Dirty: 7 kB\nPss_Anon: 200 kB\nPss_File: 95 kB\nPss_Shmem: 5 kB\nSwap: 8 kB\nSwapPss: 4 kB\n": 209 << 10,
		"Rss:  423 kB\nPss:  300 kB\nSwapPss: 4 kB\n": 304 << 10,
	} {
		if got, ok := parseShares([]byte(text)); got != want || !ok {
			t.Errorf("%q: %d, %v, want %d, true", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "Rss: 4 kB\n"} {
		if got, ok := parseShares([]byte(text)); ok {
			t.Errorf("%q: %d, true, want false", text, got)
		}
	}
}

// FuzzMemory: no text makes sums overflow.
func FuzzMemory(f *testing.F) {
	f.Add([]byte(memoryOfStatus))
	f.Add([]byte("Pss: 1125899906842623 kB\nSwapPss: 1125899906842623 kB\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _ := parseMemory(text)
		if m := s.most(); m < s.anonymous || m < s.shared || m < s.swapped || m < s.own {
			t.Errorf("%+v: %d in all, want no less than each", s, m)
		}
		parseShares(text)
	})
}

// TestWatchEnds: a watch looks as long as something runs.
func TestWatchEnds(t *testing.T) {
	a := &Agent{live: 1}
	looks := 0
	w := &watching{agent: a, loops: []watchLoop{{on: true, look: func() time.Duration {
		if looks++; looks == 3 {
			a.mu.Lock()
			a.live = 0
			a.mu.Unlock()
		}
		return 0
	}}}}
	if w.run(&w.loops[0]); looks != 3 || w.loops[0].on {
		t.Errorf("%d looks, on %v, want 3, false", looks, w.loops[0].on)
	}
}

// TestSameMemory: processes do not seem to have one memory because they set the filters of their core files alike.
func TestSameMemory(t *testing.T) {
	proc, err := openProc()
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{agent: &Agent{proc: proc}}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { other.Process.Kill(); other.Wait() }()
	before, err := proc.of(other.Process.Pid, "coredump_filter")
	if err != nil {
		t.Fatal(err)
	}
	self := os.Getpid()
	if !w.sameMemory(self, self) {
		t.Error("a process does not have its own memory, want it to")
	}
	if w.sameMemory(other.Process.Pid, self) || w.sameMemory(self, other.Process.Pid) {
		t.Error("two programs have the same memory, want each to have its own")
	}
	if after, err := proc.of(other.Process.Pid, "coredump_filter"); err != nil || string(after) != string(before) {
		t.Errorf("the filter is %q, %v, want %q as before", after, err, before)
	}
}
