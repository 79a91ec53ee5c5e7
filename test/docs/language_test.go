package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLanguageExample: the page on languages of one's own shows the example as it is, but for what it leaves out.
func TestLanguageExample(t *testing.T) {
	const page = "docs/add-a-language.md"
	example, err := os.ReadFile(filepath.Join(root, "examples", "languages", "awk.toml"))
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Split(string(example), "\n")
	for _, b := range blocks(page, pages(t)[page]) {
		if b.language != "toml" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line = strings.TrimSuffix(line, "\n")
			i := slices.Index(rest, line)
			if i < 0 {
				t.Fatalf("the page has the line %q, want lines of the example in their order", line)
			}
			rest = rest[i+1:]
		}
		return
	}
	t.Error("the page shows no declaration, want the example")
}
