package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// TestLibrariesWithoutAPackageTool has an image with an interpreter and nothing to install
// with.
func TestLibrariesWithoutAPackageTool(t *testing.T) {
	sb, err := llmsandbox.Open(t.Context(), &llmsandbox.Options{Image: testimage.Python(t), BestEffort: true, Libraries: []string{"six"}})
	if err == nil {
		sb.Close()
	}
	if !errors.Is(err, llmsandbox.ErrInstall) || !errors.Is(err, llmsandbox.ErrToolchain) || !strings.Contains(err.Error(), "pip3") {
		t.Errorf("%v, want llmsandbox.ErrInstall, llmsandbox.ErrToolchain, an error containing \"pip3\"", err)
	}
}

// TestLibrariesAreWhole installs what this machine's Python has already.
func TestLibrariesAreWhole(t *testing.T) {
	wheels := t.TempDir()
	testpackage.Wheel(t, wheels, "pip", "0.0.1", map[string]string{"not_pip.py": "answer = 42\n"}, "not-pip=not_pip:main")
	sb, err := llmsandbox.Open(t.Context(), &llmsandbox.Options{BestEffort: true, Libraries: []string{"pip"}, Install: llmsandbox.InstallOptions{Local: wheels}})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	const code = "import importlib.metadata, not_pip; print(not_pip.answer, importlib.metadata.version('pip'))"
	if res, err := sb.Run(t.Context(), code, nil); err != nil || res.Stdout != "42 0.0.1\n" {
		t.Errorf("%+v, %v, want no error, Stdout = %q", res, err, "42 0.0.1\n")
	}
}
