package java

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// quoted reads a string, a text block or a character.
func (s *reader) quoted(c *lex.Cursor, t *lex.Token) {
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
