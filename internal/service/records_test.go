package service

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemory: records are their project's and sandbox's, and go when they are old, or too many.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		put := func(project, sandbox, name string, open bool, size int) {
			t.Helper()
			if err := m.PutRecord(t.Context(), project, sandbox, name, open, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		want := func(project, sandbox, name string, open bool, size int) {
			t.Helper()
			data, state, err := m.Record(t.Context(), project, sandbox, name)
			if size < 0 {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s/%s/%s: %d bytes, %v, want none", project, sandbox, name, len(data), err)
				}
			} else if err != nil || state != open || len(data) != size {
				t.Errorf("%s/%s/%s: %d bytes, %t, %v, want %d, %t", project, sandbox, name, len(data), state, err, size, open)
			}
		}
		put("p", "s", "a", true, 1)
		put("p", "s", "a", false, 2)
		put("p", "s", "open", true, 3)
		put("p", "other", "a", false, 4)
		want("p", "s", "a", false, 2)
		want("q", "s", "a", false, -1)
		if names, err := m.OpenRecords(t.Context(), "p", "s"); err != nil || !slices.Equal(names, []string{"open"}) {
			t.Errorf("open: %q, %v, want one", names, err)
		}
		for i := range 3 {
			put("p", "s", strconv.Itoa(i), false, recordBytes/3+1)
		}
		want("p", "s", "a", false, -1)
		want("p", "s", "0", false, -1)
		want("p", "s", "1", false, recordBytes/3+1)
		want("p", "s", "open", true, 3)
		time.Sleep(recordAge + time.Second)
		put("q", "s", "new", false, 5)
		want("p", "s", "2", false, -1)
		want("p", "s", "open", true, 3)
		for _, want := range []bool{true, false} {
			if added, err := m.AddRecord(t.Context(), "q", "s", "once", []byte("x")); added != want || err != nil {
				t.Errorf("added: %t, %v, want %t", added, err, want)
			}
		}
		want("q", "s", "once", false, 1)
		if err := m.RemoveRecord(t.Context(), "q", "s", "once"); err != nil {
			t.Error(err)
		}
		want("q", "s", "once", false, -1)
		if err := m.RemoveRecords(t.Context(), "p", "s"); err != nil {
			t.Fatal(err)
		}
		want("p", "s", "open", true, -1)
		want("q", "s", "new", false, 5)
	})
}
