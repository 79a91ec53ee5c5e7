package e2b

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/artifact"
)

// A fraction is a number that has a decimal point, or an exponent, also where it is whole: SDKs tell these from integers.
type fraction float64

// MarshalJSON implements json.Marshaler. It keeps as many digits as charts have, so that what was computed from them has no more.
func (f fraction) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(f), 'g', 10, 64)
	if strings.ContainsAny(text, "IN") { // no number
		return []byte("null"), nil
	}
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return []byte(text), nil
}

// chartOf is what a picture shows in the form of the SDKs; nil: nothing that has one. All members of a form are there, since SDKs drop charts without.
func chartOf(c *artifact.Chart) map[string]any {
	if c == nil || len(c.Axes) == 0 {
		return nil
	}
	if len(c.Axes) == 1 {
		chart := axesOf(&c.Axes[0])
		if chart["title"] == nil {
			chart["title"] = orNull(c.Title)
		}
		return chart
	}
	charts := make([]map[string]any, 0, len(c.Axes))
	for i := range c.Axes {
		charts = append(charts, axesOf(&c.Axes[i]))
	}
	return map[string]any{"type": "superchart", "title": orNull(c.Title), "elements": charts}
}

// axesOf is one coordinate system. One whose series are of several chartKinds has no form.
func axesOf(a *artifact.Axes) map[string]any {
	kind := ""
	for i := range a.Series {
		k := chartKinds[a.Series[i].Type]
		if kind == "" {
			kind = k
		}
		if k != kind || k == "" {
			kind = "unknown"
			break
		}
	}
	chart := map[string]any{"type": kind, "title": orNull(a.Title)}
	x, y := &a.X, &a.Y
	switch kind {
	case "line", "scatter":
		chart["elements"] = linesOf(a.Series)
		for name, axis := range map[string]*artifact.Axis{"x": x, "y": y} {
			chart[name+"_ticks"], chart[name+"_tick_labels"], chart[name+"_scale"] = ticksOf(axis), append([]string{}, axis.Categories...), scaleOf(axis.Scale)
		}
	case "bar":
		flat := isFlat(a)
		if flat {
			x, y = y, x
		}
		chart["elements"] = barsOf(a.Series, flat)
	case "box_and_whisker":
		chart["elements"] = boxesOf(a.Series)
	case "pie":
		chart["elements"] = slicesOf(a.Series)
		return chart
	default:
		chart["type"], chart["elements"] = "unknown", []any{}
		return chart
	}
	chart["x_label"], chart["x_unit"] = orNull(x.Label), unitOf(x.Label)
	chart["y_label"], chart["y_unit"] = orNull(y.Label), unitOf(y.Label)
	return chart
}

// chartKinds are the types of series that have a form.
var chartKinds = map[string]string{"line": "line", "scatter": "scatter", "bar": "bar", "histogram": "bar", "box": "box_and_whisker", "pie": "pie"}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

var unitPattern = regexp.MustCompile(`\s\(([^()]+)\)|\[([^\[\]]+)\]`)

// unitOf is what a label has in parentheses.
func unitOf(label string) any {
	m := unitPattern.FindStringSubmatch(label)
	if m == nil {
		return nil
	}
	return m[1] + m[2]
}

// scaleOf is a scale's name. What is none of ours is none of theirs.
func scaleOf(s string) string {
	switch s {
	case "", "linear":
		return "linear"
	case "log":
		return "log"
	case "category":
		return "categorical"
	case "date":
		return "datetime"
	}
	return "unknown"
}

// ticksOf are known only where they have names.
func ticksOf(a *artifact.Axis) []fraction {
	list := make([]fraction, len(a.Categories))
	for i := range list {
		list[i] = fraction(i)
	}
	return list
}

// listOf is what a series holds of one direction, numbers as they were written. What is no list is empty.
func listOf[T any](raw json.RawMessage) []T {
	var values []T
	if len(raw) == 0 || json.Unmarshal(raw, &values) != nil {
		return nil
	}
	return values
}

// textOf is a point's name, or its number.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s
	}
	return string(raw)
}

