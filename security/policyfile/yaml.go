package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/llmsandbox/llmsandbox/security"
)

// ParseYAML reads a policy from YAML. Its error is an [*Error].
func ParseYAML(data []byte) (security.Policy, error) {
	if err := size(data); err != nil {
		return security.Policy{}, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return security.Policy{}, syntax(err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return security.Policy{}, wrong(more.Line, "there is a second document: a file holds one policy")
	}
	return decode(doc.Content[0])
}

func size(data []byte) error {
	if len(data) > MaxSize {
		return wrong(0, "it is larger than %d KiB", MaxSize>>10)
	}
	return nil
}

var lineOf = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: line (\d+): `) })

// syntax takes the line out of the parser's error.
func syntax(err error) error {
	if errors.Is(err, io.EOF) {
		return wrong(0, "it is empty")
	}
	text := err.Error()
	m := lineOf().FindStringSubmatch(text)
	if m == nil {
		return wrong(0, "%w", err)
	}
	line, _ := strconv.Atoi(m[1]) // digits; 0 if there are too many
	return wrong(line, "%s", text[len(m[0]):])
}

// ParseJSON reads a policy from JSON. Its error is an [*Error].
func ParseJSON(data []byte) (security.Policy, error) {
	if err := size(data); err != nil {
		return security.Policy{}, err
	}
	r := newReader(data)
	root, err := r.value(0)
	if err != nil {
		return security.Policy{}, err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return security.Policy{}, wrong(r.line(), "there is more behind the policy")
	}
	return decode(root)
}

// maxDepth is how deep values may lie in values.
const maxDepth = 16

// A reader turns JSON into the nodes that YAML is read as, so that both are decoded by the
// same rules.
type reader struct {
	data []byte
	dec  *json.Decoder
	// counted is how far lines have been counted.
	counted, lines int
}

func newReader(data []byte) *reader {
	r := &reader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	return r
}

func (r *reader) line() int {
	at := int(r.dec.InputOffset())
	r.lines += bytes.Count(r.data[r.counted:at], []byte("\n"))
	r.counted = at
	return r.lines + 1
}

func (r *reader) token() (json.Token, error) {
	t, err := r.dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, wrong(r.line(), "it ends too early")
	}
	if err != nil {
		return nil, wrong(r.line(), "%w", err)
	}
	return t, nil
}

func (r *reader) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, wrong(r.line(), "values lie too deep in each other")
	}
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line()}
	switch t := t.(type) {
	case json.Delim:
		return n, r.collection(n, t, depth)
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
	case bool:
		n.Tag = "!!bool"
	default:
		n.Tag = "!!null"
	}
	return n, nil
}

// collection reads the members of an object or an array; an object's keys are among them.
func (r *reader) collection(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for r.dec.More() {
		member, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, member)
	}
	_, err := r.token()
	return err
}
