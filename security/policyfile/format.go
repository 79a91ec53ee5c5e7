package policyfile

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/llmsandbox/llmsandbox/security"
)

// Schema is the JSON Schema (draft 2020-12) of policy files, for editors and validators.
// What it cannot say, such as whether a regular expression is one, Load finds.
//
//go:embed policy.schema.json
var Schema string

// Format writes a policy as a YAML file that Load reads.
func Format(p security.Policy) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the policy: %w", err)
	}
	r := newReader(data)
	root, err := r.value(0)
	if err != nil {
		return nil, fmt.Errorf("write the policy: %w", err)
	}
	shorten(root)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write the policy: %w", err)
	}
	return out.Bytes(), nil
}

// shorten puts lists of plain values on one line.
func shorten(n *yaml.Node) {
	plain := n.Kind == yaml.SequenceNode
	for _, member := range n.Content {
		plain = plain && member.Kind == yaml.ScalarNode
		shorten(member)
	}
	if plain {
		n.Style = yaml.FlowStyle
	}
}
