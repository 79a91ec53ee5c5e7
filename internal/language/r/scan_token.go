package r

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// operators of more than one character, the longer ones first.
var operators = [...]string{"<<-", "->>", ":::", "<-", "->", "::", "|>", "<=", ">=", "==", "!=", "&&", "||", ":="}

// tokens splits code. A name in backticks is a name whose text is all of it. Newlines in a row
// are one token, and [[ is two, as its end is.
func tokens(facts *lex.Facts, code []byte) []lex.Token {
	c := &lex.Cursor{Code: code}
	c.Skip("\ufeff")
	list := make([]lex.Token, 0, len(code)/3+8)
	for !c.End() {
		facts.Step()
		t := lex.Token{Span: language.Span{Start: c.Pos}}
		switch b := c.At(0); {
		case b == '\n':
			c.Pos++
			if n := len(list); n > 0 && list[n-1].Kind == lex.Newline {
				continue
			}
			t.Kind = lex.Newline
		case b == '#':
			c.Line()
			facts.Comment(t.Start, c.Pos)
			continue
		case b <= ' ':
			c.Pos++
			continue
		case (b == 'r' || b == 'R') && (c.At(1) == '"' || c.At(1) == '\'') && raw(facts, c, &t):
		case b == '"' || b == '\'' || b == '`':
			delimited(facts, c, &t)
		case b >= '0' && b <= '9' || b == '.' && c.At(1) >= '0' && c.At(1) <= '9':
			t.Kind = lex.Number
			number(facts, c)
		case b == '%':
			t.Kind = lex.Punct
			for c.Pos++; !c.End() && c.At(0) != '%' && c.At(0) != '\n'; {
				facts.Step()
				c.Pos++
			}
			if !c.Skip("%") {
				facts.Trouble("an operator in % is not closed")
			}
			t.Text = string(code[t.Start:c.Pos])
		default:
			if t.Text = c.Identifier("."); t.Text != "" {
				t.Kind = lex.Name
				break
			}
			t.Kind = lex.Punct
			t.Text = operator(c)
		}
		t.End = c.Pos
		list = append(list, t)
	}
	return list
}

func operator(c *lex.Cursor) string {
	if next := c.At(1); next > ' ' && strings.IndexByte("<->:=&|", next) >= 0 {
		for _, op := range operators {
			if c.Skip(op) {
				return op
			}
		}
	}
	_, n := c.Rune()
	start := c.Pos
	c.Pos += n
	return string(c.Code[start:c.Pos])
}

func number(facts *lex.Facts, c *lex.Cursor) {
	exponent := byte('e')
	if c.At(0) == '0' && c.At(1)|0x20 == 'x' {
		exponent = 'p'
	}
	for !c.End() {
		facts.Step()
		switch b := c.At(0); {
		case (b == '+' || b == '-') && c.At(-1)|0x20 == exponent:
		case b == '.' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z':
		default:
			return
		}
		c.Pos++
	}
}

// raw reads r"---(...)---".
func raw(facts *lex.Facts, c *lex.Cursor, t *lex.Token) bool {
	at := c.Pos + 2
	for at < len(c.Code) && c.Code[at] == '-' {
		facts.Step()
		at++
	}
	if at >= len(c.Code) {
		return false
	}
	pair := strings.IndexByte("([{", c.Code[at])
	if pair < 0 {
		return false
	}
	end := string(")]}"[pair]) + strings.Repeat("-", at-c.Pos-2) + string(c.At(1))
	c.Pos = at + 1
	t.Kind, t.Constant = lex.String, c.Through(end)
	if t.Constant {
		t.Text = string(c.Code[at+1 : c.Pos-len(end)])
	} else {
		facts.Trouble("a raw string is not closed")
	}
	facts.String(language.Literal{Span: language.Span{Start: t.Start, End: c.Pos}, Value: t.Text})
	return true
}

// delimited reads a string, or a name in backticks.
func delimited(facts *lex.Facts, c *lex.Cursor, t *lex.Token) {
	quote := c.At(0)
	var value strings.Builder
	closed := false
	for c.Pos++; !c.End() && !closed; {
		facts.Step()
		switch b := c.At(0); b {
		case quote:
			closed = true
			c.Pos++
		case '\\':
			c.Pos++
			escape(c, &value)
		default:
			value.WriteByte(b)
			c.Pos++
		}
	}
	if !closed {
		facts.Trouble("a string is not closed")
	}
	t.Text = value.String()
	if quote == '`' {
		t.Kind, t.Constant = lex.Name, true
		return
	}
	t.Kind, t.Constant = lex.String, closed
	facts.String(language.Literal{Span: language.Span{Start: t.Start, End: c.Pos}, Value: t.Text})
}

// escape reads what comes behind a backslash.
func escape(c *lex.Cursor, value *strings.Builder) {
	b := c.At(0)
	if c.End() {
		return
	}
	c.Pos++
	switch b {
	case 'n', 't', 'r', 'a', 'b', 'f', 'v':
		value.WriteByte("\n\t\r    "[strings.IndexByte("ntrabfv", b)])
	case 'x':
		value.WriteRune(digits(c, 16, 2))
	case 'u', 'U':
		braces := c.Skip("{")
		value.WriteRune(digits(c, 16, map[byte]int{'u': 4, 'U': 8}[b]))
		if braces {
			c.Skip("}")
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		c.Pos--
		value.WriteRune(digits(c, 8, 3))
	default:
		value.WriteByte(b)
	}
}

// digits is the character whose number comes next.
func digits(c *lex.Cursor, base, most int) rune {
	n := int64(0)
	for range most {
		d, err := strconv.ParseInt(string(c.At(0)), base, 8)
		if err != nil {
			break
		}
		n = n*int64(base) + d
		c.Pos++
	}
	return rune(min(n, unicode.MaxRune+1)) // which is none
}

var keywords = lex.Words("if else repeat while function for next break TRUE FALSE NULL Inf NaN NA NA_integer_ NA_real_ NA_character_ " +
	"NA_complex_ in ...")

func keyword(t lex.Token) bool { return !t.Constant && keywords()[t.Text] }

// is tells whether the token at i, which need not be there, is one of texts: keywords, operators
// and names that are not quoted.
func (s *reader) is(i int, texts ...string) bool {
	if i < 0 || i >= len(s.Tokens) {
		return false
	}
	t := &s.Tokens[i]
	return (t.Kind == lex.Punct || t.Kind == lex.Name && !t.Constant) && slices.Contains(texts, t.Text)
}

// name tells whether the token at i is a name and no keyword.
func (s *reader) name(i int) bool { return s.Kind(i) == lex.Name && !keyword(s.Tokens[i]) }

// named tells whether the token at i can be called or assigned to: R takes a string for a name.
func (s *reader) named(i int) bool { return s.name(i) || s.Kind(i) == lex.String }

// next is i, or behind the newline there.
func (s *reader) next(i int) int {
	if s.Kind(i) == lex.Newline {
		return i + 1
	}
	return i
}

// previous is i, or before the newline there.
func (s *reader) previous(i int) int {
	if s.Kind(i) == lex.Newline {
		return i - 1
	}
	return i
}

// ends tells whether an expression ends before the token at i.
func (s *reader) ends(i int) bool {
	return i >= len(s.Tokens) || s.Kind(i) == lex.Newline || s.is(i, ";", "}", ")", ",", "]")
}
