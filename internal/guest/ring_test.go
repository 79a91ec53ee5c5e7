//go:build linux

package guest

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestRing: whatever is committed, read and released in whatever pieces, the ring
// holds exactly the bytes between first and end, never more than its maximum, and
// never fewer than the last ones that it is to keep.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ring{max: rapid.IntRange(1, 200_000).Draw(t, "max"), keep: rapid.SampledFrom([]int{0, 1, 5000, keepRing}).Draw(t, "keep")}
		var all []byte // every byte ever, by offset
		next := byte(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "write") && !r.full() {
				room := r.room()
				n := rapid.IntRange(0, len(room)).Draw(t, "n")
				for i := range n {
					room[i] = next
					all = append(all, next)
					next += 7
				}
				r.commit(n)
			} else {
				r.release(r.start + uint64(rapid.IntRange(0, int(r.end-r.start)).Draw(t, "release")))
				r.trim()
			}
			if r.end != uint64(len(all)) || r.end-r.start > uint64(r.max) || len(r.buf) > r.max {
				t.Fatalf("%d to %d of %d in %d, want end = %d, start <= %v, len(r.buf) <= %d", r.start, r.end, len(all), len(r.buf), uint64(len(all)), uint64(r.max), r.max)
			}
			if least := uint64(min(len(all), r.keep, max(r.max-r.keep, 0))); r.first > r.start || r.end-r.first < least {
				t.Fatalf("kept from %d, start = %d, end = %d, want first <= start, end - first >= %d", r.first, r.start, r.end, least)
			}
			var got []byte
			for off := r.first; off < r.end; off = r.first + uint64(len(got)) {
				got = append(got, r.next(off)...)
			}
			if !bytes.Equal(got, all[r.first:]) {
				t.Fatalf("%d bytes from %d: %.300q, want %.300q", len(got), r.first, got, all[r.first:])
			}
		}
	})
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c)) S 7 1 1 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 100 1000 55 18446744073709551615 0"
	st, ok := parseStat([]byte(line))
	if want := (procStat{state: 'S', ppid: 7, threads: 1, ticks: 33, waited: 77, started: 100, rssPages: 55}); !ok || st != want {
		t.Errorf("%+v, %v, want ok = true, st = %+v", st, ok, want)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 1 2"} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q is accepted, want it refused", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b (c)) S 7 1 1 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 100 1000 55 0"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, line []byte) {
		// A program chooses its name, which ends at the last bracket.
		st, ok := parseStat(line)
		unnamed, okUnnamed := parseStat(line[max(bytes.LastIndexByte(line, ')'), 0):])
		if st != unnamed || ok != okUnnamed {
			t.Errorf("%q: %+v, %v, want what it is without the name: %+v, %v", line, st, ok, unnamed, okUnnamed)
		}
	})
}

func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		program string
		env     []string
		want    string
	}{
		{"./x", nil, "./x"},
		{"x", []string{"PATH=/a::/b"}, "/a/x ./x /b/x"},
		{"x", []string{"A=b"}, "/usr/local/bin/x /usr/bin/x /bin/x"},
		{"x", []string{"PATH=/a", "PATH=/b"}, "/b/x"},
	} {
		var got []byte
		for i, p := range candidates(c.program, c.env) {
			if i > 0 {
				got = append(got, ' ')
			}
			got = append(got, p...)
		}
		if string(got) != c.want {
			t.Errorf("%s %q: %s, want got = %v", c.program, c.env, got, c.want)
		}
	}
}
