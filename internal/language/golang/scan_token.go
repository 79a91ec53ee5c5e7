package golang

import (
	"go/scanner"
	"go/token"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// lex has Go's own scanner make the tokens.
func (s *reader) lex() {
	file := token.NewFileSet().AddFile("", -1, len(s.code))
	var sc scanner.Scanner
	sc.Init(file, s.code, func(at token.Position, msg string) {
		s.Trouble("line " + strconv.Itoa(file.Line(file.Pos(at.Offset))) + ": " + msg)
	}, scanner.ScanComments)
	s.tokens = make([]lex.Token, 0, len(s.code)/3+8)
	for {
		s.Step()
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			break
		}
		t := lex.Token{Span: language.Span{Start: file.Offset(pos)}, Text: lit}
		switch {
		case tok == token.COMMENT:
			s.comment(t.Start)
			continue
		case tok == token.STRING || tok == token.CHAR:
			s.literal(&t)
		case tok == token.IDENT:
			t.Kind, t.End = lex.Name, t.Start+len(lit)
		case tok == token.INT || tok == token.FLOAT || tok == token.IMAG:
			t.Kind, t.End = lex.Number, t.Start+len(lit)
		case tok == token.SEMICOLON:
			t.Kind, t.Text, t.End = lex.Punct, ";", min(t.Start+1, len(s.code))
		default:
			t.Kind, t.Text = lex.Punct, tok.String()
			t.End = min(t.Start+len(t.Text), len(s.code))
		}
		s.tokens = append(s.tokens, t)
	}
	s.Brackets = lex.Pair(s.tokens)
}

// literal gives a string its span, which the scanner's text does not tell: it leaves out
// carriage returns.
func (s *reader) literal(t *lex.Token) {
	t.Kind, t.End = lex.String, min(t.Start+len(t.Text), len(s.code))
	if s.code[t.Start] == '`' {
		c := lex.Cursor{Code: s.code, Pos: t.Start + 1}
		c.Through("`")
		t.End = c.Pos
	}
	value, err := strconv.Unquote(t.Text)
	t.Text, t.Constant = value, err == nil
	s.String(language.Literal{Span: t.Span, Value: value})
}

// comment adds one, and what a directive in it uses.
func (s *reader) comment(start int) {
	c := lex.Cursor{Code: s.code, Pos: start}
	if c.Has("/*") {
		c.Pos += 2
		c.Through("*/")
		s.Comment(start, c.Pos)
		return
	}
	c.Line()
	s.Comment(start, c.Pos)
	text := string(s.code[start:c.Pos])
	if !strings.HasPrefix(text, "//go:") {
		return
	}
	directive, _, _ := strings.Cut(strings.TrimRight(text, "\r"), " ")
	directive, _, _ = strings.Cut(directive, "\t")
	s.Use(language.Span{Start: start, End: start + len(directive)}, directive, false)
	if fields := strings.Fields(text); directive == "//go:linkname" && len(fields) == 3 {
		at := start + strings.LastIndex(text, fields[2])
		s.Use(language.Span{Start: at, End: at + len(fields[2])}, fields[2], false)
	}
}
