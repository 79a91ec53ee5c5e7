package settings

import (
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A KeyError tells what is wrong with one key. It is a backend.ErrInvalid.
type KeyError struct {
	Key    string
	Value  string // as given, shortened; empty when it is not to be shown
	Reason string // what is wrong and what is allowed
}

func (e *KeyError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("runtime option %s: %s", printable(e.Key), e.Reason)
	}
	return fmt.Sprintf("runtime option %s: value %q: %s", printable(e.Key), e.Value, e.Reason)
}

// Is makes errors.Is(err, backend.ErrInvalid) true.
func (e *KeyError) Is(target error) bool { return target == backend.ErrInvalid }

// fault returns a KeyError without a value.
func fault(key, format string, args ...any) error {
	return &KeyError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

// printable is the key itself, or quoted when it holds more than keys do.
func printable(key string) string {
	odd := func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if key == "" || len(key) > maxShown || strings.ContainsFunc(key, odd) {
		return fmt.Sprintf("%q", shorten(key))
	}
	return key
}

// maxShown bounds how much of a value an error repeats, in bytes.
const maxShown = 80

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}
