package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/llmsandbox/llmsandbox/artifact"
)

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
