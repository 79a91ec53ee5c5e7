package policyfile

import (
	"bytes"
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
