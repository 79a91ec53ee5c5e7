package lex

import (
	"unicode"
	"unicode/utf8"
)

// A Cursor reads code. Methods never go beyond its end.
type Cursor struct {
	Code []byte
	Pos  int
}

// End tells that there is no more.
func (c *Cursor) End() bool { return c.Pos >= len(c.Code) }

// At is the byte n bytes ahead, or 0.
func (c *Cursor) At(n int) byte {
	if c.Pos+n < 0 || c.Pos+n >= len(c.Code) {
		return 0
	}
	return c.Code[c.Pos+n]
}

// Has tells whether text comes next.
func (c *Cursor) Has(text string) bool {
	return len(c.Code)-c.Pos >= len(text) && string(c.Code[c.Pos:c.Pos+len(text)]) == text
}

// Skip goes over text if it comes next.
func (c *Cursor) Skip(text string) bool {
	if !c.Has(text) {
		return false
	}
	c.Pos += len(text)
	return true
}

// Line goes to the end of the line, before its newline.
func (c *Cursor) Line() {
	for !c.End() && c.Code[c.Pos] != '\n' {
		c.Pos++
	}
}

// Through goes behind the next text, or to the end of the code, and then returns false.
func (c *Cursor) Through(text string) bool {
	for ; !c.End(); c.Pos++ {
		if c.Skip(text) {
			return true
		}
	}
	return false
}

// Rune is the next character and its length; length 0 at the end.
func (c *Cursor) Rune() (rune, int) {
	if c.End() {
		return utf8.RuneError, 0
	}
	return utf8.DecodeRune(c.Code[c.Pos:])
}

// Identifier goes over letters, digits, '_' and the bytes in also, and returns them; it is
// empty where a digit or none of them comes next.
func (c *Cursor) Identifier(also string) string {
	start := c.Pos
	for !c.End() {
		// Nearly all code is of these.
		if b := c.Code[c.Pos]; b < utf8.RuneSelf {
			digit := b >= '0' && b <= '9'
			if b != '_' && (b|0x20 < 'a' || b|0x20 > 'z') && (!digit || c.Pos == start) && (digit || !contains(also, rune(b))) {
				break
			}
			c.Pos++
			continue
		}
		r, n := c.Rune()
		digit := unicode.IsDigit(r)
		if c.Pos == start && digit {
			break
		}
		if !unicode.IsLetter(r) && !digit && !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc) && !contains(also, r) {
			break
		}
		c.Pos += n
	}
	return string(c.Code[start:c.Pos])
}

func contains(s string, r rune) bool {
	for _, have := range s {
		if have == r {
			return true
		}
	}
	return false
}
