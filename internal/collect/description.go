package collect

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/llmsandbox/llmsandbox/artifact"
)

// Bounds of a description.
const (
	maxDescription = 1 << 20
	maxText        = 500 // characters of a title or label
	maxAlso        = 4
	maxFigure      = 1 << 30
)

// A description is the decoded NNNNNN.json.
type description struct {
	artifact artifact.Artifact // without content
	also     []alsoFile
	// badChart reports whether there was chart data, which is not of the form.
	badChart bool
}

type alsoFile struct{ mime, file string }

type descriptionJSON struct {
	Name   string          `json:"name"`
	MIME   string          `json:"mime"`
	Source string          `json:"source"`
	Title  string          `json:"title"`
	Figure float64         `json:"figure"`
	Width  float64         `json:"width"`
	Height float64         `json:"height"`
	DPI    float64         `json:"dpi"`
	Chart  json.RawMessage `json:"chart"`
	Also   []struct {
		MIME string `json:"mime"`
		File string `json:"file"`
	} `json:"also"`
}

// describe decodes a description.
func describe(data []byte) (description, error) {
	var d description
	if len(data) > maxDescription {
		return d, fmt.Errorf("its description is larger than %d bytes", maxDescription)
	}
	var in descriptionJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return d, fmt.Errorf("its description is not of the form: %w", err)
	}
	if len(in.Also) > maxAlso {
		return d, fmt.Errorf("its description names more than %d further forms", maxAlso)
	}
	for _, also := range in.Also {
		d.also = append(d.also, alsoFile{also.MIME, also.File})
	}
	d.artifact = artifact.Artifact{
		Name: fileName(in.Name), MIME: in.MIME, Source: shortName(in.Source), Title: line(in.Title),
		Figure: count(in.Figure), Width: count(in.Width), Height: count(in.Height),
	}
	if in.DPI > 0 && in.DPI < 1e5 {
		d.artifact.DPI = in.DPI
	}
	if len(in.Chart) > 0 && string(in.Chart) != "null" {
		chart, err := decodeChart(in.Chart)
		d.artifact.Chart, d.badChart = chart, err != nil
	}
	return d, nil
}

func count(f float64) int {
	if f != math.Trunc(f) || f < 0 || f > maxFigure {
		return 0
	}
	return int(f)
}

// shortName returns s if it is a short name, as of a tool or a scale, else "".
func shortName(s string) string {
	if len(s) > 40 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
		return ""
	}
	return s
}
