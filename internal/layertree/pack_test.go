package layertree

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackAll(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(one, "f"), []byte("1"), 0o644), os.Mkdir(filepath.Join(two, "d"), 0o755),
		os.WriteFile(filepath.Join(two, "d", "f"), []byte("2"), 0o755), os.Symlink("d", filepath.Join(two, "l")))
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := PackAll(t.Context(), &buf, one, t.TempDir(), two); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for tr := tar.NewReader(&buf); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(data) + h.Linkname
	}
	want := map[string]string{"0/": "", "0/f": "1", "1/": "", "2/": "", "2/d/": "", "2/d/f": "2", "2/l": "d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	missing := filepath.Join(one, "missing")
	if err := PackAll(t.Context(), io.Discard, one, missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a directory that is not there: %v, want an error containing %q", err, missing)
	}
}
