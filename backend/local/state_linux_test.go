package local

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		id   bool
	}{
		{"sb-0a", true},
		{"a", true},
		{"-a", true},
		{"", false},
		{"A", false},
		{"a/b", false},
		{"..", false},
		{"a\n", false},
		{"a\x00", false},
		{"ä", false},
		{"\xff", false},
		{strings.Repeat("a", 40), true},
		{strings.Repeat("a", 41), false},
	} {
		if validID(c.name) != c.id {
			t.Errorf("%q: %v, want %v", c.name, !c.id, c.id)
		}
	}
}
