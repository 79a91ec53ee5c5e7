package e2e

import (
	"cmp"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/backendtest"
)

// TestWarmConformance is the suite with runs and kernels that are forked from an interpreter with
// imported modules, in every sandbox of Python.
func TestWarmConformance(t *testing.T) {
	c := conformance(t.TempDir())
	c.Lacks = map[backendtest.Feature]string{backendtest.FreshInterpreters: "each sandbox has one that forks"}
	c.Options = func(o *llmsandbox.Options) {
		if cmp.Or(o.Language, llmsandbox.DefaultLanguage) == llmsandbox.DefaultLanguage && !o.Artifacts.Off && len(o.Imports) == 0 {
			o.Imports = []string{"decimal"}
		}
	}
	backendtest.Run(t, c)
}
