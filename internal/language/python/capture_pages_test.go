package python

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestPlotlyIsCaptured(t *testing.T) {
	python := interpreter(t, "plotly")
	const fig = "import plotly.graph_objects as go\nf = go.Figure([go.Bar(x=['a', 'b'], y=[1, 2], name='n')], {'title': {'text': 'T'}, 'xaxis': {'title': {'text': 'X'}}})\n"
	for _, tt := range []struct{ name, code, want string }{
		{"shown", fig + "f.show()", "plotly-1.html text/html"},
		{"shown by the module", fig + "import plotly.io; plotly.io.show(f)", "plotly-1.html text/html"},
		{"shown twice, then changed", fig + "f.show(); f.show(renderer='browser'); f.update_layout(title='U'); f.show()", "plotly-1.html text/html, plotly-2.html text/html"},
		{"saved", fig + "f.write_html('a.html', include_plotlyjs='cdn')", "a.html text/html"},
		{"saved to memory", fig + "import io; b = io.StringIO(); f.write_html(b, include_plotlyjs='cdn'); assert b.getvalue()", "plotly-1.html text/html"},
		{"shown and saved", fig + "f.show(); f.write_html('a.html')", "a.html text/html"},
		{"saved and shown", fig + "f.write_html('a.html'); f.show()", "a.html text/html"},
		{"a picture", fig + "import plotly.io._kaleido as k\nk.to_image = lambda *a, **b: b'\\x89PNG\\r\\n\\x1a\\n0000IHDR\\0\\0\\0\\2\\0\\0\\0\\3'\nk.kaleido_available = lambda: True\nf.write_image('a.png')", "a.png image/png"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			items := newProgram(t, python).shown(tt.code)
			if got := names(items); got != tt.want {
				t.Fatalf("captured %s, want %s", got, tt.want)
			}
			for _, it := range items {
				wantChart(t, it.Chart, `{"title":"`+it.Title+`","axes":[{"x":{"label":"X","scale":"category"},"y":{"scale":"linear"},"series":[{"type":"bar","label":"n","x":["a","b"],"y":[1,2]}]}]}`)
				if it.Source != "plotly" || (it.MIME == "text/html" && !strings.Contains(string(it.data), "<html")) {
					t.Errorf("%+v, want Source = \"plotly\", MIME != \"text/html\" or data containing \"<html\"", it.description)
				}
			}
		})
	}
}

func TestPlotlyCharts(t *testing.T) {
	python := interpreter(t, "plotly", "numpy")
	p := newProgram(t, python)
	p.source.MaxBytes = 512 << 20
	items := p.shown(`
import base64, struct
import plotly.io as io
packed = {"dtype": "f8", "bdata": base64.b64encode(struct.pack("<4d", 1, 2, 3, float("nan"))).decode()}
io.show({"data": [
    {"type": "scatter", "mode": "markers", "x": ["2024-01-01", "2024-01-02"], "y": [1, None]},
    {"type": "scatter", "fill": "tozeroy", "y": [1, 2], "xaxis": "x2", "yaxis": "y2"},
    {"type": "pie", "labels": ["a", "b"], "values": [1, 3], "name": "p"},
    {"type": "sankey"},
], "layout": {"yaxis": {"type": "log", "title": "Y"}}}, validate=False)
io.show({"data": [{"type": "heatmap", "z": dict(packed, shape="2, 2")}, {"type": "histogram", "x": packed}]}, validate=False)
`)
	if len(items) != 2 {
		t.Fatalf("captured %s, want len(items) = 2", names(items))
	}
	wantChart(t, items[0].Chart, `{"axes":[
		{"x":{"scale":"date"},"y":{"scale":"log","label":"Y"},"series":[{"type":"scatter","x":["2024-01-01","2024-01-02"],"y":[1,null]},{"type":"pie","label":"p","x":["a","b"],"y":[1,3]}]},
		{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"area","y":[1,2]}]}]}`)
	wantChart(t, items[1].Chart, `{"axes":[{"x":{"scale":"linear"},"y":{"scale":"linear"},"series":[{"type":"heatmap","z":[[1,2],[3,null]]},{"type":"histogram","x":[1,2,3,null]}]}]}`)
	if len(items[0].also) != 1 || !json.Valid(items[0].also[0]) {
		t.Errorf("beside the page: %+v, want len(items[0].also) = 1, json.Valid(items[0].also[0]) = true", items[0].Also)
	}
}

func TestAltairIsCaptured(t *testing.T) {
	python := interpreter(t, "altair")
	const chart = "import altair as alt\nc = alt.Chart(alt.Data(values=[{'a': 1}])).mark_bar().encode(x='a:Q').properties(title='T')\n"
	for _, tt := range []struct{ name, code, want string }{
		{"shown", chart + "c.show()", "altair-1.html text/html"},
		{"saved", chart + "c.save('a.html'); c.save('a.json')", "a.html text/html, a.json application/json"},
		{"saved to memory", chart + "import io; c.save(io.StringIO(), format='html')", "altair-1.html text/html"},
		{"shown and saved", chart + "c.show(); c.save('a.html'); c.show()", "a.html text/html"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			items := newProgram(t, python).shown(tt.code)
			if got := names(items); got != tt.want {
				t.Fatalf("captured %s, want %s", got, tt.want)
			}
			if items[0].Title != "T" || items[0].Source != "altair" {
				t.Errorf("%+v, want Title = \"T\", Source = \"altair\"", items[0].description)
			}
		})
	}
}

// installed returns a directory with real packages, from where this machine's pip has them.
func installed(t *testing.T, python string, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", dir}
	if out, err := exec.Command(python, append(args, packages...)...).CombinedOutput(); err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") != "" {
			t.Fatalf("pip: %v\n%s", err, out)
		}
		t.Skipf("pip: %v\n%s", err, out)
	}
	return dir
}

func TestBokehIsCaptured(t *testing.T) {
	p := newProgram(t, interpreter(t, "pip", "pandas", "jinja2", "contourpy"))
	p.environ = append(p.environ, "PYTHONPATH="+installed(t, p.python, "bokeh==3.9.2", "xyzservices==2026.9.1", "narwhals==2.29.0", "tornado==6.6.1", "PyYAML==6.0.3"))
	items := p.shown(`
from bokeh.plotting import figure, output_file, save, show
p = figure(title="T"); p.line([1, 2], [3, 4]); show(p)
output_file("a.html"); save(p); show(p)
try:
    show(3)
except ValueError:
    pass
`)
	if got, want := names(items), "bokeh-1.html text/html, a.html text/html, a.html text/html"; got != want {
		t.Fatalf("captured %s, want %s", got, want)
	}
	for _, it := range items {
		if it.Title != "T" || it.Source != "bokeh" || !strings.Contains(string(it.data), "<html") {
			t.Errorf("%+v, want Title = \"T\", Source = \"bokeh\", data containing \"<html\"", it.description)
		}
	}
}
