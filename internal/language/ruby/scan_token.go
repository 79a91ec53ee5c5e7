package ruby

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A role is what a string is, or the { of an insertion.
type role uint8

const (
	symbol    role = iota + 1 // :name
	words                     // %w and %i
	command                   // between backticks, or %x
	regex                     // a regular expression
	insertion                 // #{
	tail                      // the last part of a literal with insertions
)

// A token is one of the language's. A literal with insertions is a string, then #{, the
// tokens, } and a string for each of them. The text of a here-document comes where it is
// asked for.
type token struct {
	lex.Token
	role role
	// head tells of the first part of a literal with insertions.
	head bool
	// plain tells of a name that it is a method's behind a dot, a label or a definition's.
	plain bool
	// label tells of a name that a colon follows it.
	label bool
	// opens tells of a bracket that ends a method's parameters: its body follows.
	opens bool
	// begins tells that an operand is expected here.
	begins bool
	// pair is the other bracket, of a literal's first part its last; in is the bracket around.
	pair, in int
}

// A frame is an open bracket; head is that of the literal that an insertion is in.
type frame struct{ at, head int }

// A lexer splits code into tokens.
type lexer struct {
	lex.Cursor
	text   string
	facts  *lex.Facts
	tokens []token
	frames []frame
	spaced bool
	// body is where the text of a here-document of this line begins, or 0, and depth how many
	// literals are read inside of each other.
	body  int
	depth int
	// locals are names that were given a value anywhere before, and, with false, those that
	// may have been.
	locals map[string]bool
}

func (l *lexer) run() {
	l.frames = append(l.frames, frame{at: -1})
	l.tokens = make([]token, 0, len(l.text)/3+8)
	l.Skip("\ufeff")
	l.tokenize()
	if len(l.frames) > 1 {
		l.trouble("a bracket is not closed")
		for _, f := range l.frames[1:] {
			l.unclosed(f.at)
		}
	}
}

// tokenize reads up to the end, or to the end of the insertion that it was called in.
func (l *lexer) tokenize() {
	base := len(l.frames)
	for !l.End() {
		l.facts.Step()
		l.spaced = false
		if l.space() {
			continue
		}
		l.next()
		if len(l.frames) < base {
			return
		}
	}
}

// trouble notes why code could not be read. What is only in a string may be no code.
func (l *lexer) trouble(reason string) {
	if l.facts.Depth == 0 {
		l.facts.Trouble(reason)
	}
}

// unclosed has the bracket at token i end with what has been read.
func (l *lexer) unclosed(i int) {
	if n := len(l.tokens) - 1; n > i {
		l.tokens[i].pair = n
	}
}

func (l *lexer) last() *token {
	if len(l.tokens) == 0 {
		return &token{}
	}
	return &l.tokens[len(l.tokens)-1]
}

// add appends a token that ends here.
func (l *lexer) add(kind lex.Kind, start int, text string) *token {
	begins := l.value()
	l.note(kind, text)
	l.tokens = append(l.tokens, token{
		Token:  lex.Token{Kind: kind, Span: language.Span{Start: start, End: l.Pos}, Text: text, Spaced: l.spaced},
		begins: begins, pair: -1, in: l.frames[len(l.frames)-1].at,
	})
	return l.last()
}
