package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPartsOfTheCheck: a part whose directory was renamed would never again be in the reach of a change.
func TestPartsOfTheCheck(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(root, ".ci", "parts"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[0]) + `:.* ## `).Match(makefile) {
			t.Errorf("%s is no target of the Makefile, want regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[0]) + `:.* ## `).Match(makefile) = true", words[0])
		}
		if len(words) < 3 || !regexp.MustCompile(`^[0-9a-f]{12,40}$`).MatchString(words[1]) {
			t.Fatalf("no commit, or no paths: %s, want len(words) >= 3, regexp.MustCompile(`^[0-9a-f]{12,40}$`).MatchString(words[1]) = true", line)
		}
		for _, path := range words[2:] {
			pattern, _ := strings.CutPrefix(path, ":!")
			var found []string
			for _, p := range []string{pattern, strings.Replace(pattern, "/*", "/*/*", 1)} { // to git, a star goes into directories
				files, err := filepath.Glob(filepath.Join(root, p))
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, files...)
			}
			if len(found) == 0 {
				t.Errorf("%s: %s: got no files, want found not empty", words[0], path)
			}
		}
	}
}

// TestEveryTestIsInAPart: what unit and programs leave out by name, another part has by name.
func TestEveryTestIsInAPart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(`(?m)^WHOLE := (.+)$`).FindSubmatch(text)
	if whole == nil {
		t.Fatalf("the Makefile has no WHOLE: whole = %v, want not nil", whole)
	}
	leftOut := regexp.MustCompile(strings.ReplaceAll(string(whole[1]), "$$", "$"))
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(` \./([a-z0-9/]*[a-z0-9])`).FindAllSubmatch(text, -1) {
		named[string(m[1])] = true
	}
	var out int
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, path)
		if !d.IsDir() || dir == "." {
			return nil
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "testdata" || d.Name()[0] == '.' {
			return fs.SkipDir // another module, or no packages of this one
		}
		tests, _ := filepath.Glob(filepath.Join(path, "*_test.go"))
		if len(tests) == 0 || !leftOut.MatchString("github.com/llmsandbox/llmsandbox/"+filepath.ToSlash(dir)) {
			return nil
		}
		out++
		if !named[filepath.ToSlash(dir)] {
			t.Errorf("%s has tests, want it in a part of the check", dir)
		}
		return nil
	})
	if err != nil || out < 5 {
		t.Errorf("%d packages left out by unit, %v, want no error, out >= 5", out, err)
	}
}
