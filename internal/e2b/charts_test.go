package e2b

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/artifact"
)

// TestCharts: each has all that its form has in the SDKs, in it numbers as they were written.
func TestCharts(t *testing.T) {
	const labels = `"title":null,"x_label":null,"x_unit":null,"y_label":null,"y_unit":null`
	const scales = `"x_scale":"linear","x_tick_labels":[],"x_ticks":[],"y_scale":"linear","y_tick_labels":[],"y_ticks":[]`
	const bars = `[{"group":"Group 0","label":"a","value":1},{"group":"Group 0","label":"b","value":2.0}]`
	for name, test := range map[string]struct{ chart, want string }{
		"line": {
			`{"title": "of the figure", "axes": [{"title": "T", "x": {"label": "Time (s)"}, "y": {"label": "Speed [m/s]", "scale": "log"}, "series": [{"type": "line", "x": [0.0, 1.5, 2], "y": [1, null, "2026-01-02"]}, {"type": "line", "label": "L", "y": [1]}]}]}`,
			`{"type":"line","title":"T","x_label":"Time (s)","x_unit":"s","y_label":"Speed [m/s]","y_unit":"m/s","x_scale":"linear","x_tick_labels":[],"x_ticks":[],"y_scale":"log","y_tick_labels":[],"y_ticks":[],
			"elements":[{"label":"Line 0","points":[[0.0,1],[1.5,null],[2,"2026-01-02"]]},{"label":"L","points":[]}]}`,
		},
		"names and dates": {
			`{"title": "of the figure", "axes": [{"x": {"scale": "category", "categories": ["a", "b"]}, "y": {"scale": "date"}, "series": [{"type": "scatter", "x": ["a"], "y": ["2026-01-02"]}]}]}`,
			`{"type":"scatter","title":"of the figure","x_label":null,"x_unit":null,"y_label":null,"y_unit":null,"x_scale":"categorical","x_tick_labels":["a","b"],"x_ticks":[0.0,1.0],"y_scale":"datetime","y_tick_labels":[],"y_ticks":[],
			"elements":[{"label":"Line 0","points":[["a","2026-01-02"]]}]}`,
		},
		"bars":         {`{"axes": [{"series": [{"type": "bar", "x": ["a", "b"], "y": [1, 2.0]}]}]}`, `{"type":"bar",` + labels + `,"elements":` + bars + `}`},
		"numbered bar": {`{"axes": [{"series": [{"type": "bar", "label": "G", "x": [2.5], "y": [1]}]}]}`, `{"type":"bar",` + labels + `,"elements":[{"group":"G","label":"2.5","value":1}]}`},
		"lying bars": {
			`{"axes": [{"x": {"label": "n (kg)"}, "y": {"scale": "category", "label": "who"}, "series": [{"type": "bar", "x": [1, 2.0], "y": ["a", "b"]}]}]}`,
			`{"type":"bar","title":null,"x_label":"who","x_unit":null,"y_label":"n (kg)","y_unit":"kg","elements":` + bars + `}`,
		},
		"histogram":       {`{"axes": [{"series": [{"type": "histogram", "x": [0, 1, 2], "y": [5, 6]}]}]}`, `{"type":"bar",` + labels + `,"elements":[{"group":"Group 0","label":"0 - 1","value":5},{"group":"Group 0","label":"1 - 2","value":6}]}`},
		"lying histogram": {`{"axes": [{"series": [{"type": "histogram", "y": [0, 1], "x": [5]}]}]}`, `{"type":"bar",` + labels + `,"elements":[{"group":"Group 0","label":"0 - 1","value":5}]}`},
		"pie":             {`{"axes": [{"series": [{"type": "pie", "x": ["a", "b"], "y": [0.9, 0.1]}]}]}`, `{"type":"pie","title":null,"elements":[{"label":"a","angle":324.0,"radius":1.0},{"label":"b","angle":36.0,"radius":1.0}]}`},
		"boxes": {
			`{"axes": [{"series": [{"type": "box", "x": ["a"], "z": [[1, 2, 3.0, 4, 5], [1, 2, 3, 4, 5], [1]]}]}]}`,
			`{"type":"box_and_whisker",` + labels + `,"elements":[{"label":"a","min":1,"first_quartile":2,"median":3.0,"third_quartile":4,"max":5,"outliers":[]},{"label":"2","min":1,"first_quartile":2,"median":3,"third_quartile":4,"max":5,"outliers":[]}]}`,
		},
		"several kinds": {`{"axes": [{"title": "T", "series": [{"type": "line"}, {"type": "scatter"}]}]}`, `{"type":"unknown","title":"T","elements":[]}`},
		"no form":       {`{"axes": [{"series": [{"type": "heatmap"}]}]}`, `{"type":"unknown","title":null,"elements":[]}`},
		"nothing":       {`{"axes": [{"series": []}]}`, `{"type":"unknown","title":null,"elements":[]}`},
		"no axes":       {`{"axes": []}`, `null`},
		"several axes": {
			`{"title": "S", "axes": [{"series": [{"type": "pie", "x": [], "y": []}]}, {"series": [{"type": "line"}]}]}`,
			`{"type":"superchart","title":"S","elements":[{"type":"pie","title":null,"elements":[]},{"type":"line",` + labels + `,` + scales + `,"elements":[{"label":"Line 0","points":[]}]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var chart artifact.Chart
			if err := json.Unmarshal([]byte(test.chart), &chart); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(chartOf(&chart))
			if err != nil || !reflect.DeepEqual(numbered(t, string(got)), numbered(t, test.want)) {
				t.Errorf("got  %s (%v)\nwant %s", got, err, test.want)
			}
		})
	}
}

// numbered is decoded JSON with numbers as they were written.
func numbered(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// FuzzChart: whatever a chart holds, its form is JSON.
func FuzzChart(f *testing.F) {
	for _, seed := range []string{
		`{"axes": [{"x": {"scale": "category", "categories": ["a"]}, "y": {"label": "x (s)"}, "series": [{"type": "line", "x": [1, null], "y": ["a", 1e400]}]}]}`,
		`{"axes": [{"series": [{"type": "pie", "x": ["a"], "y": [0]}, {"type": "pie", "x": [null], "y": [-1e308]}]}, {"series": [{"type": "box", "x": [1], "z": [[1, 2, 3, 4, null]]}]}]}`,
		`{"axes": [{"series": [{"type": "histogram", "x": [[1]], "y": "no list"}, {"type": "bar", "x": [{}], "y": [[]]}]}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var chart artifact.Chart
		if json.Unmarshal([]byte(text), &chart) != nil {
			return
		}
		got, err := json.Marshal(chartOf(&chart))
		if err != nil || !json.Valid(got) {
			t.Fatalf("%s (%v), want JSON", got, err)
		}
	})
}
