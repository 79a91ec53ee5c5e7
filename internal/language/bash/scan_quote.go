package bash

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// single reads a string in single quotes.
func (s *scanner) single(w *word, b *strings.Builder) {
	start := s.pos
	w.quoted = true
	s.pos++
	n := bytes.IndexByte(s.src[s.pos:], '\'')
	if n < 0 {
		s.facts.Trouble("a string is not closed")
		n = len(s.src) - s.pos
	}
	s.quoted(w, b, string(s.src[s.pos:s.pos+n]), s.pos)
	s.pos = min(s.pos+n+1, len(s.src))
	s.facts.String(language.Literal{Span: language.Span{Start: start, End: s.pos}, Value: string(s.src[start+1 : start+1+n])})
}

// quoted adds to a word what is quoted and begins at a place.
func (s *scanner) quoted(w *word, b *strings.Builder, value string, at int) {
	if i := strings.LastIndexByte(value, '/'); i >= 0 {
		w.tail, w.tailAt = b.Len()+i+1, min(at+i+1, len(s.src))
	}
	b.WriteString(value)
}

// double reads a string in double quotes.
func (s *scanner) double(w *word, b *strings.Builder) {
	start, from := s.pos, b.Len()
	w.quoted = true
	s.pos++
	for s.pos < len(s.src) {
		s.facts.Step()
		switch c := s.src[s.pos]; c {
		case '"':
			s.pos++
			s.facts.String(language.Literal{Span: language.Span{Start: start, End: s.pos}, Value: b.String()[from:]})
			return
		case '\\':
			next := s.at(1)
			switch next {
			case '\n':
			case '$', '`', '"', '\\':
				b.WriteByte(next)
			default:
				b.WriteByte('\\')
				s.pos++
				continue
			}
			s.pos += 2
		case '`':
			s.backticks(w)
		case '$':
			s.dollar(w, b, true)
		default:
			b.WriteByte(c)
			s.pos++
			if c == '/' {
				w.tail, w.tailAt = b.Len(), s.pos
			}
		}
	}
	s.pos = len(s.src)
	s.facts.Trouble("a string is not closed")
	s.facts.String(language.Literal{Span: language.Span{Start: start, End: s.pos}, Value: b.String()[from:]})
}

// ansi reads a string of the form $'...'.
func (s *scanner) ansi(w *word, b *strings.Builder) {
	start := s.pos
	w.quoted = true
	var v strings.Builder
	cut := false
	put := func(text string) {
		if !cut {
			v.WriteString(text)
		}
	}
	for s.pos += 2; s.pos < len(s.src) && s.src[s.pos] != '\''; {
		s.facts.Step()
		if s.src[s.pos] != '\\' {
			put(string(s.src[s.pos : s.pos+1]))
			s.pos++
			continue
		}
		text := s.escape()
		if text == "\x00" { // it ends the string for Bash
			cut = true
		}
		put(text)
	}
	if s.pos >= len(s.src) {
		s.facts.Trouble("a string is not closed")
	}
	s.pos = min(s.pos+1, len(s.src))
	s.quoted(w, b, v.String(), start+2)
	s.facts.String(language.Literal{Span: language.Span{Start: start, End: s.pos}, Value: v.String()})
}

// escape reads a backslash in such a string and what it escapes.
func (s *scanner) escape() string {
	c := s.at(1)
	s.pos += 2
	if s.pos > len(s.src) {
		s.pos = len(s.src)
		return `\`
	}
	if i := strings.IndexByte("abeEfnrtv\\'\"?", c); i >= 0 {
		return "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[i : i+1]
	}
	digits := func(most, base int) (uint64, bool) {
		n := 0
		for n < most && s.pos+n < len(s.src) {
			s.facts.Step()
			if _, err := strconv.ParseUint(string(s.src[s.pos+n:s.pos+n+1]), base, 8); err != nil {
				break
			}
			n++
		}
		v, err := strconv.ParseUint(string(s.src[s.pos:s.pos+n]), base, 64)
		s.pos += n
		return v, err == nil
	}
	switch {
	case c >= '0' && c <= '7':
		s.pos--
		v, _ := digits(3, 8)
		return string([]byte{byte(v)})
	case c == 'x':
		if s.at(0) == '{' {
			s.pos++
		}
		if v, ok := digits(2, 16); ok {
			return string([]byte{byte(v)})
		}
	case c == 'u' || c == 'U':
		most := 4
		if c == 'U' {
			most = 8
		}
		if v, ok := digits(most, 16); ok {
			return string(rune(v))
		}
	case c == 'c':
		if s.pos < len(s.src) {
			s.pos++
			return string([]byte{s.src[s.pos-1] & 0x1f})
		}
	}
	return `\` + string([]byte{c})
}
