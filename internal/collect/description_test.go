package collect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/artifact"
)

const whole = `{"name": "a.png", "mime": "image/png", "source": "matplotlib", "title": "T", "figure": 2, "width": 640, "height": 480,
	"dpi": 100, "chart": {"title": "T", "axes": [{"x": {"label": "x", "scale": "linear"}, "y": {"categories": ["a", "b"]},
	"series": [{"type": "line", "label": "l", "x": [1, 2.5, null], "y": ["a", "b", "c"], "z": [[1, 2], [3, null]]}]}]},
	"also": [{"mime": "text/csv", "file": "000001.1.data"}], "unknown": {"field": [1]}}`

func TestDescribe(t *testing.T) {
	d, err := describe([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := artifact.Artifact{
		Name: "a.png", MIME: "image/png", Source: "matplotlib", Title: "T", Figure: 2, Width: 640, Height: 480, DPI: 100,
		Chart: &artifact.Chart{Title: "T", Axes: []artifact.Axes{{
			X: artifact.Axis{Label: "x", Scale: "linear"}, Y: artifact.Axis{Categories: []string{"a", "b"}},
			Series: []artifact.Series{{
				Type: "line", Label: "l", X: json.RawMessage(`[1,2.5,null]`), Y: json.RawMessage(`["a","b","c"]`), Z: json.RawMessage(`[[1,2],[3,null]]`),
			}},
		}}},
	}
	if diff := cmp.Diff(want, d.artifact); diff != "" || d.badChart || len(d.also) != 1 || d.also[0] != (alsoFile{"text/csv", "000001.1.data"}) {
		t.Errorf("%s, want diff empty, badChart false, len(d.also) = 1, d.also[0] = %v\n%+v", diff, alsoFile{"text/csv", "000001.1.data"}, d)
	}
}

func TestDescribeRefuses(t *testing.T) {
	for _, in := range []string{
		"", "null x", "[1]", `{"name": 5}`, `{"also": [{},{},{},{},{}]}`, strings.Repeat("[", 20000), `{"name": "` + strings.Repeat("x", maxDescription) + `"}`,
	} {
		if d, err := describe([]byte(in)); err == nil {
			t.Errorf("%.40q: %+v, want an error", in, d)
		}
	}
}

func TestDescribeMakesHarmless(t *testing.T) {
	d, err := describe([]byte(`{"name": "../../x\u001b.png", "source": "<b>", "title": "a\u0000b\u001b[2J", "figure": 1.5, "width": -3, "height": 1e300, "dpi": -1}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(artifact.Artifact{Name: "x_.png", Title: "ab[2J"}, d.artifact); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestDescribeChartRefuses(t *testing.T) {
	series := func(points string) string { return `{"axes": [{"series": [{"type": "line", "y": ` + points + `}]}]}` }
	for _, chart := range []string{
		`5`, `{"axes": 5}`, series(`{"a": 1}`), series(`[true]`), series(`5`), series(`[[[1]]]`), series(`["` + strings.Repeat("x", 5000) + `"]`),
		series(`[` + strings.Repeat("1,", maxPoints) + `1]`),
		`{"axes": [{"series": [` + strings.Repeat(`{},`, maxSeries) + `{}]}]}`,
		`{"axes": [` + strings.Repeat(`{},`, maxAxes) + `{}]}`,
		`{"axes": [{"x": {"categories": [` + strings.Repeat(`"",`, maxCategories) + `""]}}]}`,
	} {
		d, err := describe([]byte(`{"name": "a.png", "chart": ` + chart + `}`))
		if err != nil || !d.badChart || d.artifact.Chart != nil || d.artifact.Name != "a.png" {
			t.Errorf("%.60q: %+v, %v, want no error, badChart true, Chart = nil, Name = \"a.png\"", chart, d, err)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"chart": {"axes": [{"series": [{"x": [[1], "a"]}]}]}}`))
	f.Add([]byte(`{"name": "..", "figure": 1e9, "also": [{"file": "/etc/passwd"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := describe(data)
		if err != nil {
			return
		}
		if d.artifact.Name == "" || strings.ContainsAny(d.artifact.Name+d.artifact.Title+d.artifact.Source, "\x00\x1b\n") || d.artifact.Width < 0 || len(d.also) > maxAlso {
			t.Fatalf("%+v, want Name not empty, strings.ContainsAny(d.artifact.Name+d.artifact.Title+d.artifact.Source, \"\\x00\\x1b\\n\") = false, Width >= 0, len(d.also) <= %v", d, maxAlso)
		}
		if _, err := json.Marshal(d.artifact); err != nil {
			t.Fatal(err)
		}
	})
}
