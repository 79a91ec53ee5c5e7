package settings

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxValue bounds one value, in bytes of JSON.
const maxValue = 1 << 20

// Set sets one key from text, as in KEY=VALUE on a command line. A key that takes a
// list or a map is added to by each call: one item a call, in the form container
// engines' command lines use, or a JSON array or object with several. Conflicts
// between keys are found by [Settings.Validate].
func (s *Settings) Set(key, value string) error {
	o, err := lookUp(key)
	if err != nil {
		return err
	}
	var v any = value
	if (o.Type == "list" || o.Type == "map") && looksJSON(value) {
		if v, err = decodeJSON([]byte(value)); err != nil {
			return &KeyError{Key: key, Value: o.show(value), Reason: "is not valid JSON: " + err.Error()}
		}
	}
	return o.assign(s, v)
}

// looksJSON tells a JSON array or object from other text, such as an IPv6 address in
// brackets with more behind it.
func looksJSON(text string) bool {
	t := strings.TrimSpace(text)
	return len(t) > 1 && (t[0] == '[' && t[len(t)-1] == ']' || t[0] == '{' && t[len(t)-1] == '}')
}

// FromMap reads settings in the shapes of docker-py's keyword arguments, whose None is
// nil: not set. The map is not changed. The result is valid.
func FromMap(m map[string]any) (Settings, error) {
	var s Settings
	var network []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		o, err := lookUp(key)
		if err != nil {
			return Settings{}, err
		}
		v, err := normalise(m[key])
		if err != nil {
			return Settings{}, fault(key, "%v", err)
		}
		if v == nil {
			continue
		}
		if err := o.assign(&s, v); err != nil {
			return Settings{}, err
		}
		if strings.HasPrefix(key, "network") {
			network = append(network, key)
		}
	}
	if len(network) > 1 {
		return Settings{}, fault(network[0], "contradicts %s: a sandbox has one network; give only one of them", network[1])
	}
	if err := s.Validate(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// assign sets the key's field, or leaves s as it was.
func (o *option) assign(s *Settings, v any) error {
	changed := *s
	err := o.set(&changed, v)
	if err == nil {
		_, err = o.check(&changed)
	}
	if err != nil {
		return &KeyError{Key: o.Name, Value: o.show(v), Reason: err.Error()}
	}
	*s = changed
	return nil
}

// show renders a value for an error.
func (o *option) show(v any) string {
	if o.secret() {
		return ""
	}
	if text, ok := v.(string); ok {
		return shorten(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return shorten(string(text))
}
