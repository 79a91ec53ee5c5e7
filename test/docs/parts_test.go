package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPartsOfTheCheck: a part whose folder was renamed would never again be in the reach of a change.
func TestPartsOfTheCheck(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(root, ".ci", "parts"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "passed":
			passed++
			if len(words) != 2 || !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(words[1]) {
				t.Errorf("not one whole commit: %s", line)
			}
		default:
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[0]) + `:.* ## `).Match(makefile) {
				t.Errorf("%s is no target of the Makefile", words[0])
			}
			if len(words) < 2 {
				t.Errorf("%s has no paths", words[0])
			}
			for _, path := range words[1:] {
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Errorf("%s: %v", words[0], err)
				}
			}
		}
	}
	if passed != 1 {
		t.Errorf("%d lines name the commit that passed", passed)
	}
}
