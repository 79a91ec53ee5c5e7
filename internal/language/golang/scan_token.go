package golang

import (
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// tokenize has Go's own scanner make the tokens.
func (s *reader) tokenize(code []byte) {
	file := token.NewFileSet().AddFile("", -1, len(code))
	whole := string(code)
	var sc scanner.Scanner
	sc.Init(file, code, func(at token.Position, msg string) {
		s.Trouble("line " + strconv.Itoa(at.Line) + ": " + msg)
	}, scanner.ScanComments)
	s.Tokens = make([]lex.Token, 0, len(code)/3+8)
	for {
		s.Step()
		pos, tok, text := sc.Scan()
		start := file.Offset(pos)
		t := lex.Token{Span: language.Span{Start: start, End: end(whole, start, text)}, Kind: lex.Punct, Text: text}
		switch {
		case tok == token.EOF:
			return
		case tok == token.COMMENT:
			s.Comment(t.Start, t.End)
			s.directive(t.Start, whole[t.Start:t.End])
			continue
		case tok == token.STRING || tok == token.CHAR:
			value, err := strconv.Unquote(text)
			t.Kind, t.Text, t.Constant = lex.String, value, err == nil
			s.String(language.Literal{Span: t.Span, Value: value})
		case tok == token.IDENT:
			t.Kind = lex.Name
		case tok.IsLiteral():
			t.Kind = lex.Number
		case tok == token.SEMICOLON:
			t.Text = ";" // not the newline that stands for it
		case tok.IsOperator():
			t.Text = tok.String()
		}
		if len(s.Tokens) == cap(s.Tokens) {
			// There are at most as many as bytes are left: one step instead of many copies.
			s.Tokens = slices.Grow(s.Tokens, len(code)-start+1)
		}
		s.Tokens = append(s.Tokens, t)
	}
}

// end is where a token at start ends. The scanner's text does not always tell, since it
// leaves out carriage returns.
func end(code string, start int, text string) int {
	c := lex.Cursor{Code: code, Pos: start + 1}
	switch {
	case strings.HasPrefix(text, "`"):
		c.Through("`")
	case strings.HasPrefix(text, "/*"):
		c.Pos++
		c.Through("*/")
	case strings.HasPrefix(text, "//"):
		c.To("\n")
	default:
		return min(start+len(text), len(code))
	}
	return c.Pos
}

// directive adds what a comment tells the compiler to use: the directive itself, and the
// name that it links to.
func (s *reader) directive(start int, comment string) {
	if !strings.HasPrefix(comment, "//go:") {
		return
	}
	words := strings.Fields(comment)
	s.Use(language.Span{Start: start, End: start + len(words[0])}, words[0], false)
	if words[0] == "//go:linkname" && len(words) == 3 {
		at := start + strings.LastIndex(comment, words[2])
		s.Use(language.Span{Start: at, End: at + len(words[2])}, words[2], false)
	}
}
