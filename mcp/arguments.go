package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// readArguments decodes the arguments of a tool. Its errors are sentences for a model, in
// place of a validator's paths. What is left out gets its default, and so does what
// is null: clients whose language has None send it so.
func readArguments(tool string, schema *jsonschema.Schema, raw json.RawMessage, to any) error {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return errors.New("the arguments must be one JSON object")
	}
	if given == nil { // null
		given = map[string]json.RawMessage{}
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		if string(value) == "null" {
			delete(given, name)
			continue
		}
		p, known := schema.Properties[name]
		if !known {
			return fmt.Errorf("%s has no argument %q: it takes %s", tool, line(name), list(names, "and"))
		}
		checked, err := checkArgument(name, p, value)
		if err != nil {
			return err
		}
		given[name] = checked
	}
	for name, p := range schema.Properties {
		if _, ok := given[name]; !ok && p.Default != nil {
			given[name] = p.Default
		}
	}
	for _, name := range schema.Required {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("%s is missing: %s needs it", name, tool)
		}
	}
	plain, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	if err := json.Unmarshal(plain, to); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	return nil
}

// maxInteger is where floating-point numbers, which clients send, stop being exact.
const maxInteger = 1 << 53

// checkArgument returns a value that fits its schema, in the form that Go decodes.
func checkArgument(name string, p *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	switch p.Type {
	case "string":
		var text string
		if raw[0] != '"' || json.Unmarshal(raw, &text) != nil { // null would be taken
			return nil, fmt.Errorf("%s must be a string", name)
		}
		if n := utf8.RuneCountInString(text); p.MaxLength != nil && n > *p.MaxLength {
			return nil, fmt.Errorf("%s is too long: it has %d characters, and the maximum is %d", name, n, *p.MaxLength)
		}
		// Languages have aliases, which the catalog knows.
		if p.Enum != nil && name != "language" && !slices.Contains(p.Enum, any(text)) {
			var choices []string
			for _, v := range p.Enum {
				choices = append(choices, fmt.Sprint(v))
			}
			return nil, fmt.Errorf("%s must be %s, not %q", name, list(choices, "or"), line(text))
		}
	case "boolean":
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, fmt.Errorf("%s must be true or false", name)
		}
	case "integer":
		var n float64
		if json.Unmarshal(raw, &n) != nil || n != math.Trunc(n) || math.Abs(n) > maxInteger {
			return nil, fmt.Errorf("%s must be a whole number", name)
		}
		if p.Minimum != nil && n < *p.Minimum {
			return nil, fmt.Errorf("%s must be at least %.0f, not %.0f", name, *p.Minimum, n)
		}
		return fmt.Appendf(nil, "%.0f", n), nil
	case "array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return nil, fmt.Errorf("%s must be a list", name)
		}
		if p.MaxItems != nil && len(items) > *p.MaxItems {
			return nil, fmt.Errorf("%s is too long: it has %s, and the maximum is %d", name, count(len(items), "item"), *p.MaxItems)
		}
		for _, item := range items {
			if _, err := checkArgument("each item of "+name, p.Items, item); err != nil {
				return nil, err
			}
		}
	}
	return raw, nil
}

// list writes names as a sentence has them.
func list(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
