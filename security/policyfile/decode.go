package policyfile

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/llmsandbox/llmsandbox/internal/edits"
	"github.com/llmsandbox/llmsandbox/security"
)

// fields are the keys of a mapping and what reads each one's value.
type fields map[string]func(*yaml.Node) error

// mapping reads a mapping that may have the known keys and must have the needed ones.
func mapping(n *yaml.Node, what string, known fields, needed ...string) error {
	if n.Kind != yaml.MappingNode {
		return wrong(n.Line, "%s is %s and should be a mapping of names to values", what, kind(n))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || read == nil:
			return wrong(key.Line, "%s has no %.60q%s", what, key.Value, meant(key.Value, known))
		case seen[key.Value]:
			return wrong(key.Line, "%s has %q twice", what, key.Value)
		}
		seen[key.Value] = true
		if err := read(value); err != nil {
			return err
		}
	}
	for _, name := range needed {
		if !seen[name] {
			return wrong(n.Line, "%s needs a %q", what, name)
		}
	}
	return nil
}

// meant names the known key that is near to one, or all.
func meant(key string, known fields) string {
	names := slices.Sorted(maps.Keys(known))
	if len(key) <= 40 {
		for _, name := range names {
			if edits.Distance(strings.ToLower(key), name) <= 2 {
				return ": did you mean " + name + "?"
			}
		}
	}
	return ": there are " + strings.Join(names, ", ")
}

// listOf reads each member of a sequence and appends it.
func listOf[T any](to *[]T, what string, read func(*yaml.Node, *T) error) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return wrong(n.Line, "%s is %s and should be a list", what, kind(n))
		}
		for _, member := range n.Content {
			var v T
			if err := read(member, &v); err != nil {
				return err
			}
			*to = append(*to, v)
		}
		return nil
	}
}

// text reads a string. What YAML takes for a number or a truth value is none: in a list
// of names it is a mistake.
func text(to *string, what string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			return wrong(n.Line, "%s is %s and should be text: put it in quotes", what, kind(n))
		}
		*to = n.Value
		return nil
	}
}

func severity(to *security.Severity) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!int" {
			return wrong(n.Line, "a severity is %s and should be SAFE, LOW, MEDIUM or HIGH", kind(n))
		}
		s, err := security.ParseSeverity(n.Value)
		if err != nil {
			return wrong(n.Line, "%w", err)
		}
		*to = s
		return nil
	}
}

// kind says what a node is.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias, which policies do not have,"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a truth value"
	case "!!null":
		return "empty"
	}
	return fmt.Sprintf("a %.40q", n.ShortTag())
}

// decode reads a policy. What it extends comes first, so that its own fields stand and its
// own rules are added.
func decode(n *yaml.Node) (security.Policy, error) {
	p, err := base(n)
	if err != nil {
		return p, err
	}
	err = mapping(n, "a policy", fields{
		"extends":            func(*yaml.Node) error { return nil }, // is read already
		"name":               text(&p.Name, "the policy's name"),
		"description":        text(&p.Description, "the policy's description"),
		"severity_threshold": severity(&p.Threshold),
		"computed":           severity(&p.Computed),
		"restricted_modules": listOf(&p.Modules, "restricted_modules", func(n *yaml.Node, m *security.RestrictedModule) error {
			return rule(n, "a restricted module", "name", &m.Name, &m.Description, &m.Severity, &m.Languages, nil)
		}),
		"restricted_names": listOf(&p.Names, "restricted_names", func(n *yaml.Node, r *security.RestrictedName) error {
			return rule(n, "a restricted name", "name", &r.Name, &r.Description, &r.Severity, &r.Languages, nil)
		}),
		"patterns": listOf(&p.Patterns, "patterns", func(n *yaml.Node, r *security.Pattern) error {
			return rule(n, "a pattern", "pattern", &r.Pattern, &r.Description, &r.Severity, &r.Languages, (*string)(&r.In))
		}),
	})
	return p, err
}

// base is the preset that a policy extends, under no name.
func base(n *yaml.Node) (security.Policy, error) {
	if n.Kind != yaml.MappingNode {
		return security.Policy{}, nil // mapping says so
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "extends" {
			continue
		}
		var name string
		if err := text(&name, "extends")(n.Content[i+1]); err != nil {
			return security.Policy{}, err
		}
		p, err := security.Preset(name)
		if err != nil {
			return p, wrong(n.Content[i+1].Line, "extends: %w", err)
		}
		p.Name, p.Description = "", ""
		return p, nil
	}
	return security.Policy{}, nil
}

// rule reads what all three kinds of rules have; where is nil for those that have none.
func rule(n *yaml.Node, what, key string, name, description *string, s *security.Severity, languages *[]string, where *string) error {
	known := fields{
		key:           text(name, what+"'s "+key),
		"description": text(description, what+"'s description"),
		"severity":    severity(s),
		"languages":   listOf(languages, "languages", func(n *yaml.Node, l *string) error { return text(l, "a language")(n) }),
	}
	if where != nil {
		known["in"] = text(where, "in")
	}
	return mapping(n, what, known, key, "severity")
}

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
