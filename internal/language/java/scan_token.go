package java

import (
	"strings"
	"unicode"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// lex splits code.
func (s *reader) lex(code []byte) {
	c := &lex.Cursor{Code: code}
	c.Skip("\ufeff")
	s.tokens = make([]lex.Token, 0, len(code)/3+8)
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
			s.quoted(c, &t)
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
			case c.Skip("::"), c.Skip("->"), c.Skip("=="), c.Skip("!="), c.Skip("<="), c.Skip("&&"), c.Skip("||"), c.Skip("++"), c.Skip("--"), c.Skip("+="), c.Skip("..."):
			default:
				_, n := c.Rune()
				c.Pos += n
			}
			t.Text = string(code[t.Start:c.Pos])
		}
		t.End = c.Pos
		s.tokens = append(s.tokens, t)
	}
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
