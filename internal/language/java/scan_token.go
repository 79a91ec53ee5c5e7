package java

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// split makes tokens of code.
func split(s *lex.Facts, code []byte) []lex.Token {
	c := &lex.Cursor{Code: code}
	c.Skip("\ufeff")
	tokens := make([]lex.Token, 0, len(code)/3+8)
	for !c.End() {
		s.Step()
		t := lex.Token{Span: language.Span{Start: c.Pos}}
		switch b := c.At(0); {
		case b <= ' ' && b != 0:
			c.Pos++
			continue
		case c.Skip("//"):
			// A line may end in a carriage return alone.
			for !c.End() && c.At(0) != '\n' && c.At(0) != '\r' {
				s.Step()
				c.Pos++
			}
			s.Comment(t.Start, c.Pos)
			continue
		case c.Skip("/*"):
			if !c.Through("*/") {
				s.Trouble("a comment is not closed")
			}
			s.Comment(t.Start, c.Pos)
			continue
		case b == '"' || b == '\'':
			quoted(s, c, &t)
		case b >= '0' && b <= '9' || b == '.' && c.At(1) >= '0' && c.At(1) <= '9':
			t.Kind = lex.Number
			number(c)
		default:
			if t.Text = word(c); t.Text != "" {
				t.Kind = lex.Name
				break
			}
			t.Kind = lex.Punct
			switch {
			case c.Skip("::"), c.Skip("->"), c.Skip("=="), c.Skip("!="), c.Skip("<="), c.Skip("&&"), c.Skip("||"),
				c.Skip("++"), c.Skip("--"), c.Skip("+="), c.Skip("..."):
			default:
				_, n := c.Rune()
				c.Pos += n
			}
			t.Text = string(code[t.Start:c.Pos])
		}
		t.End = c.Pos
		tokens = append(tokens, t)
	}
	return tokens
}

// word reads a name. Characters that Java ignores in names are left out.
func word(c *lex.Cursor) string {
	start := c.Pos
	ascii := true
	for !c.End() {
		b := c.At(0)
		if b == '_' || b == '$' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' && c.Pos > start {
			c.Pos++
			continue
		}
		if b >= ' ' && b < 0x7f {
			break
		}
		r, n := c.Rune()
		switch {
		case unicode.IsLetter(r) || unicode.In(r, unicode.Sc, unicode.Pc, unicode.Nl) && r > 0x7f:
		case c.Pos > start && (ignorable(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd)):
		default:
			n = 0
		}
		if n == 0 {
			break
		}
		ascii = false
		c.Pos += n
	}
	text := string(c.Code[start:c.Pos])
	if !ascii {
		text = strings.Map(func(r rune) rune {
			if ignorable(r) {
				return -1
			}
			return r
		}, text)
	}
	return text
}

func ignorable(r rune) bool {
	return r >= 0 && r <= 8 || r >= 0xe && r <= 0x1b || r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Cf, r)
}

func number(c *lex.Cursor) {
	hex := c.At(0) == '0' && c.At(1)|0x20 == 'x'
	for !c.End() {
		b, before := c.At(0), c.At(-1)|0x20
		switch {
		case (b == '+' || b == '-') && (before == 'e' && !hex || before == 'p' && hex):
		case b == '.' && c.At(1) == '.':
			return
		case b == '.' || b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z':
		default:
			return
		}
		c.Pos++
	}
}

// quoted reads a string, a text block or a character.
func quoted(s *lex.Facts, c *lex.Cursor, t *lex.Token) {
	end := string(c.At(0))
	block := c.Has(`"""`)
	if block {
		end = `"""`
	}
	c.Skip(end)
	var value strings.Builder
	for !c.End() && (block || c.At(0) != '\n' && c.At(0) != '\r') {
		s.Step()
		if c.Skip(end) {
			t.Constant = true
			break
		}
		if c.Skip(`\`) {
			escape(c, &value)
			continue
		}
		value.WriteByte(c.At(0))
		c.Pos++
	}
	if !t.Constant {
		s.Trouble("a string is not closed")
	}
	t.Kind, t.Text = lex.String, value.String()
	if block {
		// White space that only lays out the block is not part of it.
		lines := strings.Split(t.Text, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		t.Text = strings.Join(lines[1:], "\n")
	}
	s.String(language.Literal{Span: language.Span{Start: t.Start, End: c.Pos}, Value: t.Text})
}

func escape(c *lex.Cursor, value *strings.Builder) {
	b := c.At(0)
	if c.End() {
		return
	}
	c.Pos++
	switch {
	case b == 'n':
		value.WriteByte('\n')
	case b == 't':
		value.WriteByte('\t')
	case b == 's':
		value.WriteByte(' ')
	case b == '\n':
	case b >= '0' && b <= '7':
		n := rune(b - '0')
		for most := 2; most > 0 && c.At(0) >= '0' && c.At(0) <= '7' && (b <= '3' || most > 1); most-- {
			n = n*8 + rune(c.At(0)-'0')
			c.Pos++
		}
		value.WriteRune(n)
	default:
		value.WriteByte(b)
	}
}

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
