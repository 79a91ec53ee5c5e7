package backendtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// hostTree makes files of a host directory: a name that ends in a slash is a directory.
func hostTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hostFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func copyIn(t testing.TB, sb *llmsandbox.Sandbox, host, path string) llmsandbox.CopyResult {
	t.Helper()
	res, err := sb.CopyIn(testContext(t), host, path)
	if err != nil {
		t.Fatalf("%v\nresult: %+v", err, res)
	}
	return res
}

func copyOut(t testing.TB, sb *llmsandbox.Sandbox, path, host string) llmsandbox.CopyResult {
	t.Helper()
	res, err := sb.CopyOut(testContext(t), path, host)
	if err != nil {
		t.Fatalf("%v\nresult: %+v", err, res)
	}
	return res
}

// plantFile makes a file that holds the canary and returns its path.
func plantFile(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "."+abuse.Canary+"-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	})
	_, err = f.WriteString(abuse.Canary)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// wantOnlyPlainFiles checks that what was copied out holds nothing but directories and
// regular files without the canary, and returns their number.
func wantOnlyPlainFiles(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		if !d.Type().IsRegular() {
			t.Errorf("%s is %v, want d.Type().IsRegular() = true", path, d.Type())
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), abuse.Canary) {
			t.Errorf("%s holds the canary, want data without Canary", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return n
}
