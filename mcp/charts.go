package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/llmsandbox/llmsandbox/artifact"
)

// Bounds of the chart data in a result. A value is a coordinate or the name of one.
const (
	maxChartPoints = 100  // of a series
	maxChartValues = 1000 // of all charts of a result
	maxChartText   = 100  // bytes of a name
	maxChartNumber = 32   // digits of a number
)

// charts bounds the chart data of one result.
type charts struct{ values int }

// add returns a chart that fits into the result, with clean names. cut says what was left
// out, or is empty.
func (c *charts) add(in *artifact.Chart) (out *artifact.Chart, cut string) {
	shown, total := 0, 0
	out = &artifact.Chart{Title: line(in.Title), Axes: []artifact.Axes{}, Truncated: in.Truncated}
	for _, a := range in.Axes {
		axes := artifact.Axes{Title: line(a.Title), X: c.axis(a.X), Y: c.axis(a.Y), Series: []artifact.Series{}}
		out.Truncated = out.Truncated || len(axes.X.Categories) < len(a.X.Categories) || len(axes.Y.Categories) < len(a.Y.Categories)
		for _, s := range a.Series {
			series, kept, all := c.series(s)
			axes.Series = append(axes.Series, series)
			shown, total = shown+kept, total+all
		}
		out.Axes = append(out.Axes, axes)
	}
	if shown == total {
		return out, ""
	}
	out.Truncated = true
	return out, fmt.Sprintf("the chart data has %d of %s; print the values that you need", shown, count(total, "point"))
}

func (c *charts) axis(a artifact.Axis) artifact.Axis {
	out := artifact.Axis{Label: line(a.Label), Scale: line(a.Scale)}
	for _, name := range a.Categories[:min(len(a.Categories), maxChartPoints, max(maxChartValues-c.values, 0))] {
		out.Categories = append(out.Categories, chartText(name))
	}
	c.values += len(out.Categories)
	return out
}

// series returns a series with as many of its points as fit. Points that a line could join
// are thinned evenly, so that its shape is kept; of others the first ones are kept.
func (c *charts) series(s artifact.Series) (out artifact.Series, kept, all int) {
	out = artifact.Series{Type: line(s.Type), Label: line(s.Label)}
	in := []json.RawMessage{s.X, s.Y, s.Z, s.Low, s.High}
	to := []*json.RawMessage{&out.X, &out.Y, &out.Z, &out.Low, &out.High}
	lists, width, equal := make([][]any, len(in)), 0, true
	for i, raw := range in {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if len(raw) == 0 || d.Decode(&lists[i]) != nil || len(lists[i]) == 0 {
			continue
		}
		inner := 1
		for _, v := range lists[i] {
			if row, ok := v.([]any); ok {
				inner = max(inner, len(row))
			}
		}
		equal = equal && (all == 0 || all == len(lists[i]))
		if all == 0 || len(lists[i]) < all { // a histogram has one more edge than bars
			all = len(lists[i])
		}
		width += inner
	}
	if all == 0 {
		return out, 0, 0
	}
	kept = min(all, maxChartPoints, max(maxChartValues-c.values, 0)/width)
	if kept < all && s.Type == "heatmap" { // a part would have rows and columns that do not match
		kept = 0
	}
	if kept == 0 {
		return out, 0, all
	}
	even := equal && kept > 1 && slices.Contains([]string{"line", "scatter", "area"}, s.Type)
	for i, list := range lists {
		if len(list) == 0 {
			continue
		}
		var points []any
		for k := range kept {
			if even {
				k = k * (all - 1) / (kept - 1)
			}
			points = append(points, c.point(list[k]))
		}
		if len(list) > all {
			points = append(points, c.point(list[kept]))
		}
		data, err := json.Marshal(points)
		if err != nil {
			continue // it was JSON a moment ago
		}
		*to[i] = data
	}
	return out, kept, all
}

// point counts the values of a point, and cleans the names in it.
func (c *charts) point(v any) any {
	switch v := v.(type) {
	case []any:
		row := make([]any, len(v))
		for i := range v {
			row[i] = c.point(v[i])
		}
		return row
	case string:
		c.values++
		return chartText(v)
	case json.Number:
		c.values++
		if len(v) <= maxChartNumber {
			return v
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return nil
	}
	c.values++
	return nil
}

func chartText(s string) string {
	s, _ = shorten(line(s), maxChartText)
	return line(s)
}
