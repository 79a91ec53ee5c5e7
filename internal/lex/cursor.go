package lex

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Cursor reads code. Methods never go beyond its end.
type Cursor struct {
	Code string
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
	return len(c.Code)-c.Pos >= len(text) && c.Code[c.Pos:c.Pos+len(text)] == text
}

// Skip goes over text if it comes next.
func (c *Cursor) Skip(text string) bool {
	if !c.Has(text) {
		return false
	}
	c.Pos += len(text)
	return true
}

// To goes to the next of the characters any, or to the end of the code.
func (c *Cursor) To(any string) {
	if n := strings.IndexAny(c.Code[c.Pos:], any); n >= 0 {
		c.Pos += n
	} else {
		c.Pos = len(c.Code)
	}
}

// Through goes behind the next text, or to the end of the code, and then returns false.
func (c *Cursor) Through(text string) bool {
	n := strings.Index(c.Code[c.Pos:], text)
	if n < 0 {
		c.Pos = len(c.Code)
		return false
	}
	c.Pos += n + len(text)
	return true
}

// Rune is the next character and its length; length 0 at the end.
func (c *Cursor) Rune() (rune, int) {
	if c.End() {
		return utf8.RuneError, 0
	}
	return utf8.DecodeRuneInString(c.Code[c.Pos:])
}

// Identifier goes over letters, digits, '_' and the characters in also, and returns them; it
// is empty where a digit or none of them comes next.
func (c *Cursor) Identifier(also string) string {
	start := c.Pos
	for !c.End() {
		// Nearly all code is of these.
		if b := c.Code[c.Pos]; b < utf8.RuneSelf {
			if !isLetter(b) && b != '_' && (!IsDigit(b) || c.Pos == start) && strings.IndexByte(also, b) < 0 {
				break
			}
			c.Pos++
			continue
		}
		r, n := c.Rune()
		if c.Pos == start && unicode.IsDigit(r) || !unicode.In(r, letters...) && !strings.ContainsRune(also, r) {
			break
		}
		c.Pos += n
	}
	return c.Code[start:c.Pos]
}

// letters are what names are made of in some language.
var letters = []*unicode.RangeTable{
	unicode.L, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Sc, unicode.Other_ID_Start, unicode.Other_ID_Continue,
}

// IsDigit tells of a decimal digit.
func IsDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// IsWord tells of what a name in ASCII has.
func IsWord(b byte) bool { return b == '_' || IsDigit(b) || isLetter(b) }
