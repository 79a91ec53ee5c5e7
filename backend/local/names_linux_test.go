package local

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name    string
		id, key bool
	}{
		{"sb-0a", true, true},
		{"a", true, true},
		{"-a", true, false},
		{"", false, false},
		{"A", false, false},
		{"a/b", false, false},
		{"..", false, false},
		{"a\n", false, false},
		{"a\x00", false, false},
		{"ä", false, false},
		{"\xff", false, false},
		{strings.Repeat("a", 40), true, true},
		{strings.Repeat("a", 41), false, true},
		{strings.Repeat("a", 100), false, true},
		{strings.Repeat("a", 101), false, false},
	} {
		if validID(c.name) != c.id || validKey(c.name) != c.key {
			t.Errorf("%q: id %v, key %v; want %v, %v", c.name, validID(c.name), validKey(c.name), c.id, c.key)
		}
	}
}
