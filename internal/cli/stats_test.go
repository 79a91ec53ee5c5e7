package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// A value that is not known is never 0, and 0 is a value.
func TestStats(t *testing.T) {
	for _, c := range []struct {
		usage       backend.Usage
		json, table string
	}{
		{backend.Usage{}, `{"id":"sb-1"}`, "sb-1  -         -       -"},
		{backend.Usage{MemoryKnown: true, CPUKnown: true}, `{"id":"sb-1","cpu_ms":0,"memory_bytes":0}`, "sb-1  0s        0 B     -"},
		{backend.Usage{MemoryKnown: true, Memory: 1536, MemoryPeak: 64 << 20, CPUKnown: true, CPU: 1234567 * time.Microsecond},
			`{"id":"sb-1","cpu_ms":1234.567,"memory_bytes":1536,"peak_memory_bytes":67108864}`, "sb-1  1.235s    1.5 KiB  64 MiB"},
	} {
		s := statsOf("sb-1", c.usage)
		if got, err := json.Marshal(s); err != nil || string(got) != c.json {
			t.Errorf("JSON of %+v: got %s, %v; want %s", c.usage, got, err, c.json)
		}
		var out strings.Builder
		if err := printStats(&out, []stats{s}); err != nil {
			t.Fatal(err)
		}
		if _, row, _ := strings.Cut(out.String(), "\n"); strings.TrimSpace(row) != c.table {
			t.Errorf("table of %+v: got %q, want %q", c.usage, row, c.table)
		}
	}
}

// One sandbox's error hides no other sandbox. That a listed one has ended is no error.
func TestMeasureGoesOn(t *testing.T) {
	broken := errors.New("broken")
	ask := func(id string) (backend.Usage, error) {
		switch id {
		case "gone":
			return backend.Usage{}, fmt.Errorf("%s: %w", id, llmsandbox.ErrNotFound)
		case "ended":
			return backend.Usage{}, fmt.Errorf("%s: %w", id, llmsandbox.ErrClosed)
		case "broken":
			return backend.Usage{}, broken
		}
		return backend.Usage{}, nil
	}
	ids := []string{"gone", "a", "ended", "broken", "b"}
	for _, listed := range []bool{false, true} {
		rows, err := measure(ids, listed, ask)
		if len(rows) != 2 || rows[0].ID != "a" || rows[1].ID != "b" {
			t.Errorf("listed %v: got %v, want a and b", listed, rows)
		}
		if !errors.Is(err, broken) || errors.Is(err, llmsandbox.ErrNotFound) == listed || errors.Is(err, llmsandbox.ErrClosed) == listed {
			t.Errorf("listed %v: got %v, want broken, and ErrNotFound and ErrClosed unless listed", listed, err)
		}
	}
}
