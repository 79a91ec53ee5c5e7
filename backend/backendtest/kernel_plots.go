package backendtest

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance69PlotsOfCells(t *testing.T) {
	k := openKernel(t, s.plots(t, llmsandbox.Options{}), "", nil)
	cell(t, k, "import matplotlib.pyplot as plt, pandas as pd", nil)
	for _, code := range []string{"plt.plot([1, 3, 2])", "plt.plot([1]); plt.show()"} {
		c := cell(t, k, code, nil)
		if !c.OK() || len(c.Artifacts) != 1 || c.Artifacts[0].MIME != "image/png" || c.Stdout != "" {
			t.Fatalf("%s: %s, %d artifacts, %q, %+v, want OK, len(c.Artifacts) = 1, MIME = \"image/png\", Stdout empty", code, c.Status, len(c.Artifacts), c.ArtifactsDropped, c.Error)
		}
		wantDrawn(t, c.Artifacts[0])
	}
	if c := cell(t, k, "1", nil); len(c.Artifacts) != 0 {
		t.Errorf("a cell that plots nothing: %d artifacts, want 0", len(c.Artifacts))
	}
	if c := cell(t, k, "pd.DataFrame({'a': [1, 2]})", nil); !strings.Contains(c.Value["text/html"], "<table") || c.Value["text/plain"] == "" {
		t.Errorf("a table: %q, want it to contain \"<table\", c.Value[\"text/plain\"] not empty", c.Value)
	}
}
