package settings

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// What follows decides which values are allowed. What only the engine can know, such
// as the names of its networks, is left to the engine.

func within(least, most int64) func(int64) error {
	return func(n int64) error {
		if n < least || n > most {
			return fmt.Errorf("use a whole number from %d to %d", least, most)
		}
		return nil
	}
}

// minMemory is the least memory limit that engines accept, in bytes.
const minMemory = 6 << 20

// memory allows limits that can work; lifted is the value that means no limit.
func memory(lifted int64) func(int64) error {
	return func(n int64) error {
		if n != lifted && n < minMemory {
			return fmt.Errorf("use at least 6m, or %d for no limit", lifted)
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
			if s == w && !strings.HasSuffix(w, ":") || prefixed && strings.HasSuffix(w, ":") && word(rest) == nil {
				return nil
			}
		}
		shown := strings.ReplaceAll(strings.Join(words, ", "), ":", ":...")
		return fmt.Errorf("use %s", shown)
	}
}

// matching compiles the pattern when it is first used: there are many options, and
// programs import this that use none.
func matching(pattern, use string) func(string) error {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) })
	return func(s string) error {
		if len(s) > 4096 || !re().MatchString(s) {
			return errors.New("use " + use)
		}
		return nil
	}
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
