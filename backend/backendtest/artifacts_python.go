package backendtest

import (
	"bytes"
	"image/png"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

// plots opens a sandbox with Python's plotting libraries.
func (s *suite) plots(t *testing.T, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Language = "python"
	if s.Image == nil {
		o.Env = systemPython
	}
	return s.science(t, o, "python3", "-c", "import numpy, pandas, matplotlib, seaborn, plotly")
}

func (s *suite) acceptance50to58PlotsOfPython(t *testing.T) {
	sb := s.plots(t, llmsandbox.Options{})
	const plt = "import matplotlib.pyplot as plt\n"
	for _, tt := range []struct{ name, code, want string }{
		{"50 plot and show", plt + "plt.plot([1, 3, 2]); plt.title('T'); plt.show()", "figure-1.png image/png"},
		{"51 a run that plots nothing", "", ""},
		{"53 subplots", plt + "fig, axes = plt.subplots(2, 2)\nfor ax in axes.flat: ax.plot([1, 2])\nplt.show()", "figure-1.png image/png"},
		{"54 two figures at one show", plt + "plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()", "figure-1.png image/png figure-2.png image/png"},
		{"55 a figure's savefig and show", plt + "fig, ax = plt.subplots(); ax.plot([1]); fig.savefig('a.png'); ax.plot([2]); fig.show()", "a.png image/png figure-1.png image/png"},
		{"55 jpg and memory", plt + "import io\nplt.plot([1]); plt.savefig('a.jpg'); plt.savefig(io.BytesIO())", "a.jpg image/jpeg figure-1.png image/png"},
		{"55 saved and shown", plt + "plt.plot([1]); plt.savefig('a.png'); plt.show()", "a.png image/png"},
		{"58 formats", plt + "plt.plot([1])\nfor kind in 'svg', 'pdf': plt.savefig('a.' + kind)", "a.svg image/svg+xml a.pdf application/pdf"},
		{"58 plotly", "import plotly.express as px; px.bar(x=['a', 'b'], y=[1, 2]).show()", "plotly-1.html text/html"},
		{"seaborn and pandas", plt + "import pandas as pd, seaborn as sns\nd = pd.DataFrame({'x': [1, 2], 'y': [3, 4]})\nsns.barplot(data=d, x='x', y='y'); plt.show(); d.plot(); plt.show()", "figure-1.png image/png figure-2.png image/png"},
		{"in the artifacts folder as well", plt + "plt.plot([1]); plt.savefig('/sandbox/artifacts/a.png')", "a.png image/png"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := run(t, sb, "from __future__ import annotations\nprint('said')\n"+tt.code, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, "said\n")
			if res.Stderr != "" {
				t.Errorf("stderr: %s, want Stderr empty", clip(res.Stderr))
			}
			var got []string
			for _, a := range res.Artifacts {
				got = append(got, a.Name, a.MIME)
			}
			if strings.Join(got, " ") != tt.want || len(res.ArtifactsDropped) > 0 {
				t.Errorf("artifacts %s, want %s; left out: %q", strings.Join(got, " "), tt.want, res.ArtifactsDropped)
			}
			for _, a := range res.Artifacts {
				wantDrawn(t, a)
			}
		})
	}
	t.Run("57 lines and tracebacks", func(t *testing.T) {
		res := run(t, sb, plt+"plt.plot([1]); plt.show()\nraise ValueError('x')", nil)
		wantExit(t, res, 1)
		wantArtifacts(t, res, "figure-1.png")
		if !strings.Contains(res.Stderr, `line 3, in <module>`) || strings.Count(res.Stderr, "  File ") != 1 {
			t.Errorf("stderr: %s, want Stderr containing \"line 3, in <module>\", strings.Count(res.Stderr, \"  File \") = 1", res.Stderr)
		}
	})
	t.Run("figures that were never shown", func(t *testing.T) {
		code := plt + "plt.plot([1])"
		wantArtifacts(t, run(t, sb, code, nil))
		wantArtifacts(t, run(t, sb, code, &llmsandbox.RunOptions{Artifacts: &llmsandbox.ArtifactOptions{Unshown: true}}), "figure-1.png")
		wantArtifacts(t, run(t, sb, code+"; plt.show()", &llmsandbox.RunOptions{Artifacts: &llmsandbox.ArtifactOptions{Off: true}}))
	})
}

// artifactsBeforeATimeout: what was shown before a run's time was over is there.
func (s *suite) artifactsBeforeATimeout(t *testing.T) {
	sb := s.plots(t, llmsandbox.Options{})
	res := run(t, sb, "import time, matplotlib.pyplot as plt\nplt.plot([1]); plt.show()\ntime.sleep(600)", &llmsandbox.RunOptions{Timeout: 20 * time.Second})
	wantStatus(t, res, llmsandbox.StatusTimeout)
	wantArtifacts(t, res, "figure-1.png")
}

