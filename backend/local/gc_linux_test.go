package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSweepDue: one process sweeps, the next ones only when it is due again.
func TestSweepDue(t *testing.T) {
	d := dirs{state: t.TempDir()}
	stamp := filepath.Join(d.state, "swept")
	for _, c := range []struct {
		name string
		age  time.Duration // of the stamp
		want bool
	}{{"never", 0, true}, {"just now", 0, false}, {"a while ago", sweepEvery / 2, false}, {"long ago", 2 * sweepEvery, true}, {"in the future", -2 * sweepEvery, true}} {
		if c.age != 0 {
			at := time.Now().Add(-c.age)
			if err := os.Chtimes(stamp, at, at); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.sweepDue(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
