package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

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

// Bounds of a chart. Those of a capture are narrower.
const (
	maxAxes       = 64
	maxSeries     = 200
	maxCategories = 5000
	maxPoints     = 50000 // of one series, in one direction
)

var errChart = errors.New("the chart data is not of the form")

// decodeChart decodes and checks the content of a picture.
func decodeChart(data []byte) (*artifact.Chart, error) {
	c := new(artifact.Chart)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w: %w", errChart, err)
	}
	if len(c.Axes) > maxAxes {
		return nil, fmt.Errorf("%w: more than %d axes", errChart, maxAxes)
	}
	c.Title = line(c.Title)
	series := 0
	for i := range c.Axes {
		a := &c.Axes[i]
		a.Title = line(a.Title)
		for _, axis := range []*artifact.Axis{&a.X, &a.Y} {
			axis.Label, axis.Scale = line(axis.Label), shortName(axis.Scale)
			if len(axis.Categories) > maxCategories {
				return nil, fmt.Errorf("%w: more than %d categories", errChart, maxCategories)
			}
			for k := range axis.Categories {
				axis.Categories[k] = line(axis.Categories[k])
			}
		}
		if series += len(a.Series); series > maxSeries {
			return nil, fmt.Errorf("%w: more than %d series", errChart, maxSeries)
		}
		for k := range a.Series {
			if err := checkSeries(&a.Series[k]); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func checkSeries(s *artifact.Series) (err error) {
	s.Type, s.Label = shortName(s.Type), line(s.Label)
	for _, points := range []*json.RawMessage{&s.X, &s.Y, &s.Z, &s.Low, &s.High} {
		if *points, err = checkPoints(*points); err != nil {
			return err
		}
	}
	return nil
}

// checkPoints makes sure that points are a list, or a list of lists, of numbers, strings
// and nulls, and returns them without what stands between.
func checkPoints(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	depth, points := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errChart, err)
		}
		switch token {
		case json.Delim('['):
			depth++
		case json.Delim(']'):
			depth--
			continue
		case json.Delim('{'), true, false:
			return nil, fmt.Errorf("%w: points are numbers, strings or null", errChart)
		}
		if s, ok := token.(string); ok && len(s) > 8*maxText {
			return nil, fmt.Errorf("%w: a point's name is longer than %d bytes", errChart, 8*maxText)
		}
		if points++; points > maxPoints {
			return nil, fmt.Errorf("%w: more than %d points", errChart, maxPoints)
		}
		if depth == 0 || depth > 2 {
			return nil, fmt.Errorf("%w: points are a list, or a list of lists", errChart)
		}
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("%w: %w", errChart, err)
	}
	return bytes.Clone(out.Bytes()), nil
}

// maxName is the longest name of an artifact, in bytes.
const maxName = 200

// line makes a text fit for one line of a title or label: no control characters, bounded.
func line(s string) string {
	if len(s) > 8*maxText {
		s = s[:8*maxText]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText-1]) + "…"
	}
	return strings.TrimSpace(s)
}

// fileName makes a base name out of any path that every file system takes and that is
// no option, hidden or special. What is left of nothing is "artifact".
func fileName(p string) string {
	if len(p) > 4096 {
		p = p[len(p)-4096:]
	}
	p = strings.ToValidUTF8(p, "_")
	if i := strings.LastIndexAny(p, `/\`); i >= 0 {
		p = p[i+1:]
	}
	p = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, p)
	p = strings.TrimRight(strings.TrimLeftFunc(p, hides), ". ")
	ext := path.Ext(p)
	if len(ext) > 20 {
		ext = ""
	}
	if len(p) > maxName {
		// Where it is cut there may be what no name ends with.
		p = strings.TrimRight(strings.ToValidUTF8(p[:maxName-len(ext)], "")+ext, ". ")
	}
	if p == "" || reserved(p) {
		return "artifact" + ext
	}
	return p
}

// hides reports what makes a name hidden or an option where it begins with it, and of what
// cannot be seen and may be left out by a program that takes the name.
func hides(r rune) bool {
	return r == '.' || r == '-' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
}

// reserved reports whether a name is a device of Windows.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	port := strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")
	return port && utf8.RuneCountInString(stem) == 4 && strings.Contains("0123456789¹²³", stem[3:])
}
