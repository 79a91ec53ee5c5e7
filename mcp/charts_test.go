package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/artifact"
)

func numbers(n int) json.RawMessage {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return data
}

func chartOf(series ...artifact.Series) *artifact.Chart {
	return &artifact.Chart{Axes: []artifact.Axes{{Series: series}}}
}

func TestCharts(t *testing.T) {
	small := &artifact.Chart{Title: "t\x1b[2J", Axes: []artifact.Axes{{
		X:      artifact.Axis{Label: "x", Scale: "category", Categories: []string{"a\u202e", "b"}},
		Series: []artifact.Series{{Type: "bar", X: json.RawMessage(`["a\u001b[2J\n","b"]`), Y: json.RawMessage(`[1.50,null]`), Low: json.RawMessage(`[1.` + strings.Repeat("0", 500) + `,1e` + strings.Repeat("9", 500) + `]`)}},
	}}}
	var c charts
	got, cut := c.add(small)
	want := &artifact.Chart{Title: "t", Axes: []artifact.Axes{{
		X:      artifact.Axis{Label: "x", Scale: "category", Categories: []string{"a", "b"}},
		Series: []artifact.Series{{Type: "bar", X: json.RawMessage(`["a","b"]`), Y: json.RawMessage(`[1.50,null]`), Low: json.RawMessage(`[1,null]`)}},
	}}}
	if d := cmp.Diff(want, got); d != "" || cut != "" {
		t.Errorf("cut %q (-want +got):\n%s", cut, d)
	}
	if c.values != 8 {
		t.Errorf("%d values, want 8", c.values)
	}

	for name, c := range map[string]struct {
		in          artifact.Series
		first, last string // of X
		cut         string
	}{
		"line":      {artifact.Series{Type: "line", X: numbers(10_000), Y: numbers(10_000)}, "[0,101,", ",9999]", "100 of 10000 points"},
		"bars":      {artifact.Series{Type: "bar", X: numbers(300), Y: numbers(300)}, "[0,1,", ",99]", "100 of 300 points"},
		"histogram": {artifact.Series{Type: "histogram", X: numbers(201), Y: numbers(200)}, "[0,1,", ",100]", "100 of 200 points"},
		"heatmap":   {artifact.Series{Type: "heatmap", X: numbers(40), Z: json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(string(numbers(40))+",", 40), ",") + "]")}, "", "", "0 of 40 points"},
		"uneven":    {artifact.Series{Type: "line", X: numbers(5), Y: numbers(500)}, "[0,1,", ",4]", ""},
	} {
		var all charts
		got, cut := all.add(chartOf(c.in))
		x := string(got.Axes[0].Series[0].X)
		if !strings.HasPrefix(x, c.first) || !strings.HasSuffix(x, c.last) || c.first == "" && x != "" || !strings.Contains(cut, c.cut) || got.Truncated != (c.cut != "") {
			t.Errorf("%s: X = %.60s, cut %q, Truncated %v, want X from %s to %s, cut %q", name, x, cut, got.Truncated, c.first, c.last, c.cut)
		}
	}

	// All charts of a result share the bound.
	var all charts
	for range 30 {
		got, _ := all.add(chartOf(artifact.Series{Type: "line", X: numbers(90), Y: numbers(90)}, artifact.Series{Type: "pie", X: json.RawMessage(`["` + strings.Repeat("é", 500) + `"]`), Y: numbers(1)}))
		if data, err := json.Marshal(got); err != nil || len(data) > 4000 {
			t.Errorf("%d bytes, %v, want at most 4000", len(data), err)
		}
	}
	if all.values > maxChartValues+10 {
		t.Errorf("%d values, want about %d at most", all.values, maxChartValues)
	}
}

func FuzzCharts(f *testing.F) {
	for _, seed := range []string{
		`{"axes":[{"series":[{"type":"line","x":[1,2],"y":["a",null]}]}]}`, `{"axes":[{"series":[{"type":"heatmap","z":[[1,2],[3]]}]}]}`,
		`{"axes":[{"x":{"categories":["a"]},"series":[{"type":"box","x":["a"],"z":[[1,2,3,4,5]],"low":1}]}]}`, `{"axes":[{"series":[{"x":[],"y":{}}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		chart := new(artifact.Chart)
		if json.Unmarshal(in, chart) != nil {
			return
		}
		var c charts
		got, _ := c.add(chart)
		if data, err := json.Marshal(got); err != nil || strings.ContainsAny(string(data), "\x1b\u202e") {
			t.Fatalf("%v: %s", err, data)
		}
		if c.values > 2*maxChartValues {
			t.Fatalf("%d values, want at most %d", c.values, 2*maxChartValues)
		}
	})
}
