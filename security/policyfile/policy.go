package policyfile

import (
	"go.yaml.in/yaml/v3"

	"github.com/llmsandbox/llmsandbox/security"
)

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
