package python

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestArchive: capture.zip has what the modules are now.
func TestArchive(t *testing.T) {
	r, err := zip.NewReader(bytes.NewReader(library), int64(len(library)))
	if err != nil {
		t.Fatal(err)
	}
	packed := map[string][]byte{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if packed[f.Name], err = io.ReadAll(in); err != nil || f.Method != zip.Store {
			t.Errorf("%s: %v, method %d, want it to be stored", f.Name, err, f.Method)
		}
	}
	modules, err := filepath.Glob("capture/llmsandbox_capture/*.py")
	if err != nil || len(modules) == 0 || len(modules) != len(packed) {
		t.Errorf("%d modules in capture.zip of %d (%v): run make generate", len(packed), len(modules), err)
	}
	for _, name := range modules {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(packed["llmsandbox_capture/"+filepath.Base(name)], source) {
			t.Errorf("capture.zip has another %s: run make generate", name)
		}
	}
}
