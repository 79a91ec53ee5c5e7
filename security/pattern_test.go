package security

import (
	"regexp/syntax"
	"slices"
	"testing"
)

func TestWhatAPatternNeeds(t *testing.T) {
	for text, want := range map[string][]string{
		`\brm\s+-rf`:      {"-rf"},
		`rm[ \t]+`:        {"rm"},
		`(ab|cde)f?`:      {"ab", "cde"},
		`(ab|\d)x`:        {"x"},
		`(?i)ab`:          nil,
		`.+`:              nil,
		`(?m)^ab`:         {"ab"},
		`[^b]a`:           {"a"},
		`(abc)+|[^\n]abc`: {"abc", "abc"},
	} {
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := needs(tree.Simplify()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
