package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
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
