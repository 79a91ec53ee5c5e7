// Package policyfile reads security policies from YAML and JSON files. It is strict: what
// it does not know is an error with its line, so that a misspelt rule is not a missing one.
package policyfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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

// MaxSize is how large a policy file may be, in bytes.
const MaxSize = 1 << 20

// Load compiles the preset of a name, or else the policy in the file of that path, whose
// ending is .yaml, .yml or .json. Errors on what is in a policy wrap security.ErrPolicy,
// those on the file are the file system's.
func Load(nameOrPath string) (*security.Checker, error) {
	p, err := policy(nameOrPath)
	if err != nil {
		return nil, err
	}
	c, err := security.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", nameOrPath, err)
	}
	return c, nil
}

func policy(nameOrPath string) (security.Policy, error) {
	p, err := security.Preset(nameOrPath)
	if err == nil {
		return p, nil
	}
	if ending(nameOrPath) == "" {
		return p, fmt.Errorf("%w; a file's name ends in .yaml, .yml or .json", err)
	}
	return read(nameOrPath)
}

// ending is the path's ending if it is one of a policy file, or else empty.
func ending(path string) string {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".yaml", ".yml", ".json":
		return ext
	}
	return ""
}

func read(path string) (security.Policy, error) {
	none := security.Policy{}
	f, err := os.Open(path)
	if err != nil {
		return none, fmt.Errorf("read the policy: %w", err)
	}
	defer f.Close() // only read from
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return none, fmt.Errorf("read the policy: %w", err)
	}
	parse := ParseYAML
	if ending(path) == ".json" {
		parse = ParseJSON
	}
	p, err := parse(data)
	if at, ok := errors.AsType[*Error](err); ok {
		at.File = path
	}
	return p, err
}

// An Error reports where a policy file is wrong. It wraps security.ErrPolicy.
type Error struct {
	// File is its path, empty when it was parsed from memory. Line is from 1, or 0 when
	// it is about all of the file.
	File string
	Line int
	// Err says what is wrong.
	Err error
}

func (e *Error) Error() string {
	file := cmp.Or(e.File, "policy")
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", file, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", file, e.Line, e.Err)
}

func (e *Error) Unwrap() []error { return []error{security.ErrPolicy, e.Err} }

func wrong(line int, format string, args ...any) error {
	return &Error{Line: line, Err: fmt.Errorf(format, args...)}
}
