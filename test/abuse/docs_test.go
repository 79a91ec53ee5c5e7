package abuse

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameRealTests keeps docs/abuse.md and docs/acceptance.md true: each test and
// each case of the conformance suite that they name exists, each case of the suite that
// has a number is named, and each case of this package has its row.
func TestDocsNameRealTests(t *testing.T) {
	const root = "../.."
	var sources strings.Builder
	for _, dir := range []string{"test/e2e", "backend/local", "internal/cli", "internal/egress", "internal/language/python", "internal/language/declared", "internal/language/all", "security", "pool", "mcp", "internal/httpgate", "internal/sessions", "internal/mcpenv", "test/kubernetes"} {
		names, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("tests of %s: %d, %v, want no error, names not empty", dir, len(names), err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(b)
		}
	}
	suite, err := os.ReadFile(filepath.Join(root, "backend/backendtest/run.go"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{} // of the suite, and whether they are named
	for _, m := range regexp.MustCompile(`(?m)^\t\{"(\w+)", \w+Tier, `).FindAllStringSubmatch(string(suite), -1) {
		cases[m[1]] = false
	}
	for _, doc := range []string{"docs/abuse.md", "docs/acceptance.md"} {
		b, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)(\\*?)").FindAllStringSubmatch(text, -1) {
			declaration := "func " + m[1]
			if m[2] == "" {
				declaration += "("
			}
			if !strings.Contains(sources.String(), declaration) {
				t.Errorf("%s names %s, which does not exist, want sources containing %q", doc, m[1], declaration)
			}
		}
		for _, m := range regexp.MustCompile("`((?:Acceptance|Abuse)[A-Za-z0-9]*)(\\*?)[/`]").FindAllStringSubmatch(text, -1) {
			known := false
			for name := range cases {
				if name == m[1] || m[2] != "" && strings.HasPrefix(name, m[1]) {
					known, cases[name] = true, true
				}
			}
			if !known {
				t.Errorf("%s names %s, want a case of the suite", doc, m[1])
			}
		}
		for _, m := range regexp.MustCompile("`([a-z]+\\.txtar)`").FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, "internal/cli/testdata/script", m[1])); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
		if doc != "docs/abuse.md" {
			continue
		}
		for _, c := range Cases() {
			row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*catalogue`, c.Number))
			if !row.MatchString(text) {
				t.Errorf("%s has no row for case %d that names the catalogue, want row.MatchString(text) = true", doc, c.Number)
			}
		}
	}
	for name, named := range cases {
		if !named && (strings.HasPrefix(name, "Abuse") || strings.HasPrefix(name, "Acceptance")) {
			t.Errorf("no document names the suite's %s, want one", name)
		}
	}
	if len(cases) < 50 {
		t.Errorf("only %d cases were found in the suite, want at least 50", len(cases))
	}
}
