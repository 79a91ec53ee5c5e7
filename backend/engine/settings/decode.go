package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// What follows decodes values of the JSON kinds, as normalise returns them; a string
// may stand for a number or a boolean, because command lines have nothing else. The
// errors say what is allowed; the key and the value are put before them.

// normalise turns any Go value into the JSON kinds: nil, bool, json.Number, string,
// []any and map[string]any.
func normalise(v any) (any, error) {
	switch v.(type) {
	case nil, bool, string:
		return v, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, errors.New("has a value that JSON cannot hold")
	}
	return decodeJSON(text)
}

func decodeJSON(text []byte) (any, error) {
	if len(text) > maxValue {
		return nil, errors.New("is longer than 1 MiB")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

func toText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	return "", errors.New("use a string")
}

func toBool(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
	}
	return false, errors.New("use true or false")
}

func toInt(v any) (int64, error) {
	text, _ := toText(v)
	text = strings.TrimSpace(text)
	if number, ok := v.(json.Number); ok && strings.ContainsAny(text, ".eE") {
		// 1e9 is how some encoders write a whole number.
		if f, err := number.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), nil
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errors.New("use a whole number")
	}
	return n, nil
}

// toSmall decodes a whole number of T's range.
func toSmall[T int | uint16](v any) (T, error) {
	n, err := toInt(v)
	if err == nil && int64(T(n)) != n {
		err = errors.New("use a smaller whole number")
	}
	return T(n), err
}

// toSize decodes bytes: a whole number, or text with a unit.
func toSize(v any) (int64, error) {
	n, err := toInt(v)
	if text, ok := v.(string); ok {
		n, err = bytesize.Parse(text)
	}
	if err != nil || n < 0 {
		return 0, errors.New("use bytes as a whole number, or a number with b, k, m or g behind it, such as 512m")
	}
	return n, nil
}

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
	d.UseNumber()
	if err := d.Decode(&x); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return x, fmt.Errorf("field %q: use a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return x, fmt.Errorf("%s: use %s", strings.TrimPrefix(err.Error(), "json: "), use)
	}
	return x, nil
}

// items returns the items of a list; a single string or object is a list of one.
func items(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case string, json.Number, map[string]any:
		return []any{v}, nil
	}
	return nil, errors.New("use a list")
}

// pairs adds the names and values of a map, or of a list of texts that split cuts.
func pairs(v any, split func(string) (name, value string, err error), all map[string]string) error {
	if m, ok := v.(map[string]any); ok {
		for name, value := range m {
			if b, ok := value.(bool); ok {
				value = strconv.FormatBool(b)
			}
			var err error
			if all[name], err = toText(value); err != nil {
				return fmt.Errorf("%q: use a string as its value", shorten(name))
			}
		}
		return nil
	}
	list, err := items(v)
	if err != nil {
		return errors.New("use a map or a list")
	}
	for _, item := range list {
		text, err := toText(item)
		if err != nil {
			return err
		}
		name, value, err := split(text)
		if err != nil {
			return err
		}
		all[name] = value
	}
	return nil
}

// nameValue cuts NAME=VALUE.
func nameValue(text string) (string, string, error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return "", "", errors.New("use NAME=VALUE")
	}
	return name, value, nil
}

// cutAt cuts NAME and perhaps a separator and a value behind it.
func cutAt(separator string) func(string) (string, string, error) {
	return func(text string) (string, string, error) {
		name, value, _ := strings.Cut(text, separator)
		return name, value, nil
	}
}
