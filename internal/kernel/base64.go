package kernel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// plain returns the line with its fields named ...64 decoded into fields without the 64.
func plain(line []byte) ([]byte, error) {
	if !bytes.Contains(line, []byte(`64"`)) {
		return line, nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one value in a line")
	}
	if err := decodeFields(v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// decodeFields decodes in place.
func decodeFields(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := decodeFields(e); err != nil {
				return err
			}
		}
	case map[string]any:
		decoded := map[string]any{}
		for name, field := range v {
			short, encoded := strings.CutSuffix(name, "64")
			if !encoded {
				if err := decodeFields(field); err != nil {
					return err
				}
				continue
			}
			text, err := decodeText(field)
			if err != nil {
				return fmt.Errorf("field %.40q: %w", name, err)
			}
			delete(v, name)
			decoded[short] = text
		}
		for name, field := range decoded {
			v[name] = field
		}
	}
	return nil
}

// decodeText decodes a string, or a list or object of strings.
func decodeText(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			s, err := decodeString(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = s
		}
		return v, nil
	case map[string]any:
		for name := range v {
			s, err := decodeString(v[name])
			if err != nil {
				return nil, err
			}
			v[name] = s
		}
		return v, nil
	}
	return decodeString(v)
}

func decodeString(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%T where base64 is due", v)
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}
