package image

import (
	"strings"
	"testing"
)

func TestIgnore(t *testing.T) {
	for _, c := range []struct{ text, in, out string }{
		{"", "a .dockerignore", ""},
		{"# no\n\n  a  \n", "b ab xa/y", "a a/b"},
		{"*.log", "a/x.log x.logs", "x.log .log"},
		{"**/*.log", "", "x.log a/x.log a/b/x.log"},
		{"a/**/b", "a/c c/a/b", "a/b a/x/b a/x/y/b"},
		{"a/**", "b", "a/b a/b/c"},
		{"**", "", "a a/b .x"},
		{"/a/", "b/a", "a a/b"},
		{"a/../b", "a", "b"},
		{"?x[ab]", "x/xa yxc", "yxa"},
		{`a\*b`, "axb", "a*b"},
		{"a.b", "axb", "a.b"},
		{"*\n!keep\n!d/keep", "keep keep/x d/keep", "a d d/x"},
		{"d\n!d/keep\nd/keep/not", "d/keep d/keep/yes", "d d/x d/keep/not"},
		{".", "a", ""},
		{"\ufeffa", "b", "a"},
		{"a\r\nb", "c", "a b"},
	} {
		ig, err := parseIgnore([]byte(c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for _, name := range strings.Fields(c.in) {
			if ig.excludes(name) {
				t.Errorf("%q excludes %s, want ig.excludes(name) = false", c.text, name)
			}
		}
		for _, name := range strings.Fields(c.out) {
			if !ig.excludes(name) {
				t.Errorf("%q does not exclude %s, want ig.excludes(name) = true", c.text, name)
			}
		}
	}
	for _, bad := range []string{"!", "[", "[]", "a\\", "[z-a]"} {
		if _, err := parseIgnore([]byte(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v, want an error containing \"line 1\"", bad, err)
		}
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("a/**\n!b", "a/b")
	f.Add("[^a]?*\\", "x")
	f.Fuzz(func(t *testing.T, text, name string) {
		ig, err := parseIgnore([]byte(text))
		if err == nil && name != "" && name[0] != '/' {
			ig.excludes(name)
		}
	})
}
