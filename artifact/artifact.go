// Package artifact describes what a run produced beside its output: pictures, tables,
// pages, files.
package artifact

import (
	"encoding/json"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// An Artifact is one of them. Its content comes from inside a sandbox and is data:
// nothing in this project renders or executes it. In JSON the content is base64.
type Artifact struct {
	// Name is a base name, such as "figure-1.png" or that of the file. It is safe to
	// be a file's name, and need not be unique.
	Name string `json:"name"`
	// MIME is the media type, of a fixed list: see [Types]. What the content shows not
	// to be what it is said to be is [Binary].
	MIME string `json:"mime"`
	Data []byte `json:"data"`
	// Source is what made it: "matplotlib", "plotly", "file", ...
	Source string `json:"source,omitempty"`
	// Title is the figure's, may be empty.
	Title string `json:"title,omitempty"`
	// Figure is the number of the figure that it shows, in the program's own count; 0: none.
	Figure int `json:"figure,omitempty"`
	// Width and Height are in pixels, DPI in dots per inch; 0: not known.
	Width  int     `json:"width,omitempty"`
	Height int     `json:"height,omitempty"`
	DPI    float64 `json:"dpi,omitempty"`
	// Chart is what the picture shows, where that is known.
	Chart *Chart `json:"chart,omitempty"`
	// Also are other forms of the same thing, such as a table's data beside its HTML.
	Also []Form `json:"also,omitempty"`
}

// String is one line without the content: "figure-1.png (image/png, 640x480, 12034 bytes)".
func (a Artifact) String() string {
	size := ""
	if a.Width > 0 {
		size = fmt.Sprintf("%dx%d, ", a.Width, a.Height)
	}
	return fmt.Sprintf("%s (%s, %s%d bytes)", termsafe.String(a.Name), a.MIME, size, len(a.Data))
}

// A Form is another form of an artifact.
type Form struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// A Chart is the content of a picture, so that a model can read what a person sees.
type Chart struct {
	Title string `json:"title,omitempty"`
	Axes  []Axes `json:"axes"`
	// Truncated reports whether there are more points or series than are kept.
	Truncated bool `json:"truncated,omitempty"`
}

// Axes are one coordinate system of a chart.
type Axes struct {
	Title  string   `json:"title,omitempty"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
}

// An Axis is one direction of it.
type Axis struct {
	Label string `json:"label,omitempty"`
	Scale string `json:"scale,omitempty"` // "linear", "log", "category", "date"
	// Categories are the names along it, where it has names.
	Categories []string `json:"categories,omitempty"`
}

// Series is one line, set of bars, cloud of points, pie, ...
type Series struct {
	Type  string `json:"type"` // "line", "bar", "scatter", "histogram", "pie", "box", "heatmap", "area"
	Label string `json:"label,omitempty"`
	// X, Y and Z hold numbers, strings or null, one per point. A histogram's X are the
	// edges of its bins, a pie's X its labels and Y the values. Z are a heatmap's rows,
	// or of each box both ends of the whiskers, the quartiles and the median, ascending.
	X json.RawMessage `json:"x,omitempty"`
	Y json.RawMessage `json:"y,omitempty"`
	Z json.RawMessage `json:"z,omitempty"`
	// Low and High are the ends of each point's error bar; an area's Low its lower edge.
	Low  json.RawMessage `json:"low,omitempty"`
	High json.RawMessage `json:"high,omitempty"`
}
