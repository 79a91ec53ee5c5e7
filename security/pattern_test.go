package security

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp/syntax"
	"slices"
	"testing"
)

// Looking only at lines that can match finds what looking at all finds.
func TestPatternsFindTheSameLineByLine(t *testing.T) {
	p, err := Preset("strict")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("files = %v, err = %v, want no error, files not empty", files, err)
	}
	lines, found := 0, 0
	for i := range p.Patterns {
		c, err := newPattern(&p.Patterns[i])
		if err != nil {
			t.Fatal(err)
		}
		if c.oneLine && len(c.needs) > 0 {
			lines++
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := c.find(text)
			if want := c.re().FindAllIndex(text, -1); !reflect.DeepEqual(got, want) {
				t.Errorf("%s in %s: got %v, want %v", c.Pattern.Pattern, file, got, want)
			}
			found += len(got)
		}
	}
	if lines < 10 || found < 50 {
		t.Errorf("%d patterns are looked for by lines, %d matches, want lines >= 10, found >= 50", lines, found)
	}
}

func TestWhatAPatternNeeds(t *testing.T) {
	for text, want := range map[string]struct {
		needs   []string
		oneLine bool
	}{
		`\brm\s+-rf`:      {[]string{"-rf"}, false},
		`rm[ \t]+`:        {[]string{"rm"}, true},
		`(ab|cde)f?`:      {[]string{"ab", "cde"}, true},
		`(ab|\d)x`:        {[]string{"x"}, true},
		`(?i)ab`:          {nil, true},
		`.+`:              {nil, true},
		`(?s).+`:          {nil, false},
		`(?m)^ab`:         {[]string{"ab"}, false},
		`[^b]a`:           {[]string{"a"}, false},
		`(abc)+|[^\n]abc`: {[]string{"abc", "abc"}, true},
	} {
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		tree = tree.Simplify()
		if got := needs(tree); !slices.Equal(got, want.needs) || oneLine(tree) != want.oneLine {
			t.Errorf("%s: %q, %v, want got %q, oneLine(tree) = %v", text, got, oneLine(tree), want.needs, want.oneLine)
		}
	}
}
