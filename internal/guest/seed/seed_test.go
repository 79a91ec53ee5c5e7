//go:build linux

package seed

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o444); err != nil {
		t.Fatal(err)
	}
}

func TestPlant(t *testing.T) {
	source, target := t.TempDir(), filepath.Join(t.TempDir(), "made", "too")
	write(t, source+"/a", "A")
	write(t, source+"/deep/er/b", "B")
	write(t, source+"/.hidden", "H")
	if err := os.Mkdir(source+"/empty", 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", source+"/link"); err != nil {
		t.Fatal(err)
	}
	// Never followed: what it leads to is not the source's.
	if err := os.Symlink("/proc", source+"/away"); err != nil {
		t.Fatal(err)
	}
	p, err := Parse(source + "=" + target)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time changes nothing
		if err := p.Plant(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	filepath.WalkDir(target, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		rel, _ := filepath.Rel(target, name)
		got = append(got, d.Type().String()[:1]+rel)
		return nil
	})
	if want := "d. L.hidden La Laway ddeep ddeep/er Ldeep/er/b dempty Llink"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for name, want := range map[string]string{"a": "A", "deep/er/b": "B", "link": "A"} {
		if text, err := os.ReadFile(filepath.Join(target, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v, want no error, text = %v", name, text, err, want)
		}
	}
	// Writable: new entries, and old ones replaced as caches do.
	write(t, target+"/empty/new", "n")
	write(t, target+"/temporary", "other")
	if err := os.Rename(target+"/temporary", target+"/a"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(source + "/a"); err != nil || string(text) != "A" {
		t.Errorf("the source changed: %q, %v, want no error, text = \"A\"", text, err)
	}
}

func TestPlantFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for name, c := range map[string]struct {
		p    Pair
		says string
	}{
		"no source":          {Pair{"/nowhere/at/all", t.TempDir()}, "open the source"},
		"a file as source":   {Pair{file, t.TempDir()}, "not a directory"},
		"a file in the way":  {Pair{t.TempDir(), file + "/x"}, "make the target"},
		"no place to put it": {Pair{t.TempDir(), "/proc/nowhere"}, "make the target"},
		"too deep":           {Pair{deep(t), t.TempDir()}, "in each other"},
	} {
		if err := c.p.Plant(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error containing %q", name, err, c.says)
		}
	}
}

func deep(t *testing.T) string {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+strings.Repeat("/d", maxDepth+1), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestGoBuildCache: the go command takes what it needs from a cache that it gets as
// links, and can add to it, without being able to write to the cache behind them.
func TestGoBuildCache(t *testing.T) {
	prepared, project := t.TempDir(), t.TempDir()
	build := func(cache, name string, flags ...string) string {
		t.Helper()
		cmd := exec.Command("go", append(append([]string{"build", "-x", "-o", filepath.Join(project, name)}, flags...), filepath.Join(project, name+".go"))...)
		cmd.Env = append(os.Environ(), "GOCACHE="+cache, "GOFLAGS=", "GO111MODULE=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	compiles := func(log string) int { return strings.Count(log, "/compile -o ") }
	write(t, project+"/one.go", `package main; import "strings"; func main() { println(strings.ToUpper("x")) }`)
	write(t, project+"/two.go", `package main; import "strings"; func main() { println(strings.ToLower("X")) }`)
	if n := compiles(build(prepared, "one")); n < 5 {
		t.Fatalf("the first build compiled %d packages, want at least 5", n)
	}
	// As the language prepares it.
	if err := os.Remove(filepath.Join(prepared, "trim.txt")); err != nil {
		t.Fatal(err)
	}
	before := listing(t, prepared)
	cache := filepath.Join(t.TempDir(), "cache")
	if err := (Pair{prepared, cache}).Plant(); err != nil {
		t.Fatal(err)
	}
	if n := compiles(build(cache, "two")); n != 1 {
		t.Errorf("a build with the links compiled %d packages, want the program alone", n)
	}
	if n := compiles(build(cache, "one")); n != 0 {
		t.Errorf("what is in the cache was compiled again: %d packages, want 0", n)
	}
	if after := listing(t, prepared); after != before {
		t.Errorf("the prepared cache changed: %s\nnow: %s", before, after)
	}
}

// listing returns names and sizes of all files.
func listing(t *testing.T, dir string) string {
	var list strings.Builder
	err := filepath.Walk(dir, func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			list.WriteString(strings.TrimPrefix(name, dir) + " " + strconv.FormatInt(info.Size(), 10) + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}
