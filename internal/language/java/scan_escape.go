package java

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// unescape replaces characters that are written by their numbers, which comes before all
// else in Java; nil where there are none.
func unescape(code []byte) *lex.Edited {
	if !bytes.Contains(code, []byte(`\u`)) {
		return nil
	}
	e := &lex.Edited{Code: make([]byte, 0, len(code))}
	for i := 0; i < len(code); {
		if code[i] != '\\' {
			e.Add(string(code[i:i+1]), i, i+1)
			i++
			continue
		}
		if r, n := escaped(code, i); n > 0 {
			if low, m := escaped(code, i+n); utf16.IsSurrogate(r) && m > 0 {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					r, n = both, n+m
				}
			}
			e.Add(string(r), i, i+n)
			i += n
			continue
		}
		// A second backslash behind one begins nothing.
		n := min(2, len(code)-i)
		if n == 2 && code[i+1] != '\\' {
			n = 1
		}
		for range n {
			e.Add(string(code[i:i+1]), i, i+1)
			i++
		}
	}
	return e
}

// escaped is the character that a number at i stands for, and its length, 0 when there is none.
func escaped(code []byte, i int) (rune, int) {
	start := i
	if i >= len(code) || code[i] != '\\' {
		return 0, 0
	}
	for i++; i < len(code) && code[i] == 'u'; i++ {
	}
	if i == start+1 || i+4 > len(code) {
		return 0, 0
	}
	n, err := strconv.ParseUint(string(code[i:i+4]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(n), i + 4 - start
}
