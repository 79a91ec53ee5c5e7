package bounded

import (
	"io"
	"strings"
	"testing"
)

func TestWriter(t *testing.T) {
	for name, c := range map[string]struct {
		writes []string
		kept   string
		cut    bool
	}{
		"nothing":         {},
		"less":            {writes: []string{"ab"}, kept: "ab"},
		"as much":         {writes: []string{"ab", "cd"}, kept: "abcd"},
		"more at once":    {writes: []string{"abcdef"}, kept: "abcd", cut: true},
		"more afterwards": {writes: []string{"abc", "de", "f"}, kept: "abcd", cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := Writer{Most: 4}
			for _, text := range c.writes {
				if n, err := io.Copy(&b, strings.NewReader(text)); err != nil || n != int64(len(text)) {
					t.Errorf("wrote %d of %q: %v, want no error, n = %d", n, text, err, int64(len(text)))
				}
			}
			if string(b.Kept) != c.kept || b.Cut != c.cut {
				t.Errorf("kept %q, cut %v, want kept = %v, cut = %v", b.Kept, b.Cut, c.kept, c.cut)
			}
		})
	}
}
