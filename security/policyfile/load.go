// Package policyfile reads security policies from YAML and JSON files. It is strict: what
// it does not know is an error with its line, so that a misspelt rule is not a missing one.
package policyfile

import (
	"bytes"
	"cmp"
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

// Parse reads a policy from YAML, which JSON is, too. Its error is an [*Error].
func Parse(data []byte) (security.Policy, error) {
	if len(data) > MaxSize {
		return security.Policy{}, wrong(0, "it is larger than %d KiB", MaxSize>>10)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return security.Policy{}, syntax(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return security.Policy{}, wrong(more.Line, "there is a second document: a file holds one policy")
	case !errors.Is(err, io.EOF):
		return security.Policy{}, syntax(err)
	}
	return decode(doc.Content[0])
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
	switch strings.ToLower(filepath.Ext(nameOrPath)) {
	case ".yaml", ".yml", ".json":
		return read(nameOrPath)
	}
	return p, fmt.Errorf("%w; a file's name ends in .yaml, .yml or .json", err)
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
	p, err := Parse(data)
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
