package ruby

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// space goes over white space and comments, and adds ends of statements. It tells that it is
// to be called again.
func (l *lexer) space() bool {
	for !l.End() {
		l.facts.Step()
		c := l.Code[l.Pos]
		first := l.Pos == 0 || l.Code[l.Pos-1] == '\n'
		switch {
		case c == '\n':
			l.newline()
		case c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == 0:
			l.Pos++
		case c == '\\' && l.At(1) == '\n':
			l.Pos += 2
		case c == '\\' && l.At(1) == '\r' && l.At(2) == '\n':
			l.Pos += 3
		case c == '#':
			start := l.Pos
			l.Line()
			l.facts.Comment(start, l.Pos)
		case first && c == '=' && l.Has("=begin") && isBlank(l.At(6)):
			l.block()
		case first && c == '_' && l.Has("__END__") && (l.At(7) == '\n' || l.At(7) == '\r' || l.Pos+7 == len(l.Code)):
			l.facts.Comment(l.Pos, len(l.Code))
			l.Pos = len(l.Code)
		default:
			return false
		}
		l.spaced = true
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0 }

// block goes over a comment of lines from =begin to =end.
func (l *lexer) block() {
	start := l.Pos
	for {
		l.facts.Step()
		if !l.Through("\n=end") {
			l.trouble("a comment is not closed")
			break
		}
		if isBlank(l.At(0)) {
			l.Line()
			break
		}
	}
	l.facts.Comment(start, l.Pos)
}

// newline goes behind the end of a line, and behind the here-documents that begin there. It
// ends a statement unless that cannot be over, or the next line goes on with a dot.
func (l *lexer) newline() {
	at := l.Pos
	l.Pos++
	if l.body > 0 {
		l.Pos, l.body = max(l.body, l.Pos), 0
	}
	if last := l.last(); l.value() && !last.opens && !last.Is("|") || last.Kind == lex.Newline {
		return
	}
	next := l.Cursor
	for !next.End() {
		l.facts.Step()
		if c := next.At(0); isBlank(c) {
			next.Pos++
			continue
		} else if c == '#' {
			next.Line()
			continue
		}
		break
	}
	if next.At(0) == '.' && next.At(1) != '.' || next.Has("&.") {
		return
	}
	l.note(lex.Newline, "")
	l.tokens = append(l.tokens, token{
		Token: lex.Token{Kind: lex.Newline, Span: language.Span{Start: at, End: at + 1}},
		pair:  -1, in: l.frames[len(l.frames)-1].at,
	})
}
