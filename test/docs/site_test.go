package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSite builds the documentation's site, which fails on a link that leads nowhere.
func TestSite(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") != "" {
			t.Fatalf("npm: %v, want it here: the site is built with it", err)
		}
		t.Skip("npm is not here: the site is built with it")
	}
	if out, err := exec.Command("make", "-C", root, "docs").CombinedOutput(); err != nil {
		t.Fatalf("make docs: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(root, "dist", "docs", "llms.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range inSidebar(t) {
		if link := "(/" + name + ".md)"; !strings.Contains(string(text), link) {
			t.Errorf("llms.txt = %s, want %s in it", text, link)
		}
	}
}

// TestSidebar holds that the site's navigation and docs/ name the same pages.
func TestSidebar(t *testing.T) {
	named := inSidebar(t)
	for file := range pages(t) {
		name, in := strings.CutPrefix(strings.TrimSuffix(file, ".md"), "docs/")
		if in && name != "index" && !named[name] {
			t.Errorf("%s is not in the sidebar of docs/.vitepress/config.mjs, want it there", file)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("the sidebar has %s, want a file docs/%s.md", name, name)
	}
}

var entry = regexp.MustCompile(`\bpage\((?:'[^']*'|"[^"]*"), '([a-z0-9/-]+)'\)`)

// inSidebar are the pages that the site's navigation names.
func inSidebar(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", ".vitepress", "config.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range entry.FindAllStringSubmatch(string(text), -1) {
		if named[m[1]] {
			t.Errorf("the sidebar has %s twice, want it once", m[1])
		}
		named[m[1]] = true
	}
	if len(named) < 20 {
		t.Fatalf("%d pages in the sidebar, want at least 20", len(named))
	}
	return named
}
