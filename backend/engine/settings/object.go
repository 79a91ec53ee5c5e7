package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// toObject decodes a JSON object into a type of the engine's API. Field names may be
// in any case and hold underscores, so both PathOnHost and path_on_host will do; a
// field that the type does not have is an error.
func toObject[T any](v any, use string) (T, error) {
	var x T
	m, ok := v.(map[string]any)
	if !ok {
		return x, errors.New("use " + use)
	}
	plain := make(map[string]any, len(m))
	for name, value := range m {
		short := strings.ToLower(strings.ReplaceAll(name, "_", ""))
		if _, twice := plain[short]; twice {
			return x, fmt.Errorf("field %q is there twice", shorten(name))
		}
		plain[short] = value
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return x, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return x, fmt.Errorf("field %q: use a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return x, fmt.Errorf("%s: use %s", strings.TrimPrefix(err.Error(), "json: "), use)
	}
	return x, nil
}
