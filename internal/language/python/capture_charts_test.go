package python

import (
	"encoding/json"
	"testing"

	"github.com/llmsandbox/llmsandbox/artifact"
)

// TestCharts has each kind of plot: what a model reads is what a person sees.
func TestCharts(t *testing.T) {
	cases := []struct{ name, code, want string }{
		{"lines", "ax.plot([1, 2, 3], [2, float('nan'), 4.5], label='a'); ax.plot([1, 2], [0.1 + 0.2, 1e300], 'o'); ax.axhline(1)\nax.set(title='T', xlabel='X', ylabel='Y', yscale='log')",
			`{"axes":[{"title":"T","x":{"label":"X","scale":"linear"},"y":{"label":"Y","scale":"log"},"series":[
			{"type":"line","label":"a","x":[1,2,3],"y":[2.0,null,4.5]},{"type":"scatter","x":[1,2],"y":[0.3,1e+300]},{"type":"line","y":[1,1]}]}]}`},
		{"scatter", "ax.scatter([1, 2], [3, 4], label='a'); ax.figure.suptitle('above')",
			`{"title":"above","axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"scatter","label":"a","x":[1.0,2.0],"y":[3.0,4.0]}]}]}`},
		{"bars", "ax.bar(['a', 'b'], [1, 2], yerr=[0.5, 0.25], label='n')",
			`{"axes":[{"x":{"scale":"category","categories":["a","b"]},"y":{"scale":"linear"},"series":[{"type":"bar","label":"n","x":["a","b"],"y":[1,2],"low":[0.5,1.75],"high":[1.5,2.25]}]}]}`},
		{"bars with ticks", "ax.barh([0, 1], [5, 6]); ax.set_yticks([0, 1]); ax.set_yticklabels(['p', 'q'])",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"category","categories":["p","q"]},"series":[{"type":"bar","x":[5,6],"y":["p","q"]}]}]}`},
		{"histogram", "ax.hist([0, 0, 1, 3], bins=3)",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"histogram","x":[0.0,1.0,2.0,3.0],"y":[2.0,1.0,1.0]}]}]}`},
		{"pie", "ax.pie([1, 3], labels=['a', 'b'])",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"pie","x":["a","b"],"y":[0.25,0.75]}]}]}`},
		{"boxes", "ax.boxplot([[1, 2, 3, 4, 5]])\nax.set_xticklabels(['a'])",
			`{"axes":[{"x":{"scale":"category","categories":["a"]},"y":{"scale":"linear"},"series":[{"type":"box","x":["a"],"z":[[1,2.0,3.0,4.0,5]]}]}]}`},
		{"a picture of numbers", "ax.imshow([[1, 2], [3, 4]]); ax.figure.colorbar(ax.images[0])",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"heatmap","z":[[1,2],[3,4]]}]}]}`},
		{"a mesh", "ax.pcolormesh([[1, 2, 3], [4, 5, 6]])",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"heatmap","z":[[1,2,3],[4,5,6]]}]}]}`},
		{"areas", "ax.fill_between([1, 2], [3, 4], label='a'); ax.fill_between([1, 2], [1, 2], [5, 6])",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"area","label":"a","x":[1.0,2.0],"y":[3.0,4.0]},{"type":"area","x":[1.0,2.0],"y":[5.0,6.0],"low":[1.0,2.0]}]}]}`},
		{"error bars", "ax.errorbar([1, 2], [3, 4], yerr=[0.5, 1], fmt='o', label='e')",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"scatter","label":"e","x":[1,2],"y":[3,4],"low":[2.5,3.0],"high":[3.5,5.0]}]}]}`},
		{"dates, two scales", "import datetime as d\nx = [d.date(2024, 1, 1), d.date(2024, 1, 2)]; ax.plot(x, [1, 2]); ax.twinx().plot(x, [30, 40])",
			`{"axes":[{"x":{"scale":"date"},"y":{"scale":"linear"},"series":[{"type":"line","x":["2024-01-01","2024-01-02"],"y":[1,2]}]},
			{"x":{"scale":"date"},"y":{"scale":"linear"},"series":[{"type":"line","x":["2024-01-01","2024-01-02"],"y":[30,40]}]}]}`},
		{"pandas' periods", "import pandas as pd; pd.Series([1, 2], index=pd.date_range('2024-01-31', periods=2)).plot(ax=ax)",
			`{"axes":[{"x":{"scale":"date"},"y":{"scale":"linear"},"series":[{"type":"line","x":["2024-01-31","2024-02-01"],"y":[1,2]}]}]}`},
		{"seaborn's hues", "import seaborn as s; s.lineplot(x=[1, 2, 1, 2], y=[1, 2, 3, 4], hue=['p', 'p', 'q', 'q'], ax=ax)",
			`{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"line","label":"p","x":[1,2],"y":[1,2]},{"type":"line","label":"q","x":[1,2],"y":[3,4]}]}]}`},
	}
	// One program of all: most of the time goes into imports.
	code := "import matplotlib.pyplot as plt\n"
	for _, tt := range cases {
		code += "fig, ax = plt.subplots()\n" + tt.code + "\nplt.show()\n"
	}
	_, stderr, items := newProgram(t, interpreter(t, "matplotlib", "pandas", "seaborn")).run(code)
	if len(items) != len(cases) {
		t.Fatalf("captured %s, stderr %s, want len(items) = %v", names(items), stderr, len(cases))
	}
	for i, tt := range cases {
		t.Run(tt.name, func(t *testing.T) { wantChart(t, items[i].Chart, tt.want) })
	}
}

// wantChart compares by value, so that 1 is 1.0.
func wantChart(t *testing.T, got *artifact.Chart, want string) {
	t.Helper()
	var w artifact.Chart
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if canonical(t, got) != canonical(t, w) {
		t.Errorf("the chart is\n%s, want\n%s", canonical(t, got), canonical(t, w))
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(plain); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestChartsAreBounded has more than a model wants to read, and says so.
func TestChartsAreBounded(t *testing.T) {
	p := newProgram(t, interpreter(t, "matplotlib"))
	items := p.shown(`
import matplotlib.pyplot as plt, numpy as np
fig, ax = plt.subplots(2)
for i in range(60):
    ax[0].plot(np.arange(100_000) * (1 / 3), label="x" * 10_000)
ax[1].imshow(np.zeros((300, 300)))
plt.show()
`)
	if len(items) != 1 || items[0].Chart == nil || !items[0].Chart.Truncated {
		t.Fatalf("captured %+v, want len(items) = 1, Chart not nil, Truncated true", items)
	}
	data, err := json.Marshal(items[0].Chart)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 300<<10 {
		t.Errorf("the chart has %d bytes, want at most 300 KiB", len(data))
	}
	var x []float64
	if err := json.Unmarshal(items[0].Chart.Axes[0].Series[0].X, &x); err != nil {
		t.Fatal(err)
	}
	if len(x) != 1000 || x[0] != 0 || x[len(x)-1] != 99_999 {
		t.Errorf("%d points, from %g to %g, want len(x) = 1000, x[0] = 0, x[len(x)-1] = 99_999", len(x), x[0], x[len(x)-1])
	}
}
