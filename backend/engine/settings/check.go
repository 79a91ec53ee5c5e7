package settings

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

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

// oneOf allows some words, and those that begin with one that ends in a colon.
func oneOf(words ...string) func(string) error {
	return func(s string) error {
		for _, w := range words {
			rest, prefixed := strings.CutPrefix(s, w)
			if open := strings.HasSuffix(w, ":"); s == w && !open || prefixed && open && word(rest) == nil {
				return nil
			}
		}
		return errors.New("use " + strings.ReplaceAll(strings.Join(words, ", "), ":", ":..."))
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

// is tells whether a setting has that value.
func is[T comparable](setting *T, value T) bool { return setting != nil && *setting == value }
