package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A codec gets a value into one field and tells whether what is there makes sense.
type codec struct {
	// set decodes a value of the JSON kinds. To lists and maps it adds; of a
	// scalar the last one holds. What it leaves after an error is thrown away.
	set func(s *Settings, v any) error
	// check returns the first value of the field that is not allowed, and why. It
	// holds for values set from Go as for those from text.
	check func(s *Settings) (value any, err error)
}

// pointer is the codec of a scalar whose zero value means something.
func pointer[T any](decode func(any) (T, error), field func(*Settings) **T, valid func(T) error) codec {
	return codec{
		func(s *Settings, v any) error {
			x, err := decode(v)
			*field(s) = &x
			return err
		},
		func(s *Settings) (any, error) {
			if p := *field(s); p != nil {
				return *p, valid(*p)
			}
			return nil, nil
		},
	}
}

// text is the codec of a string.
func text(field func(*Settings) *string, valid func(string) error) codec {
	return codec{
		func(s *Settings, v any) error {
			x, err := toText(v)
			if err == nil && x == "" {
				err = errors.New("must not be empty; leave the key out for the default")
			}
			*field(s) = x
			return err
		},
		func(s *Settings) (any, error) {
			if x := *field(s); x != "" {
				return x, valid(x)
			}
			return nil, nil
		},
	}
}

// list is the codec of a list. An item may decode to several, as a map of them does.
func list[T any](decode func(any) ([]T, error), field func(*Settings) *[]T, valid func(T) error) codec {
	return codec{
		func(s *Settings, v any) error {
			values, err := items(v)
			all := slices.Clip(*field(s)) // a copy of the Settings may share it
			for _, item := range values {
				x, err := decode(item)
				if err != nil {
					return err
				}
				all = append(all, x...)
			}
			*field(s) = all
			return err
		},
		func(s *Settings) (any, error) {
			for _, x := range *field(s) {
				if err := valid(x); err != nil {
					return x, err
				}
			}
			return nil, nil
		},
	}
}

// table is the codec of a map, which may also come as a list of texts that split cuts.
func table(split func(string) (name, value string, err error), field func(*Settings) *map[string]string, valid func(name, value string) error) codec {
	return codec{
		func(s *Settings, v any) error {
			all := map[string]string{} // a copy of the Settings may share the one there is
			maps.Copy(all, *field(s))
			*field(s) = all
			return pairs(v, split, all)
		},
		func(s *Settings) (any, error) {
			m := *field(s)
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
