package cpp

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A directive is a line for the preprocessor: its name, and the tokens behind it.
type directive struct {
	language.Span
	before int // how many tokens of the code come before it
	name   string
	header string // of an include, when it is written out
	rest   []lex.Token
}

// A lexer splits code whose lines are joined.
type lexer struct {
	lex.Facts
	lex.Cursor
	original []byte
	edited   *lex.Edited // nil when it is the original
	tokens   []lex.Token
	lines    []directive
}

func (l *lexer) run() {
	l.Skip("\ufeff")
	l.tokens = make([]lex.Token, 0, len(l.Code)/3+8)
	start := true // only white space since the line began
	for !l.End() {
		l.Facts.Step()
		switch b := l.At(0); {
		case b == '\n':
			l.Pos++
			start = true
		case start && (l.Has("#") || l.Has("%:")):
			l.directive()
			start = true
		default:
			if t, ok := l.token(false); ok {
				l.tokens = append(l.tokens, t)
				start = false
			}
		}
	}
}

// token reads one; there is none in white space and comments.
func (l *lexer) token(line bool) (t lex.Token, ok bool) {
	t.Start = l.Pos
	switch b := l.At(0); {
	case b <= ' ' && b != 0:
		l.Pos++
		return t, false
	case l.Skip("//"):
		l.Line()
		l.Comment(t.Start, l.Pos)
		return t, false
	case l.Skip("/*"):
		if !l.Through("*/") {
			l.Trouble("a comment is not closed")
		}
		l.Comment(t.Start, l.Pos)
		return t, false
	case b >= '0' && b <= '9' || b == '.' && l.At(1) >= '0' && l.At(1) <= '9':
		t.Kind = lex.Number
		l.number()
		t.Text = string(l.Code[t.Start:l.Pos])
	case b == '"' || b == '\'':
		l.quoted(&t, line)
	default:
		if t.Text = l.word(); t.Text == "" {
			t.Kind, t.Text = lex.Punct, l.operator()
			break
		}
		t.Kind = lex.Name
		if b := l.At(0); b == '"' || b == '\'' {
			switch t.Text {
			case "R", "LR", "uR", "UR", "u8R":
				if b == '"' && l.raw(&t) {
					break
				}
			case "L", "u", "U", "u8":
				l.quoted(&t, line)
			}
		}
	}
	t.End = l.Pos
	return t, true
}
