package r

import (
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// operators of more than one character, the longer ones first.
var operators = [...]string{"<<-", "->>", ":::", "[[", "<-", "->", "::", "|>", "<=", ">=", "==", "!=", "&&", "||", ":="}

// tokens splits code. A name in backticks is a name whose text is all of it.
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
			number(c)
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
	if next := c.At(1); next > ' ' && strings.IndexByte("<->:[=&|", next) >= 0 {
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

func number(c *lex.Cursor) {
	hex := c.At(0) == '0' && c.At(1)|0x20 == 'x'
	for !c.End() {
		switch b := c.At(0); {
		case (b == '+' || b == '-') && c.At(-1)|0x20 == map[bool]byte{true: 'p', false: 'e'}[hex]:
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
	if !c.End() {
		c.Pos++
	}
	digits := func(base, most int) {
		start := c.Pos
		for c.Pos-start < most && !c.End() {
			if _, err := strconv.ParseUint(string(c.At(0)), base, 8); err != nil {
				break
			}
			c.Pos++
		}
		n, _ := strconv.ParseUint(string(c.Code[start:c.Pos]), base, 32) // no digits are none
		value.WriteRune(rune(n))
	}
	switch b {
	case 'n':
		value.WriteByte('\n')
	case 't':
		value.WriteByte('\t')
	case 'r':
		value.WriteByte('\r')
	case 'a', 'b', 'f', 'v':
		value.WriteByte(' ')
	case 'x':
		digits(16, 2)
	case 'u', 'U':
		most := 4
		if b == 'U' {
			most = 8
		}
		braces := c.Skip("{")
		digits(16, most)
		if braces {
			c.Skip("}")
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		c.Pos--
		digits(8, 3)
	default:
		if b != 0 {
			value.WriteByte(b)
		}
	}
}

func keyword(t lex.Token) bool {
	if t.Constant {
		return false
	}
	switch t.Text {
	case "if", "else", "repeat", "while", "function", "for", "next", "break", "TRUE", "FALSE", "NULL", "Inf", "NaN", "NA", "NA_integer_", "NA_real_", "NA_character_", "NA_complex_", "in", "...":
		return true
	}
	return false
}
