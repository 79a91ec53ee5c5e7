package javascript

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A role is what a bracket is, or a part of a template.
type role uint8

const (
	block     role = iota + 1 // { of statements
	object                    // { of an object or a pattern of one
	class                     // { of a class that is a statement
	classExpr                 // { of one that is a value
	function                  // { of a function that is a statement, or of a method
	funcExpr                  // { of one that is a value
	arrow                     // { of an arrow function
	insertion                 // ${
	control                   // ( of if, for, while, with, switch, catch
	params                    // ( of a function or a method
	group                     // ( around an expression
	call                      // ( of arguments
	list                      // [ of an array or a pattern of one
	subscript                 // [ of a member
	head                      // the first part of a template with insertions
	tail                      // its last part
	regex                     // a regular expression
)

// A token is one of the language's. A template with insertions is a string, then ${,
// the tokens, } and a string for each of them.
type token struct {
	lex.Token
	role role
	// line tells that a new line begins before it.
	line bool
	// plain tells of a name that it stands for no variable: a member's, a key's.
	plain bool
	// begins tells that a statement may begin here.
	begins bool
	// tagged tells of a template that it is what a function is called with.
	tagged bool
	// pair is the other bracket, of a template's head its tail; in is the bracket around.
	pair, in int
}

// A frame is an open bracket.
type frame struct {
	at      int
	role    role
	head    int  // of an insertion: its template's first part
	asks    int  // open ?, whose : is to come
	body    role // of the function or class whose head is being read
	isClass bool // it is a class
}

// A lexer splits code into tokens.
type lexer struct {
	lex.Cursor
	text   string // Code
	facts  *lex.Facts
	tokens []token
	frames []frame
	line   bool // a new line has begun since the last token
	spaced bool
	script bool // it has no static import or export, so that <!-- may be a comment
	inner  func(code string, at language.Span)
}

func (l *lexer) run() {
	l.frames = append(l.frames, frame{at: -1, role: block})
	l.tokens = make([]token, 0, len(l.text)/3+8)
	if l.Has("#!") {
		l.comment()
	}
	for {
		l.facts.Step()
		l.space()
		if l.End() {
			break
		}
		l.next()
	}
	if len(l.frames) > 1 {
		l.trouble("a bracket is not closed")
		for _, f := range l.frames[1:] {
			// It ends with what there is, and so does the template that an insertion is in.
			n := len(l.tokens) - 1
			if n > f.at {
				l.tokens[f.at].pair = n
			}
			if f.role == insertion {
				l.tokens[f.head].pair = n
			}
		}
	}
}

func (l *lexer) top() *frame { return &l.frames[len(l.frames)-1] }

func (l *lexer) last() *token {
	if len(l.tokens) == 0 {
		return nil
	}
	return &l.tokens[len(l.tokens)-1]
}

// next reads one token.
func (l *lexer) next() {
	start, c := l.Pos, l.Code[l.Pos]
	switch {
	case isNameStart(c) || c == '\\' || c >= 0x80:
		l.name()
	case c >= '0' && c <= '9' || c == '.' && isDigit(l.At(1)):
		l.number()
		l.add(lex.Number, start, l.text[start:l.Pos])
	case c == '"' || c == '\'':
		l.quoted(c)
	case c == '`':
		l.Pos++
		l.template(start, -1)
	case c == '/' && !l.operand():
		l.regex()
	case c == '(' || c == '[' || c == '{':
		l.open(c)
	case c == ')' || c == ']' || c == '}':
		l.close(c)
	default:
		l.punct()
	}
}

// add appends a token that ends here.
func (l *lexer) add(kind lex.Kind, start int, text string) *token {
	begins := l.begins()
	l.tokens = append(l.tokens, token{
		Token: lex.Token{Kind: kind, Span: language.Span{Start: start, End: l.Pos}, Text: text, Spaced: l.spaced},
		line:  l.line, begins: begins, pair: -1, in: l.top().at,
	})
	return l.last()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c == '#'
}
