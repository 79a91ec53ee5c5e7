// Package notebook reads and writes Jupyter notebooks of nbformat 4. A notebook is data from
// somebody else: reading it is bounded, and what this package does not know is kept as it is.
package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/plainjson"
)

// Bounds on a notebook.
const (
	MaxSize  = 64 << 20 // bytes
	maxCells = 10000
	maxDepth = 100 // of values in values; Python's parser gives up at some hundreds
)

// ErrInvalid means that a file is no notebook that can be read.
var ErrInvalid = errors.New("invalid notebook")

// A Notebook is a document of cells. Its zero value is not usable: see [Parse].
type Notebook struct {
	fields fields
	cells  []*Cell
	info   metadata
}

// fields are those of a JSON object, known or not.
type fields map[string]json.RawMessage

type metadata struct {
	Kernel struct {
		Name     string `json:"name"`
		Language string `json:"language"`
	} `json:"kernelspec"`
	Language struct {
		Name string `json:"name"`
	} `json:"language_info"`
}

// A Cell is a cell of a notebook.
type Cell struct {
	// Number counts all cells of the notebook, from 1.
	Number int
	// Source is the code; empty for cells of other kinds.
	Source string
	// Tags are the cell's tags, such as [TagRaises].
	Tags []string

	code   bool
	fields fields
}

// Tags that Jupyter's own tools follow.
const (
	TagRaises = "raises-exception" // an error is expected
	TagSkip   = "skip-execution"
)

// Parse reads a notebook. Its error wraps [ErrInvalid].
func Parse(data []byte) (*Notebook, error) {
	n, err := parse(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return n, nil
}

func parse(data []byte) (*Notebook, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it is larger than %d MiB: clear its outputs", MaxSize>>20)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	if depth(data) > maxDepth {
		return nil, fmt.Errorf("its values are nested more than %d deep", maxDepth)
	}
	n := &Notebook{}
	if err := json.Unmarshal(data, &n.fields); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	var major int
	if json.Unmarshal(n.fields["nbformat"], &major) != nil {
		return nil, errors.New("it has no number nbformat")
	}
	if major != 4 {
		return nil, fmt.Errorf("it has the format %d, and only 4 is supported: convert it with `jupyter nbconvert --to notebook --nbformat 4 FILE`", major)
	}
	if raw, ok := n.fields["metadata"]; ok {
		if err := json.Unmarshal(raw, &n.info); err != nil {
			return nil, fmt.Errorf("its metadata: %w", err)
		}
	}
	var cells []fields
	if err := json.Unmarshal(n.fields["cells"], &cells); err != nil {
		return nil, fmt.Errorf("its cells: %w", err)
	}
	if len(cells) > maxCells {
		return nil, fmt.Errorf("it has more than %d cells", maxCells)
	}
	for i, f := range cells {
		c, err := newCell(f, i+1)
		if err != nil {
			return nil, fmt.Errorf("cell %d: %w", i+1, err)
		}
		n.cells = append(n.cells, c)
	}
	return n, nil
}

// depth is how deep arrays and objects are nested in JSON.
func depth(data []byte) int {
	now, most := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			now++
			most = max(most, now)
		case ']', '}':
			now--
		}
	}
	return most
}

func newCell(f fields, number int) (*Cell, error) {
	var kind string
	if f == nil || json.Unmarshal(f["cell_type"], &kind) != nil {
		return nil, errors.New("it has no cell_type")
	}
	c := &Cell{Number: number, fields: f}
	if kind != "code" {
		return c, nil
	}
	c.code = true
	var err error
	if c.Source, err = text(f["source"]); err != nil {
		return nil, fmt.Errorf("its source: %w", err)
	}
	var about struct {
		Tags []string `json:"tags"`
	}
	if raw, ok := f["metadata"]; ok {
		if err := json.Unmarshal(raw, &about); err != nil {
			return nil, fmt.Errorf("its metadata: %w", err)
		}
	}
	c.Tags = about.Tags
	return c, nil
}

// text reads a text, which is a string or a list of strings.
func text(raw json.RawMessage) (string, error) {
	var lines []string
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		err := json.Unmarshal(raw, &lines)
		return strings.Join(lines, ""), err
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// Language is what the notebook says it is written in, in lower case and without a version: "python",
// "r", "c++"; empty where it says nothing.
func (n *Notebook) Language() string {
	for _, name := range []string{n.info.Kernel.Language, n.info.Language.Name, n.info.Kernel.Name} {
		if name = strings.TrimRight(strings.ToLower(strings.TrimSpace(name)), "0123456789."); name != "" {
			return name
		}
	}
	return ""
}

// Code returns the code cells that have code, in order.
func (n *Notebook) Code() []*Cell {
	var code []*Cell
	for _, c := range n.cells {
		if strings.TrimSpace(c.Source) != "" {
			code = append(code, c)
		}
	}
	return code
}

// Tagged reports whether a cell has a tag.
func (c *Cell) Tagged(tag string) bool { return slices.Contains(c.Tags, tag) }

// Clear removes the outputs of all code cells.
func (n *Notebook) Clear() {
	for _, c := range n.cells {
		if c.code {
			c.SetOutputs(0, nil)
		}
	}
}

// Encode writes the notebook as Jupyter does: with sorted names, each level indented by a blank.
func (n *Notebook) Encode() ([]byte, error) {
	cells := make([]fields, len(n.cells))
	for i, c := range n.cells {
		cells[i] = c.fields
	}
	n.fields["cells"] = raw(cells)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(n.fields); err != nil {
		return nil, fmt.Errorf("write the notebook: %w", err)
	}
	return out.Bytes(), nil
}

// raw is a value as JSON. Ours always can be.
func raw(v any) json.RawMessage {
	text, _ := plainjson.Marshal(v)
	return text
}
