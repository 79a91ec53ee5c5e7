package r

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "#", Ends: "\n", Names: ".", Quotes: `"'`, Lines: true,
	Escapes:   &lex.Escapes{Letters: "ntrabfv", Values: "\n\t\r\a\b\f\v", Long: true},
	Operators: lex.OperatorsOf("<<- ->> ::: <- -> :: |> <= >= == != && || :="),
}

// tokens splits code. A name in backticks is a name whose text is all of it. Newlines in a row
// are one token, and [[ is two, as its end is.
func tokens(facts *lex.Facts, code string) []lex.Token {
	l := &lex.Lexer{Cursor: lex.Cursor{Code: code}, Facts: facts, Table: &table}
	l.Newline = func(at int) {
		if last := l.Last().Kind; last != lex.Newline {
			l.Put(lex.Newline, at, "")
		}
	}
	l.Prefixed = func(start int) bool {
		prefix := l.Code[start:l.Pos]
		return (prefix == "r" || prefix == "R") && raw(l, start)
	}
	l.Special = func(c byte) bool {
		start := l.Pos
		switch c {
		case '`':
			l.Pos++
			t := l.Literal(start, lex.Quote{End: "`", Lines: true, Escapes: table.Escapes, Quiet: true})
			t.Kind, t.Constant = lex.Name, true
		case '%':
			l.Pos++
			if l.To("%\n"); !l.Skip("%") {
				l.MarkUnreadable("an operator in % is not closed")
			}
			l.Put(lex.Punct, start, l.Code[start:l.Pos])
		}
		return l.Pos > start
	}
	l.Run()
	return l.Tokens
}

// raw reads r"---(...)---" from its quote on.
func raw(l *lex.Lexer, start int) bool {
	rest := l.Code[l.Pos+1:]
	dashes := rest[:len(rest)-len(strings.TrimLeft(rest, "-"))]
	open := l.At(1 + len(dashes))
	if open == 0 || strings.IndexByte("([{", open) < 0 {
		return false
	}
	end := string(lex.Opposite(open)) + dashes + string(l.At(0))
	l.Pos += len(dashes) + 2
	l.Literal(start, lex.Quote{End: end, Lines: true})
	return true
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
