package settings

import (
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

func toText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	return "", errors.New("use a string")
}

// toScalarText also takes booleans, for maps whose values are text in the end.
func toScalarText(v any) (string, error) {
	if b, ok := v.(bool); ok {
		return strconv.FormatBool(b), nil
	}
	return toText(v)
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
	var text string
	switch v := v.(type) {
	case string:
		text = strings.TrimSpace(v)
	case json.Number:
		text = v.String()
		// 1e9 is how some encoders write a whole number.
		if f, err := v.Float64(); err == nil && strings.ContainsAny(text, ".eE") && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
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
	const use = "use bytes as a whole number, or a number with b, k, m or g behind it, such as 512m"
	switch v := v.(type) {
	case string:
		if n, err := bytesize.Parse(v); err == nil {
			return n, nil
		}
	case json.Number:
		if n, err := toInt(v); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, errors.New(use)
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

// pairs calls add with the names and values of a map, or of a list of texts that
// split cuts.
func pairs(v any, split func(string) (name, value string, err error), add func(name, value string)) error {
	if m, ok := v.(map[string]any); ok {
		for name, value := range m {
			text, err := toScalarText(value)
			if err != nil {
				return fmt.Errorf("%q: use a string as its value", shorten(name))
			}
			add(name, text)
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
		add(name, value)
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
