package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestPrunable(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	layers := []backend.LayerInfo{
		{Key: "new", Size: 10, LastUsed: ago(time.Minute)},
		{Key: "week", Size: 20, LastUsed: ago(7 * 24 * time.Hour), Created: now},
		{Key: "engine", Size: 30, Created: ago(30 * 24 * time.Hour)},
		{Key: "busy", Size: 40, LastUsed: ago(90 * 24 * time.Hour), InUse: true},
	}
	for name, c := range map[string]struct {
		age  time.Duration
		most int64
		want []string
	}{
		"nothing":       {age: 365 * 24 * time.Hour},
		"by age":        {age: 3 * 24 * time.Hour, want: []string{"engine", "week"}},
		"by size":       {age: 365 * 24 * time.Hour, most: 75, want: []string{"engine"}},
		"more by size":  {age: 365 * 24 * time.Hour, most: 60, want: []string{"engine", "week"}},
		"both":          {age: 10 * 24 * time.Hour, most: 50, want: []string{"engine", "week"}},
		"never the one": {age: 0, most: 1, want: []string{"engine", "week", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range prunable(layers, now.Add(-c.age), c.most) {
				got = append(got, l.Key)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