// wantDrawn checks that an artifact's content is what it is said to be, and not blank;
// of pictures and pages also that their content is described.
func wantDrawn(t *testing.T, a artifact.Artifact) {
	t.Helper()
	if artifact.Verify(a.MIME, a.Data) != a.MIME || len(a.Data) < 1000 {
		t.Errorf("%s: %d bytes that are no %s", a.Name, len(a.Data), a.MIME)
	}
	if a.Chart == nil || len(a.Chart.Axes) == 0 {
		t.Errorf("%s: its content is not described, want Chart not nil, Axes not empty", a.Name)
	}
	if a.MIME != artifact.PNG {
		return
	}
	img, err := png.Decode(bytes.NewReader(a.Data))
	if err != nil {
		t.Errorf("%s: %v", a.Name, err)
		return
	}
	size, colours := img.Bounds().Size(), map[any]bool{}
	for y := range size.Y {
		for x := range size.X {
			colours[img.At(x, y)] = true
		}
	}
	if size.X != a.Width || size.Y != a.Height || size.X < 200 || len(colours) < 10 || a.DPI != 100 {
		t.Errorf("%s: %v with %d colours, described as %d by %d at %g dpi", a.Name, size, len(colours), a.Width, a.Height, a.DPI)
	}
}

// acceptance69PlotsOfKernelCells has cells that plot, with IPython where it is and without.
func (s *suite) acceptance69PlotsOfKernelCells(t *testing.T) {
	sb := s.plots(t, llmsandbox.Options{})
	for _, plain := range []bool{true, false} {
		k, err := sb.Kernel(testContext(t), "python", &llmsandbox.KernelOptions{Plain: plain})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			code, out, value string
			want             []string
		}{
			{"import matplotlib.pyplot as plt, pandas as pd\nprint('said')", "said\n", "", nil},
			{"_ = plt.plot([1, 2])", "", "", []string{"figure-1.png"}},
			{"fig, ax = plt.subplots(); _ = ax.plot([3]); plt.show()", "", "", []string{"figure-2.png"}},
			{"_ = ax.plot([4]); fig", "", "text/plain", []string{"figure-3.png"}},
			{"pd.DataFrame({'a': [1]})", "", "text/csv text/html text/plain", nil},
			{"display(pd.DataFrame({'a': [1]}), 3)", "3\n", "", []string{"display-1.html"}},
			{"import plotly.graph_objects as go; go.Figure(go.Bar(y=[1]))", "", "text/plain", []string{"plotly-1.html"}},
			{"plt.get_fignums()", "", "text/plain", nil},
		} {
			cell, err := k.Run(testContext(t), tt.code, nil)
			if err != nil {
				t.Fatal(err)
			}
			forms := strings.Join(slices.Sorted(maps.Keys(cell.Value)), " ")
			if !plain && len(tt.want) > 0 {
				forms = tt.value // IPython has its own
			}
			if cell.Status != llmsandbox.StatusOK || cell.Stdout != tt.out || forms != tt.value {
				t.Errorf("plain %v, %s: %s, stdout %q, stderr %s, value %s, want Status = StatusOK, Stdout = %q, forms = %s", plain, tt.code, cell.Status, cell.Stdout, clip(cell.Stderr), forms, tt.out, tt.value)
			}
			if got := artifactNames(cell.Artifacts); !slices.Equal(got, tt.want) || len(cell.ArtifactsDropped) > 0 {
				t.Errorf("plain %v, %s: artifacts %q, want %q; left out: %q", plain, tt.code, got, tt.want, cell.ArtifactsDropped)
			}
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// artifactsOfImportsAhead plots with what was imported before the code was known.
func (s *suite) artifactsOfImportsAhead(t *testing.T) {
	const code = `import sys
assert "pandas" in sys.modules
import matplotlib.pyplot as plt, numpy as np
plt.plot(np.arange(3))
plt.title("t")
plt.show()
print(np.random.random())
`
	var numbers []string
	sb := s.plots(t, llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 1 << 30}, Imports: []string{"numpy", "pandas", "matplotlib.pyplot"}})
	for range 2 {
		res := run(t, sb, code, nil)
		if res.Status != llmsandbox.StatusOK || len(res.Artifacts) != 1 || res.Artifacts[0].Title != "t" {
			t.Errorf("%s, %d artifacts, want Status = StatusOK and the plot", describe(res), len(res.Artifacts))
		}
		numbers = append(numbers, res.Stdout)
	}
	if numbers[0] == numbers[1] {
		t.Errorf("two runs have the same random number %s", numbers[0])
	}
}
