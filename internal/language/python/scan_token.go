package python

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// maxNesting bounds brackets in brackets; Python itself refuses 200.
const maxNesting = 250

// A lexer splits code into tokens. Behind an f-string are the tokens of its fields, each in
// braces.
type lexer struct {
	lex.Cursor
	text   string
	facts  *lex.Facts
	tokens []lex.Token
	begun  bool // there are tokens other than magics
	depth  int  // how many f-strings are around
}

// tokenize splits code into tokens, and tells comments and what cannot be read.
func tokenize(code string, facts *lex.Facts) []lex.Token {
	l := lexer{Cursor: lex.Cursor{Code: code}, text: code, facts: facts, tokens: make([]lex.Token, 0, len(code)/3+8)}
	l.Skip("\ufeff")
	l.encoding()
	if strings.IndexByte(code, 0) >= 0 {
		facts.Trouble("it has a NUL byte, which versions of Python read differently")
	}
	l.run(false)
	return l.tokens
}

// encodings are a comment that names the encoding, in one of the first two lines of which the
// first has nothing else, and those encodings in which ASCII is ASCII.
var encodings = sync.OnceValue(func() (e struct{ comment, plain *regexp.Regexp }) {
	e.comment = regexp.MustCompile(`^(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))??[ \t\f]*(#[^\r\n]*?coding[:=][ \t]*([-_.a-zA-Z0-9]+))`)
	e.plain = regexp.MustCompile(`^(utf-?8(-.*)?|(us-)?ascii|l1|(iso-)?latin-?1(-.*)?|iso-?8859(-.*)?|windows-125.|cp125.|koi8-.)$`)
	return e
})

// encoding looks for the name of another encoding, in which a comment may be code.
func (l *lexer) encoding() {
	m := encodings().comment.FindStringSubmatchIndex(l.Code[l.Pos:])
	if m == nil {
		return
	}
	name := l.text[l.Pos+m[4] : l.Pos+m[5]]
	if !encodings().plain.MatchString(strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))) {
		l.facts.Trouble("it names an encoding that is not read: " + strconv.Quote(name))
		l.facts.Compute(language.Span{Start: l.Pos + m[2], End: l.Pos + m[3]}, language.ComputedCode)
	}
}

// add adds a token that ends here.
func (l *lexer) add(kind lex.Kind, start int) {
	l.tokens = append(l.tokens, lex.Token{Span: language.Span{Start: start, End: l.Pos}, Kind: kind, Text: l.text[start:l.Pos]})
}

// run reads to the end of the code, or to what ends a field of an f-string.
func (l *lexer) run(field bool) {
	open, first := 0, !field // how many brackets are open, and whether a line begins here
	for !l.End() {
		l.facts.Step()
		start, c := l.Pos, l.At(0)
		switch {
		case l.isNewline():
			l.Pos++
			if !field && open == 0 && !first {
				l.add(lex.Newline, start)
				first = true
			}
			continue
		case c == ' ' || c == '\t' || c == '\f' || c == 0:
			l.Pos++
			continue
		case l.Skip("\\\r\n") || l.Skip("\\\n") || l.Skip("\\\r"):
			continue
		case c == '#':
			l.toNewline()
			l.facts.Comment(start, l.Pos)
			l.begun = true
			continue
		case field && open == 0 && (c == '}' || c == ':' || c == '!' && l.At(1) != '='):
			return
		case l.magic(first, open == 0 && !field):
			first = false
			continue
		case c == '(' || c == '[' || c == '{':
			if open++; open == maxNesting {
				l.facts.Trouble("brackets lie in brackets too deep")
			}
		case c == ')' || c == ']' || c == '}':
			if open--; open < 0 {
				open = 0
				l.facts.Trouble("a bracket is closed that was not opened")
			}
		}
		first, l.begun = false, true
		l.next()
	}
	if open > 0 || field {
		l.facts.Trouble("a bracket is not closed")
	}
}

func (l *lexer) isNewline() bool { return l.At(0) == '\n' || l.At(0) == '\r' }

// toNewline goes to the end of the line.
func (l *lexer) toNewline() {
	for !l.End() && !l.isNewline() {
		l.facts.Step()
		l.Pos++
	}
}

// next reads one token.
func (l *lexer) next() {
	start, c := l.Pos, l.At(0)
	switch {
	case c == '"' || c == '\'':
		l.str(start)
	case isDigit(c) || c == '.' && isDigit(l.At(1)):
		l.number()
		l.add(lex.Number, start)
	case isWord(rune(c)) || c >= utf8.RuneSelf:
		l.name()
	default:
		// Of operators that are longer, it only matters which are no "=" and which are ":=".
		if l.Pos++; strings.IndexByte("+-*/%&|^@=!<>:", c) >= 0 && l.At(0) == '=' {
			l.Pos++
		}
		l.add(lex.Punct, start)
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c rune) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf &&
		unicode.In(c, unicode.L, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Start, unicode.Other_ID_Continue)
}

// prefixes are those of strings.
var prefixes = lex.Words("r b u f t br rb fr rf tr rt")

// word goes over letters and digits.
func (l *lexer) word() {
	l.Pos = len(l.text) - len(strings.TrimLeftFunc(l.text[l.Pos:], isWord))
}

// name reads a name in the form in which Python compares names, or a string with a prefix. A
// character that is not part of any name is a token too.
func (l *lexer) name() {
	start := l.Pos
	l.word()
	text := l.text[start:l.Pos]
	switch {
	case text == "":
		c, n := l.Rune()
		if l.Pos += n; c == utf8.RuneError && n == 1 {
			l.facts.Trouble("it has names that are not written in UTF-8")
		}
		l.add(lex.Punct, start)
		return
	case (l.At(0) == '"' || l.At(0) == '\'') && prefixes()[strings.ToLower(text)]:
		l.str(start)
		return
	}
	l.add(lex.Name, start)
	// What becomes a keyword is none: Python looks for keywords before it normalises names.
	if normal := norm.NFKC.String(text); !keywords()[normal] {
		l.tokens[len(l.tokens)-1].Text = normal
	}
}

// number reads a number, which may end where a keyword begins: "1or x".
func (l *lexer) number() {
	decimal := "0123456789_"
	digits := func() { l.Pos = len(l.text) - len(strings.TrimLeft(l.text[l.Pos:], decimal)) }
	if kind := l.At(1) | 0x20; l.At(0) == '0' && (kind == 'x' || kind == 'o' || kind == 'b') {
		if l.Pos += 2; kind == 'x' {
			decimal += "abcdefABCDEF"
		}
		digits()
		return
	}
	digits()
	if l.Skip(".") {
		digits()
	}
	exponent := 1
	if l.At(1) == '+' || l.At(1) == '-' {
		exponent = 2
	}
	if l.At(0)|0x20 == 'e' && isDigit(l.At(exponent)) {
		l.Pos += exponent
		digits()
	}
	if l.At(0)|0x20 == 'j' {
		l.Pos++
	}
}
