package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere follows the links to files of the repository, and to headings.
func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for file, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(file), target))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere, want no error", file, m[1])
				continue
			}
			if page, ok := all[path]; ok && heading != "" && !headings(page)[heading] {
				t.Errorf("%s: the link to %s: there is no such heading, want ok = false or heading empty or headings(page)[heading] = true", file, m[1])
			}
		}
	}
}

var notOfAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// headings are the anchors of a page, as the usual viewers make them.
func headings(page string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all[strings.ReplaceAll(notOfAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")] = true
		}
	}
	return all
}
