package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A word is one word of a command.
type word struct {
	language.Span
	// value is what it stands for without the parts that are not constant.
	value strings.Builder
	// constant tells that value is all of it.
	constant bool
	// quoted tells that a part of it is quoted.
	quoted bool
	// pattern tells that it stands for files or for several words: *.c, {a,b}; brace, that
	// a brace in it is not quoted.
	pattern, brace bool
	// behind is how much of value comes before the last part that is not constant.
	behind int
	// fields are how much of value comes before the first expansion of IFS, or 0.
	fields int
	// variable is the name of the one that is all of the word.
	variable string
}

// plain tells that a word is nothing but its value.
func (w *word) plain() bool { return w.constant && !w.pattern }

// is tells whether a word is text.
func (w *word) is(text string) bool { return w.constant && w.value.String() == text }

// with is a word at the same place with another value.
func (w *word) with(value string) *word {
	of := &word{Span: w.Span, constant: w.constant}
	of.value.WriteString(value)
	return of
}

// word reads one.
func (s *scanner) word(of *syntax.Word) *word {
	w := &word{Span: s.span(of), constant: true}
	for _, part := range of.Parts {
		s.add(w, part)
	}
	if len(of.Parts) == 1 {
		part := of.Parts[0]
		if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			part = q.Parts[0]
		}
		if p, ok := part.(*syntax.ParamExp); ok && variable(p) {
			w.variable = p.Param.Value
		}
	}
	return w
}

// variable tells whether an expansion is that of a variable, and nothing more.
func variable(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// add adds a part to a word.
func (s *scanner) add(w *word, part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		w.literal(s, p.Value)
		return
	case *syntax.SglQuoted:
		w.quoted = true
		if p.Dollar {
			w.value.WriteString(s.ansi(p.Value))
		} else {
			w.value.WriteString(p.Value)
		}
		return
	case *syntax.DblQuoted:
		w.quoted = true
		for _, part := range p.Parts {
			if text, ok := part.(*syntax.Lit); ok {
				w.unquote(s, text.Value, "$`\"\\")
			} else {
				s.add(w, part)
			}
		}
		return
	case *syntax.ParamExp:
		if p.Param.Value == "IFS" && w.fields == 0 {
			w.fields = w.value.Len()
		}
	}
	w.constant, w.behind = false, w.value.Len()
}

// literal adds text that is not quoted.
func (w *word) literal(s *scanner, text string) {
	for i := 0; i < len(text); i++ {
		s.Step()
		c := text[i]
		switch c {
		case '\\':
			w.quoted = true
			if i++; i == len(text) || text[i] == '\n' {
				continue
			}
			c = text[i]
		case '*', '?':
			w.pattern = true
		case '[':
			w.pattern = w.pattern || text != "[" && text != "[["
		case '{':
			w.brace = true
		case ',':
			w.pattern = w.pattern || w.brace
		case '.':
			w.pattern = w.pattern || w.brace && strings.HasPrefix(text[i:], "..")
		}
		w.value.WriteByte(c)
	}
}

// unquote adds text in which backslashes escape some characters and ends of lines only.
func (w *word) unquote(s *scanner, text, escaped string) {
	for i := 0; i < len(text); i++ {
		s.Step()
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(escaped, text[i+1]) >= 0 {
				i++
			}
		}
		w.value.WriteByte(text[i])
	}
}

// pattern tells trouble with one such as @(a|b) that has more in it than text. The parser only
// looks for the bracket that ends it, and may take another one for that.
func (s *scanner) pattern(p *syntax.ExtGlob) {
	text := p.Pattern.Value
	odd := strings.ContainsAny(text, "'\"\\`") || strings.Contains(text, "${")
	for i := range len(text) {
		odd = odd || text[i] == '(' && (i == 0 || strings.IndexByte("?*+@!", text[i-1]) < 0)
	}
	if odd {
		s.trouble("a pattern in it is too complex")
		s.nested(s.span(p), "_=("+strings.ReplaceAll(text, "|", " ")+")")
	}
}

var ansiEscapes = &lex.Escapes{Letters: "abeEfnrtv\\'\"?", Values: "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", Bytes: true, Long: true, Unknown: true}

// ansi is the value of a string of the form $'...'.
func (s *scanner) ansi(text string) string {
	l := lex.Lexer{Cursor: lex.Cursor{Code: text}, Facts: s.Facts}
	var b strings.Builder
	for !l.End() {
		s.Step()
		switch c := l.At(0); {
		case c == '\\' && l.At(1) == 'c':
			b.WriteByte(l.At(2) & 0x1f)
			l.Pos += 3
		case c == '\\':
			l.Escape(&b, ansiEscapes)
		default:
			b.WriteByte(c)
			l.Pos++
		}
	}
	value, _, _ := strings.Cut(b.String(), "\x00") // it ends the string for Bash
	return value
}
