// Package docs_test keeps what README.md and docs/ say true: their Go code compiles, the
// commands and flags they show exist, and their links lead somewhere.
package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// A block is the content of a code block.
type block struct {
	file, language, text string
}

// pages are the texts for users and contributors, by their paths from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(names) < 10 {
		t.Fatalf("docs: %d, %v, want no error, len(names) >= 10", len(names), err)
	}
	frameworks, err := filepath.Glob(filepath.Join(root, "docs", "frameworks", "*.md"))
	if err != nil || len(frameworks) < 10 {
		t.Fatalf("docs/frameworks: %d, %v, want no error, len(frameworks) >= 10", len(frameworks), err)
	}
	names = append(names, frameworks...)
	more, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil || len(more) < 3 {
		t.Fatalf("pages: %d, %v, want no error, len(more) >= 3", len(more), err)
	}
	all := map[string]string{}
	for _, name := range append(names, more...) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(rel)] = string(b)
	}
	return all
}

// blocks are a page's code blocks.
func blocks(file, text string) (all []block) {
	var open *block
	for line := range strings.Lines(text) {
		mark, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &block{file: file, language: mark}
		case fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return all
}
