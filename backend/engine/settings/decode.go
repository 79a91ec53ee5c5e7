package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// A codec gets a value into a field, to which it is given a pointer, and checks what is there.
type codec struct {
	// set decodes a value of the JSON kinds. To lists and maps it adds; of a
	// scalar the last one holds. What it leaves after an error is thrown away.
	set func(field, v any) error
	// check returns the first value of the field that is not allowed, and why. It
	// holds for values set from Go as for those from text.
	check func(field any) (value any, err error)
}

// pointer is the codec of a scalar whose zero value means something.
func pointer[T any](decode func(any) (T, error), valid func(T) error) codec {
	return codec{
		func(field, v any) error {
			x, err := decode(v)
			*field.(**T) = &x
			return err
		},
		func(field any) (any, error) {
			if p := *field.(**T); p != nil {
				return *p, valid(*p)
			}
			return nil, nil
		},
	}
}

// text is the codec of a string.
func text(valid func(string) error) codec {
	return codec{
		func(field, v any) error {
			x, err := toText(v)
			if err == nil && x == "" {
				err = errors.New("must not be empty; leave the key out for the default")
			}
			*field.(*string) = x
			return err
		},
		func(field any) (any, error) {
			if x := *field.(*string); x != "" {
				return x, valid(x)
			}
			return nil, nil
		},
	}
}

// list is the codec of a list. An item may decode to several, as a map of them does.
func list[T any](decode func(any) ([]T, error), valid func(T) error) codec {
	return codec{
		func(field, v any) error {
			values, err := items(v)
			all := slices.Clip(*field.(*[]T)) // a copy of the Settings may share it
			for _, item := range values {
				x, err := decode(item)
				if err != nil {
					return err
				}
				all = append(all, x...)
			}
			*field.(*[]T) = all
			return err
		},
		func(field any) (any, error) {
			for _, x := range *field.(*[]T) {
				if err := valid(x); err != nil {
					return x, err
				}
			}
			return nil, nil
		},
	}
}

// table is the codec of a map, which may also come as a list of texts that split cuts.
func table(split func(string) (name, value string, err error), valid func(name, value string) error) codec {
	return codec{
		func(field, v any) error {
			all := map[string]string{} // a copy of the Settings may share the one there is
			maps.Copy(all, *field.(*map[string]string))
			*field.(*map[string]string) = all
			return pairs(v, split, all)
		},
		func(field any) (any, error) {
			m := *field.(*map[string]string)
			for _, name := range slices.Sorted(maps.Keys(m)) {
				if err := valid(name, m[name]); err != nil {
					return fmt.Sprintf("%s=%s", name, m[name]), err
				}
			}
			return nil, nil
		},
	}
}

// one is the decoder of items that are one each.
func one[T any](decode func(any) (T, error)) func(any) ([]T, error) {
	return func(v any) ([]T, error) {
		x, err := decode(v)
		return []T{x}, err
	}
}

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
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return x, fmt.Errorf("field %q: use a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return x, fmt.Errorf("%s: use %s", strings.TrimPrefix(err.Error(), "json: "), use)
	}
	return x, nil
}

// textOr decodes a text by parse, and an object as toObject does.
func textOr[T any](parse func(string) (T, error), use string) func(any) (T, error) {
	return func(v any) (T, error) {
		if text, err := toText(v); err == nil {
			return parse(text)
		}
		return toObject[T](v, use)
	}
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

// What follows decides which values are allowed. What only the engine can know, such
// as the names of its networks, is left to the engine.

func within[T int | int64 | uint16](least, most int64) func(T) error {
	return func(n T) error {
		if int64(n) < least || int64(n) > most {
			return fmt.Errorf("use a whole number from %d to %d", least, most)
		}
		return nil
	}
}

func anything[T any](T) error { return nil }

// word allows text without white space and control characters.
func word(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("use a name without white space or control characters")
	}
	return nil
}

// oneOf allows some names, and those that begin with one that ends in a colon.
func oneOf(names ...string) func(string) error {
	return func(s string) error {
		for _, w := range names {
			rest, prefixed := strings.CutPrefix(s, w)
			if open := strings.HasSuffix(w, ":"); s == w && !open || prefixed && open && word(rest) == nil {
				return nil
			}
		}
		return errors.New("use " + strings.ReplaceAll(strings.Join(names, ", "), ":", ":..."))
	}
}

func matching(pattern, use string) func(string) error {
	return func(s string) error {
		if !matches(pattern, s) {
			return errors.New("use " + use)
		}
		return nil
	}
}

// matches compiles the pattern when it is used: there are many options, and programs
// import this that use none.
func matches(pattern, s string) bool {
	return len(s) <= 4096 && regexp.MustCompile(`^(?:`+pattern+`)$`).MatchString(s)
}

// noControls allows text that fits into a line of a configuration.
func noControls(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("control characters are not allowed")
	}
	return nil
}

// noNUL allows text that the kernel can hold.
func noNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("a NUL byte is not allowed")
	}
	return nil
}

// wordLine allows a name that is a word and a value of one line.
func wordLine(name, value string) error {
	if err := word(name); err != nil {
		return fmt.Errorf("name %q: %w", shorten(name), err)
	}
	return noControls(value)
}

// absolute allows a clean absolute path inside, or on an engine's Linux host.
func absolute(p string) error {
	if !path.IsAbs(p) || noControls(p) != nil {
		return errors.New("use an absolute path")
	}
	return nil
}

// is reports whether a setting has that value.
func is[T comparable](setting *T, value T) bool { return setting != nil && *setting == value }
