package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// wantRecord fails unless a record is what was kept; nil: unless there is none.
func wantRecord(t *testing.T, s *Store, project, sandbox, name string, open bool, data []byte) {
	t.Helper()
	got, state, err := s.Record(t.Context(), project, sandbox, name)
	if data == nil {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s/%s/%s: %d bytes, %v, want that it does not exist", project, sandbox, name, len(got), err)
		}
		return
	}
	if err != nil || state != open || !bytes.Equal(got, data) {
		t.Errorf("%s/%s/%s: %d bytes, open %t, %v, want %d bytes, open %t", project, sandbox, name, len(got), state, err, len(data), open)
	}
}

// TestRecords: a record is of a project and a sandbox, and is what was put last until it is removed.
func TestRecords(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		put := func(project, sandbox, name string, open bool, data []byte) {
			t.Helper()
			if err := s.PutRecord(t.Context(), project, sandbox, name, open, data); err != nil {
				t.Fatal(err)
			}
		}
		any := []byte("a\x00\xff'")
		put("p", "s1", "b", true, any)
		put("p", "s1", "a", true, nil)
		put("p", "s2", "a", true, []byte("2"))
		put("q", "s1", "a", false, []byte("3"))
		wantRecord(t, s, "p", "s1", "b", true, any)
		wantRecord(t, s, "p", "s1", "a", true, []byte{})
		wantRecord(t, s, "q", "s1", "a", false, []byte("3"))
		wantRecord(t, s, "q", "s2", "a", false, nil)
		if names, err := s.OpenRecords(t.Context(), "p", "s1"); err != nil || !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("open: %q, %v, want a and b", names, err)
		}
		put("p", "s1", "b", false, []byte("end"))
		wantRecord(t, s, "p", "s1", "b", false, []byte("end"))
		if names, err := s.OpenRecords(t.Context(), "p", "s1"); err != nil || !slices.Equal(names, []string{"a"}) {
			t.Errorf("open: %q, %v, want a", names, err)
		}
		if err := s.RemoveRecords(t.Context(), "p", "s1"); err != nil {
			t.Fatal(err)
		}
		wantRecord(t, s, "p", "s1", "a", false, nil)
		wantRecord(t, s, "p", "s1", "b", false, nil)
		wantRecord(t, s, "p", "s2", "a", true, []byte("2"))
		wantRecord(t, s, "q", "s1", "a", false, []byte("3"))
		for _, want := range []bool{true, false} {
			if added, err := s.AddRecord(t.Context(), "p", "", "once", fmt.Append(nil, want)); added != want || err != nil {
				t.Errorf("added: %t, %v, want %t", added, err, want)
			}
		}
		wantRecord(t, s, "p", "", "once", false, []byte("true"))
		if err := errors.Join(s.RemoveRecord(t.Context(), "p", "", "once"), s.RemoveRecord(t.Context(), "p", "", "once")); err != nil {
			t.Error(err)
		}
		wantRecord(t, s, "p", "", "once", false, nil)
		wantRecord(t, s, "p", "s2", "a", true, []byte("2"))
		if _, err := s.AddRecord(t.Context(), "p", "s1", "c", make([]byte, MaxRecord+1)); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a large record: %v, want ErrInvalid", err)
		}
		if err := s.PutRecord(t.Context(), "p", "s1", "c", false, make([]byte, MaxRecord+1)); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a large record: %v, want ErrInvalid", err)
		}
	})
}

// TestAddAtOnce: of many that add the same record at the same time, one does.
func TestAddAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		var all sync.WaitGroup
		var added atomic.Int32
		for i := range 8 {
			all.Go(func() {
				ok, err := stores[i%2].AddRecord(t.Context(), "p", "", "once", []byte{byte(i)})
				if err != nil {
					t.Error(err)
				}
				if ok {
					added.Add(1)
				}
			})
		}
		if all.Wait(); added.Load() != 1 {
			t.Errorf("added %d times, want once", added.Load())
		}
	})
}

// TestRecordsAreBounded: old records go, and the oldest of a project that has too much; open ones stay longer.
func TestRecordsAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		now := time.Now()
		s.now = func() time.Time { return now }
		put := func(project, name string, open bool, size int) {
			t.Helper()
			if err := s.PutRecord(t.Context(), project, "s", name, open, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Second)
		}
		const large = 24 << 20
		put("p", "open", true, large)
		put("q", "other", false, large)
		for i := range 3 {
			put("p", strconv.Itoa(i), false, large)
		}
		wantRecord(t, s, "p", "s", "0", false, nil)
		wantRecord(t, s, "p", "s", "1", false, make([]byte, large))
		wantRecord(t, s, "p", "s", "2", false, make([]byte, large))
		wantRecord(t, s, "p", "s", "open", true, make([]byte, large))
		wantRecord(t, s, "q", "s", "other", false, make([]byte, large))
		now = now.Add(recordsAge)
		wantRecord(t, s, "q", "s", "other", false, nil)
		if added, err := s.AddRecord(t.Context(), "q", "s", "other", []byte("new")); !added || err != nil {
			t.Errorf("in the place of one that is too old: %t, %v, want that it was added", added, err)
		}
		wantRecord(t, s, "p", "s", "2", false, nil)
		wantRecord(t, s, "p", "s", "open", true, make([]byte, large))
		now = now.Add(openAge)
		put("q", "newer", false, 1)
		wantRecord(t, s, "p", "s", "open", true, nil)
	})
}