func labelOf(label, kind string, i int) string {
	if label != "" {
		return label
	}
	return kind + " " + strconv.Itoa(i)
}

type lineElement struct {
	Label  string               `json:"label"`
	Points [][2]json.RawMessage `json:"points"`
}

func linesOf(series []artifact.Series) []lineElement {
	elements := make([]lineElement, 0, len(series))
	for i := range series {
		xs, ys := listOf[json.RawMessage](series[i].X), listOf[json.RawMessage](series[i].Y)
		points := make([][2]json.RawMessage, min(len(xs), len(ys)))
		for k := range points {
			points[k] = [2]json.RawMessage{xs[k], ys[k]}
		}
		elements = append(elements, lineElement{labelOf(series[i].Label, "Line", i), points})
	}
	return elements
}

// isFlat reports whether bars lie: their names are along y.
func isFlat(a *artifact.Axes) bool {
	if (a.X.Scale == "category") != (a.Y.Scale == "category") {
		return a.Y.Scale == "category"
	}
	s := &a.Series[0]
	if s.Type == "histogram" { // it has an edge more than bins
		return len(listOf[json.RawMessage](s.Y)) > len(listOf[json.RawMessage](s.X))
	}
	isText := func(raw json.RawMessage) bool {
		values := listOf[json.RawMessage](raw)
		return len(values) > 0 && strings.HasPrefix(string(values[0]), `"`)
	}
	return isText(s.Y) && !isText(s.X)
}

type barElement struct {
	Label string          `json:"label"`
	Group string          `json:"group"`
	Value json.RawMessage `json:"value"`
}

func barsOf(series []artifact.Series, flat bool) []barElement {
	elements := []barElement{}
	for i := range series {
		s := &series[i]
		along, up := listOf[json.RawMessage](s.X), listOf[json.RawMessage](s.Y)
		if flat {
			along, up = up, along
		}
		for k := range min(len(along), len(up)) {
			label := textOf(along[k])
			if s.Type == "histogram" && k+1 < len(along) {
				label = fmt.Sprintf("%s - %s", label, textOf(along[k+1]))
			}
			elements = append(elements, barElement{label, labelOf(s.Label, "Group", i), up[k]})
		}
	}
	return elements
}

type boxElement struct {
	Label    string          `json:"label"`
	Min      json.RawMessage `json:"min"`
	First    json.RawMessage `json:"first_quartile"`
	Median   json.RawMessage `json:"median"`
	Third    json.RawMessage `json:"third_quartile"`
	Max      json.RawMessage `json:"max"`
	Outliers []any           `json:"outliers"` // not known
}

func boxesOf(series []artifact.Series) []boxElement {
	elements := []boxElement{}
	for i := range series {
		names := listOf[json.RawMessage](series[i].X)
		for k, box := range listOf[[]json.RawMessage](series[i].Z) {
			if len(box) != 5 {
				continue
			}
			label := strconv.Itoa(k + 1)
			if k < len(names) {
				label = textOf(names[k])
			}
			elements = append(elements, boxElement{label, box[0], box[1], box[2], box[3], box[4], []any{}})
		}
	}
	return elements
}

type sliceElement struct {
	Label  string   `json:"label"`
	Angle  fraction `json:"angle"`
	Radius fraction `json:"radius"`
}

// angleParts are the parts of a degree to which angles are rounded, since matplotlib's have no more digits.
const angleParts = 1e4

// slicesOf are the parts of pies. Their values are shares of what they are together.
func slicesOf(series []artifact.Series) []sliceElement {
	elements := []sliceElement{}
	for i := range series {
		names, values := listOf[json.RawMessage](series[i].X), listOf[*float64](series[i].Y)
		whole := 0.0
		for _, v := range values {
			if v != nil {
				whole += *v
			}
		}
		for k := range min(len(names), len(values)) {
			if values[k] != nil {
				elements = append(elements, sliceElement{textOf(names[k]), fraction(math.Round(360*angleParts*(*values[k]/whole)) / angleParts), 1})
			}
		}
	}
	return elements
}
