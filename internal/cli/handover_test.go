//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFindProgram(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"a/tool": 0o755, "b/tool": 0o755, "data/tool": 0o644, "other/self": 0o755} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "folder/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "b"))
	in := func(names ...string) (dirs []string) {
		for _, name := range names {
			if name == "" || name == "." || name == "../b" {
				dirs = append(dirs, name)
				continue
			}
			dirs = append(dirs, filepath.Join(root, name))
		}
		return dirs
	}
	for _, c := range []struct {
		beside, path []string
		want         string
	}{
		{in("other", "a"), in("b"), "a/tool"},
		{in("other"), in("other", "b", "a"), "b/tool"},
		{nil, in("", ".", "../b", "a"), "a/tool"},
		{in("other"), in("", ".", "../b"), ""},
		{in("data"), in("folder", "nowhere"), ""},
	} {
		got, err := findIn("tool", c.beside, c.path)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "tool is not beside this program ("+c.beside[0]+") or in PATH") {
				t.Errorf("%q, %q: %q, %v, want an error, strings.Contains(err.Error(), \"tool is not beside this program (\"+c.beside[0]+\") or in PATH\") = true", c.beside, c.path, got, err)
			}
			continue
		}
		if want := filepath.Join(root, c.want); got != want || err != nil {
			t.Errorf("%q, %q: %q, %v, want %s", c.beside, c.path, got, err, want)
		}
	}
}

func TestDirsOfALink(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, link := filepath.Join(root, "real"), filepath.Join(root, "link")
	for _, dir := range []string{real, link} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(real, "self"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(real, "self"), filepath.Join(link, "self")); err != nil {
		t.Fatal(err)
	}
	if got := directoriesOf(filepath.Join(link, "self")); !slices.Equal(got, []string{link, real}) {
		t.Errorf("of a link: %q, want %q", got, []string{link, real})
	}
	if got := directoriesOf(filepath.Join(real, "self")); !slices.Equal(got, []string{real}) {
		t.Errorf("of none: %q, want %q", got, []string{real})
	}
}

func TestHowToGet(t *testing.T) {
	for build, want := range map[string]string{
		"0.1.0 v0.1.0": "llmsandbox-kubernetes@v0.1.0`", "0.1.0-dev v0.0.0-20260102030405-0123456789ab+dirty": "", "0.1.0-dev (devel)": "", "0.1.0-dev": "", "": "",
	} {
		got := howToGet(build)
		if !strings.Contains(got, "make build") || strings.Contains(got, "go install") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: %s, want got containing \"make build\", strings.Contains(got, \"go install\") = %v, got containing %q", build, got, want != "", want)
		}
	}
}
