package lex

import (
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A Quote says how a literal is written.
type Quote struct {
	End     string                   // what ends it; the end of the code if it is empty
	Open    byte                     // a bracket that is closed by another end
	Lines   bool                     // it may go over lines
	Escapes *Escapes                 // without them, a backslash is one
	Insert  string                   // what code in it begins with, up to the bracket
	Parts   bool                     // what is before and behind such code are tokens of their own
	Class   bool                     // nothing ends it in []
	Flags   bool                     // letters behind it belong to it
	Quiet   bool                     // it is no fact
	Doc     bool                     // it is a docstring
	Dynamic bool                     // it is not constant
	Value   func(text string) string // what its value is, made of its text
	deep    int                      // how many brackets are open
}

// Escapes are what a backslash and what follows it stand for. All languages have characters by their numbers.
type Escapes struct {
	Verbatim        bool   // they stand for themselves
	Only            string // nothing else is escaped, if it is set
	Letters, Values string // letters with what they stand for
	Bytes           bool   // short numbers are those of bytes, whose higher bits do not count
	Any             bool   // \x has any number of digits
	Long            bool   // \U has eight digits
	Unknown         bool   // what means nothing stands for itself, the backslash included
	Control         bool   // \c, \C- and \M- belong to what follows them
	Named           bool   // \N{} is a character that is not known here
}

// Roles of tokens that are parts of one literal, with code between them.
const (
	Head = iota + 1
	Middle
	Tail
)

// quoted reads a string whose quote comes here.
func (l *Lexer) quoted() {
	start, end := l.Pos, l.Code[l.Pos:l.Pos+1]
	q := Quote{End: end, Lines: l.Lines, Escapes: l.Escapes}
	if l.Long != nil && l.Has(end+end+end) {
		q.End, q.Lines, q.Value = end+end+end, true, l.Long
	}
	l.Pos += len(q.End)
	l.Literal(start, q)
}

// Literal reads one from here on, which is written from start on, and returns its first token. The
// tokens of the code in it come behind the one that it is, or between its parts.
func (l *Lexer) Literal(start int, q Quote) *Token {
	l.Put(String, start, "")
	first := len(l.Tokens) - 1
	var b strings.Builder
	for token, done := first, 0; ; {
		l.Step()
		closed, inserts := l.text(&b, &q)
		switch {
		case closed:
			if l.Pos += len(q.End); q.Flags {
				l.Identifier("")
			}
		case !inserts && q.Flags:
			l.Unreadable("a regular expression is not closed")
		case !inserts:
			l.Unreadable(NotClosed)
		}
		value := b.String()[done:]
		if q.Value != nil && done == 0 {
			value = q.Value(value)
		}
		t := &l.Tokens[token]
		t.End, t.Text, t.Constant = l.Pos, value, closed && !q.Dynamic
		if !q.Parts && done > 0 {
			t.Text = b.String()
		}
		if !q.Quiet {
			l.String(language.Literal{Span: language.Span{Start: start, End: l.Pos}, Value: value, Doc: q.Doc && closed && !q.Dynamic})
		}
		if !inserts {
			if q.Parts && token > first {
				t.Role = Tail
			}
			return &l.Tokens[first]
		}
		if q.Parts && t.Role == 0 {
			t.Role = Head
		}
		l.Insert(q)
		q.Dynamic, start, done = true, l.Pos, b.Len()
		if q.Parts {
			l.Put(String, start, "").Role = Middle
			token = len(l.Tokens) - 1
		}
	}
}

// text reads the text of a literal up to its end, or up to code in it.
func (l *Lexer) text(b *strings.Builder, q *Quote) (closed, inserts bool) {
	from, class := l.Pos, false
	flush := func(skip int) {
		b.WriteString(l.Code[from:l.Pos])
		l.Pos += skip
		from = l.Pos
	}
	for !l.End() {
		l.Step()
		switch c := l.Code[l.Pos]; {
		case l.Resume > 0 && l.At(-1) == '\n':
			flush(max(0, l.Resume-l.Pos))
			l.Resume = 0
		case c == '\\' && q.Escapes != nil && (q.Insert != "{" || l.At(1) != '{') && (!q.Class || !l.IsEnd(l.At(1))):
			if q.Escapes.Verbatim {
				l.Escape(&strings.Builder{}, q.Escapes)
				break
			}
			flush(0)
			q.Dynamic = !l.Escape(b, q.Escapes) || q.Dynamic
			from = l.Pos
		case q.deep == 0 && !class && q.End != "" && c == q.End[0] && l.Has(q.End):
			flush(0)
			return true, false
		case !q.Lines && l.IsEnd(c):
			flush(0)
			return false, false
		case q.Insert == "{" && (c == '{' || c == '}') && l.At(1) == c: // both stand for one
			l.Pos++
			flush(1)
		case q.Insert != "" && c == q.Insert[0] && l.Has(q.Insert):
			flush(0)
			return false, true
		case q.Open != 0 && c == q.Open:
			q.deep++
			l.Pos++
		case q.deep > 0 && c == q.End[0]:
			q.deep--
			l.Pos++
		default:
			// In Ruby, a variable may be inserted without brackets.
			q.Dynamic = q.Dynamic || q.Insert == "#{" && c == '#' && (l.At(1) == '@' || l.At(1) == '$')
			class = q.Class && (c == '[' || class && c != ']')
			l.Pos++
		}
	}
	flush(0)
	return q.End == "", false
}

// Insert reads the code in a literal that begins here.
func (l *Lexer) Insert(q Quote) {
	l.Pos += len(q.Insert) - 1
	l.Bracket(l.Pos, "{")
	base, quote := l.Base, l.Quote
	l.Base, l.Quote = len(l.Open), q
	if l.Inside++; l.Inside > MaxDepth {
		l.Unreadable("literals lie too deep inside of each other")
		l.Compute(l.Last().Span, language.ComputedCode)
		l.Pos = len(l.Code)
	}
	l.until(l.Base)
	if len(l.Open) >= l.Base {
		l.Unreadable("a bracket is not closed")
		l.Open = l.Open[:l.Base-1]
	}
	l.Inside--
	l.Base, l.Quote = base, quote
}

// Escape reads a backslash and what it escapes, and tells whether what they stand for is known.
func (l *Lexer) Escape(b *strings.Builder, e *Escapes) bool {
	start := l.Pos
	l.Pos++
	r, n := l.Rune()
	if e.Only != "" && (n == 0 || !strings.ContainsRune(e.Only, r)) {
		b.WriteByte('\\')
		return true
	}
	l.Pos += n
	known := true
	switch i := strings.IndexRune(e.Letters, r); {
	case n == 0:
	case r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029:
		if r == '\r' {
			l.Skip("\n")
		}
	case e.Only != "":
		b.WriteRune(r)
	case i >= 0:
		b.WriteByte(e.Values[i])
	case '0' <= r && r <= '7':
		l.Pos--
		known = l.digits(b, 8, 3, e.Bytes)
	case r == 'x' && e.Any:
		known = l.digits(b, 16, len(l.Code), e.Bytes)
	case (r == 'x' || r == 'u' || r == 'U' && e.Long) && l.Skip("{"):
		for known && !l.End() && !l.Skip("}") {
			l.Step()
			if !l.Skip(" ") && !l.Skip("\t") {
				known = l.digits(b, 16, len(l.Code), false)
			}
		}
	case r == 'x':
		known = l.digits(b, 16, 2, e.Bytes)
	case r == 'u':
		known = l.digits(b, 16, 4, false)
	case r == 'U' && e.Long:
		known = l.digits(b, 16, 8, false)
	case e.Control && (r == 'c' || (r == 'C' || r == 'M') && l.Skip("-")):
		// What comes next belongs to it, whatever it is; an escape is one more of them.
		if l.At(0) != '\\' {
			_, n = l.Rune()
			l.Pos += n
		}
	case e.Named && r == 'N' && l.At(0) == '{':
		if name, _, ok := strings.Cut(l.Code[l.Pos:min(l.Pos+maxCharacter, len(l.Code))], "}"); ok && !strings.ContainsAny(name, "\n\"'") {
			l.Pos += len(name) + 1
		}
		return false
	case e.Unknown:
		known = false
	default:
		b.WriteString(l.Code[l.Pos-n : l.Pos])
	}
	if !known && e.Unknown {
		b.WriteString(l.Code[start:l.Pos])
	}
	return true
}

// maxCharacter bounds the name of a character; the longest has 88 letters.
const maxCharacter = 128

// digits reads the number of a character with up to most digits, and tells whether there is one.
func (l *Lexer) digits(b *strings.Builder, base, most int, bytes bool) bool {
	value, from := 0, l.Pos
	for ; most > 0; most-- {
		l.Step()
		d := strings.IndexByte("0123456789abcdef", l.At(0)|0x20)
		if d < 0 || d >= base || l.At(0) < '0' || base == 8 && !bytes && value*8+d > 255 {
			break
		}
		value = min(value*base+d, utf8.MaxRune+1)
		l.Pos++
	}
	switch {
	case l.Pos == from:
		return false
	case bytes:
		b.WriteByte(byte(value))
	case value > utf8.MaxRune:
		b.WriteRune(utf8.RuneError)
	default:
		b.WriteRune(rune(value))
	}
	return true
}
