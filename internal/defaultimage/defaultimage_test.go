package defaultimage_test

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// dockerfiles is where they are, in directories named after the languages.
const dockerfiles = "../../images"

// The table in the code and the Dockerfiles say the same, for every language.
func TestDefaultsAreTheDockerfiles(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(dockerfiles, "*", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	// These are of no language: scripts/agent-image and scripts/cli-image build them.
	dirs = slices.DeleteFunc(dirs, func(f string) bool { name := filepath.Base(filepath.Dir(f)); return name == "agent" || name == "cli" })
	for _, l := range all.Coded() {
		d, ok := defaultimage.For(l.Name)
		if !ok {
			t.Errorf("%s has no default image, want one", l.Name)
			continue
		}
		dir := language.Family(l.Name)
		lines := read(t, filepath.Join(dockerfiles, dir, "Dockerfile"))
		for _, want := range []string{"ARG BASE=" + d.Official, "FROM ${BASE}", "USER 1000:1000", "WORKDIR /sandbox"} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s/Dockerfile has no line %q", dir, want)
			}
		}
		if i := slices.Index(dirs, filepath.Join(dockerfiles, dir, "Dockerfile")); i >= 0 {
			dirs = slices.Delete(dirs, i, i+1)
		}
	}
	if len(dirs) > 0 {
		t.Errorf("no language has these: %v, want none", dirs)
	}
}

// A base that moves under the same name would make other images of the same Dockerfile.
func TestBasesArePinned(t *testing.T) {
	for _, l := range all.Coded() {
		d, _ := defaultimage.For(l.Name)
		if _, tag, ok := strings.Cut(d.Official, ":"); !ok || tag == "latest" {
			t.Errorf("%s: the base %q has no tag of its own, want ok = true, tag != \"latest\"", l.Name, d.Official)
		}
	}
}

func TestNoDefault(t *testing.T) {
	if d, ok := defaultimage.For("cobol"); ok {
		t.Errorf("cobol has a default image: %v, want none", d)
	}
}

func TestDeclared(t *testing.T) {
	if d, ok := defaultimage.For("perl"); !ok || d.Name != "perl:5-slim" || d.Official != d.Name {
		t.Errorf("perl: %+v, %v, want the image that its declaration names", d, ok)
	}
	if d, ok := defaultimage.For("lua"); ok {
		t.Errorf("lua: %+v, want none: its declaration names none", d)
	}
}

func read(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
