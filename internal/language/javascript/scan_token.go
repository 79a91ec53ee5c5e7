package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A role is what a bracket, a part of a template or an operator is. Whether a slash divides or
// begins a regular expression depends on it.
type role uint8

const (
	block     role = iota + 1 // { of statements
	object                    // { of an object
	class                     // { of a class that is a statement
	classExpr                 // { of one that is a value
	function                  // { of a function that is a statement, or of a method
	funcExpr                  // { of one that is a value
	arrow                     // { of an arrow function
	insertion                 // { of what is inserted in a template
	control                   // ( of if, for, while, with, switch, catch; : of a label or a case
	params                    // ( of a function or a method
	group                     // ( around an expression
	call                      // ( of arguments
	list                      // [ of an array
	subscript                 // [ of a member
	pattern                   // { or [ around names that are bound
	head                      // the first part of a template with insertions
	middle                    // one of its other parts
	tail                      // its last part
	regex                     // a regular expression
	postfix                   // ++ or -- behind an operand
)

// A mark is what else is known of a token.
type mark struct {
	role role
	// line tells that a new line begins before it.
	line bool
	// plain tells of a name that it stands for no variable: a member's, a key's.
	plain bool
	// begins tells that a statement may begin here.
	begins bool
	// tagged tells of a template that the operand before it is called with it.
	tagged bool
	// own tells of a name that the program declares it in brackets around.
	own bool
}

// A frame is an open bracket.
type frame struct {
	at      int
	asks    int // open ?, whose : is to come
	role    role
	body    role // of the function or class whose head is being read
	isClass bool // it is a class
}

// A lexer splits code into tokens. A template with insertions is a string and, for each ${}, its
// code between braces and another string.
type lexer struct {
	lex.Cursor
	pairs  lex.Brackets
	text   string // Code
	facts  *lex.Facts
	tokens []lex.Token
	marks  []mark
	frames []frame
	line   bool // a new line has begun since the last token
	script bool // it has no static import or export, so that <!-- may be a comment
	// doubtful is what may be code and may be a comment or a regular expression.
	doubtful []language.Literal
}

func (l *lexer) run() {
	l.frames = append(l.frames, frame{at: -1, role: block})
	n := len(l.text)/3 + 8
	l.tokens, l.marks, l.pairs.Partner, l.pairs.Outer = make([]lex.Token, 0, n), make([]mark, 0, n), make([]int, 0, n), make([]int, 0, n)
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
	}
}

// trouble notes why code could not be read. What is only in a string may be no code.
func (l *lexer) trouble(reason string) {
	if l.facts.Depth == 0 {
		l.facts.Trouble(reason)
	}
}

func (l *lexer) top() *frame { return &l.frames[len(l.frames)-1] }

// last is the last token with its mark; before the first one, a token that is nothing.
func (l *lexer) last() (*lex.Token, *mark) {
	n := len(l.tokens)
	if n == 0 {
		return &lex.Token{}, &mark{}
	}
	return &l.tokens[n-1], &l.marks[n-1]
}

// add appends a token that ends here.
func (l *lexer) add(kind lex.Kind, start int, text string, r role) *mark {
	m := mark{role: r, line: l.line, begins: l.begins()}
	l.tokens = append(l.tokens, lex.Token{Kind: kind, Span: language.Span{Start: start, End: l.Pos}, Text: text})
	l.marks, l.pairs.Partner, l.pairs.Outer = append(l.marks, m), append(l.pairs.Partner, -1), append(l.pairs.Outer, l.top().at)
	return &l.marks[len(l.marks)-1]
}

// isBlank tells of white space in a line, isEnd of what ends one.
func isBlank(r rune) bool {
	return strings.ContainsRune(" \t\v\f\u00a0\u1680\u202f\u205f\u3000\ufeff", r) || r >= 0x2000 && r <= 0x200a
}

func isEnd(r rune) bool { return r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029 }

// comment goes over the rest of a line.
func (l *lexer) comment() {
	start := l.Pos
	for r, n := l.Rune(); n > 0 && !isEnd(r); r, n = l.Rune() {
		l.facts.Step()
		l.Pos += n
	}
	l.facts.Comment(start, l.Pos)
}

// space goes over white space and comments.
func (l *lexer) space() {
	l.line = len(l.tokens) == 0
	for !l.End() {
		l.facts.Step()
		switch r, n := l.Rune(); {
		case isBlank(r) || isEnd(r):
			l.line = l.line || isEnd(r)
			l.Pos += n
		case r == '/' && l.At(1) == '/':
			l.comment()
		case r == '/' && l.At(1) == '*':
			start := l.Pos
			l.Pos += 2
			if !l.Through("*/") {
				l.trouble("a comment is not closed")
			}
			l.line = l.line || strings.ContainsFunc(l.text[start:l.Pos], isEnd)
			l.facts.Comment(start, l.Pos)
		case l.script && (r == '<' && l.Has("<!--") || r == '-' && l.line && l.Has("-->")):
			l.markup()
		default:
			return
		}
	}
}

// markup goes over a comment as HTML has them. In a module the same is code, and which of
// both a file is, its name may say: so it is read as code, too.
func (l *lexer) markup() {
	start := l.Pos
	l.comment()
	text := strings.TrimPrefix(strings.TrimPrefix(l.text[start:l.Pos], "<!--"), "-->")
	if strings.Contains(text, "`") || strings.Contains(text, "/*") {
		l.trouble("a comment in the way of HTML is code in a module")
	}
	l.doubtful = append(l.doubtful, language.Literal{Span: language.Span{Start: start, End: l.Pos}, Value: text})
}

// next reads one token.
func (l *lexer) next() {
	start, c := l.Pos, l.Code[l.Pos]
	switch {
	case isNameStart(c) || c == '#' || c == '\\' || c >= 0x80:
		l.name()
	case isDigit(c) || c == '.' && isDigit(l.At(1)):
		l.number()
		l.add(lex.Number, start, l.text[start:l.Pos], 0)
	case c == '"' || c == '\'':
		l.quoted(c)
	case c == '`':
		n, tagged := len(l.tokens), l.operand()
		l.Pos++
		l.template(start, 0, head)
		l.marks[n].tagged = tagged
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

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' }

// name reads an identifier, a keyword or a private name.
func (l *lexer) name() {
	start := l.Pos
	l.Skip("#")
	text, escaped := l.identifier()
	if l.Pos == start {
		_, n := l.Rune()
		l.Pos += n
		l.trouble("a character that means nothing")
		return
	}
	f := l.top()
	prev, m := l.last()
	plain := prev.Kind == lex.Punct && (prev.Text == "." || prev.Text == "?.") || l.text[start] == '#'
	if !plain && (f.role == class || f.role == classExpr) {
		plain = (l.line || !l.operand() || m.plain || prev.Is("}")) && l.keyed(len(l.tokens), f)
	}
	starts := l.begins() || prev.Is("default") || prev.Is("export") || prev.Is("async") && m.begins
	m = l.add(lex.Name, start, text, 0)
	if m.plain = plain; plain || escaped || text != "function" && text != "class" {
		return
	}
	if f.isClass, f.body = text == "class", funcExpr; f.isClass {
		f.body = classExpr
	}
	if starts {
		f.body-- // a statement
	}
	m.role = f.body
}

// number reads a number, whatever its form.
func (l *lexer) number() {
	hex := l.Has("0x") || l.Has("0X")
	for dot := hex; !l.End(); l.Pos++ {
		l.facts.Step()
		switch c := l.Code[l.Pos]; {
		case c == '.' && !dot:
			dot = true
		case (c == '+' || c == '-') && !hex && l.At(-1)|0x20 == 'e' && isDigit(l.At(1)):
		case !isDigit(c) && !isNameStart(c) || c == '$':
			return
		}
	}
}

// operators are those of more than one character.
var operators = lex.Words(">>>= ... === !== **= <<= >>= >>> &&= ||= ??= => == != <= >= && || ?? ++ -- += -= *= /= %= &= |= ^= ** << >> ?.")

// punct reads an operator.
func (l *lexer) punct() {
	start, n, r := l.Pos, 1, role(0)
	if strings.IndexByte("=&|?>+-*.<", l.At(1)) >= 0 {
		for n = min(4, len(l.text)-start); n > 1 && (!operators()[l.text[start:start+n]] || l.Has("?.") && isDigit(l.At(2))); n-- {
			l.facts.Step()
		}
	}
	f, text := l.top(), l.text[start:start+n]
	switch text {
	case "?":
		if next := l.At(1); next != ':' && next != ')' && next != ',' {
			f.asks++
		}
	case ":":
		if f.asks > 0 {
			f.asks--
		} else if f.role != object {
			r = control
		} else if l.key(len(l.tokens) - 1) {
			f.body, f.isClass = 0, false
		}
	case ";":
		f.body, f.asks = 0, 0
	case "++", "--":
		if l.operand() && !l.line {
			r = postfix
		}
	}
	l.Pos += n
	l.add(lex.Punct, start, text, r)
}

// open reads an opening bracket and tells what it is of.
func (l *lexer) open(c byte) {
	r := list
	outer := l.top()
	prev, m := l.last()
	follows := l.operand() || prev.Is("?.")
	switch n := len(l.tokens); {
	case c == '{':
		r = l.brace()
		outer.body, outer.isClass = 0, false
	case c == '[' && follows:
		r = subscript
	case c == '[':
	case outer.body != 0 && !outer.isClass:
		r = params
	case prev.Kind == lex.Name && !m.plain && controls()[prev.Text], n > 1 && prev.Is("await") && l.tokens[n-2].Is("for") && !l.marks[n-2].plain:
		r = control
	case l.method():
		r = params
	case follows:
		r = call
	default:
		r = group
	}
	l.bracket(string(c), r)
}

var controls = lex.Words("if for while with switch catch")

// bracket adds an opening bracket that comes here.
func (l *lexer) bracket(text string, r role) {
	l.Pos++
	l.add(lex.Punct, l.Pos-1, text, r)
	l.frames = append(l.frames, frame{at: len(l.tokens) - 1, role: r})
}

// method tells whether the last token is the name of a method in a class or an object.
func (l *lexer) method() bool {
	f, first := l.top(), len(l.tokens)-1
	t, _ := l.last()
	switch {
	case f.role != class && f.role != classExpr && f.role != object:
		return false
	case t.Is("]") && l.pairs.Partner[first] > f.at:
		first = l.pairs.Partner[first]
	case t.Kind == lex.Punct:
		return false
	}
	return f.role == object && l.key(first) || f.role != object && l.keyed(first, f)
}

// key marks the key of an object that begins at token i, and the words before it, as no variables, if
// it is one.
func (l *lexer) key(i int) bool {
	f := l.top()
	if i <= f.at || !l.keyed(i, f) {
		return false
	}
	for ; i > f.at && !l.tokens[i].Is(","); i-- {
		l.facts.Step()
		l.marks[i].plain = l.tokens[i].Kind == lex.Name
	}
	return true
}

// keyed tells whether a key of the object or a member of the class f begins at token i, words
// like static before it.
func (l *lexer) keyed(i int, f *frame) bool {
	for ; i-1 > f.at; i-- {
		l.facts.Step()
		p := &l.tokens[i-1]
		switch p.Text {
		case "get", "set", "static", "async", "*", "accessor":
			if p.Kind == lex.Name && !l.marks[i-1].plain && f.role != object {
				return false
			}
			continue
		case ",":
			return f.role == object && p.Kind == lex.Punct
		case ";", "}":
			return f.role != object && p.Kind == lex.Punct
		}
		return f.role != object && i < len(l.tokens) && l.marks[i].line && p.Text != "="
	}
	return true
}

// brace tells what a { is of.
func (l *lexer) brace() role {
	f := l.top()
	t, m := l.last()
	switch {
	case t.Kind == 0:
		return block
	case t.Is("=>"):
		return arrow
	case f.isClass && !t.Is("extends"):
		return f.body
	case t.Is(")") && m.role == params:
		if f.body != 0 {
			return f.body
		}
		return function
	case t.Is(")") && m.role == control:
		return block
	case t.Is("static") && (f.role == class || f.role == classExpr):
		return function
	case l.begins() || l.operand():
		return block
	}
	return object
}

// close reads a closing bracket. One that closes nothing is a mistake in the code.
func (l *lexer) close(c byte) {
	f := *l.top()
	l.Pos++
	if f.at < 0 || strings.IndexByte("()[]{}", c) != strings.IndexByte("()[]{}", l.tokens[f.at].Text[0])+1 {
		l.trouble("a bracket is closed that was not opened")
		l.add(lex.Punct, l.Pos-1, string(c), 0)
		return
	}
	l.frames = l.frames[:len(l.frames)-1]
	n := len(l.tokens)
	l.add(lex.Punct, l.Pos-1, string(c), f.role)
	l.pairs.Partner[n], l.pairs.Partner[f.at] = f.at, n
	if f.role == insertion {
		l.template(l.Pos, tail, middle)
	}
}

// begins tells whether a statement may begin at the next token.
func (l *lexer) begins() bool {
	t, m := l.last()
	if t.Kind == 0 {
		return true
	}
	if r := l.top().role; r != block && r != function && r != funcExpr && r != arrow {
		return false
	}
	if t.Kind == lex.Name {
		return !m.plain && (t.Text == "else" || t.Text == "do" || t.Text == "try" || t.Text == "finally") || l.line && l.operand()
	}
	if t.Kind != lex.Punct {
		return l.line
	}
	switch t.Text {
	case ";":
		return true
	case "{":
		return m.role != object && m.role != class && m.role != classExpr
	case "}":
		return m.role != object && m.role != insertion && (m.role != funcExpr && m.role != classExpr || l.line)
	case "]", "++", "--":
		return l.line
	}
	return m.role == control || t.Text == ")" && l.line
}

// expecting are words that an operand follows.
var expecting = lex.Words("return typeof instanceof in new delete void throw case do else yield await extends default export")

// operand tells whether the last token ends an operand, so that an operator follows.
func (l *lexer) operand() bool {
	t, m := l.last()
	switch {
	case t.Kind == lex.Name && m.plain:
		return true
	case t.Is("of"):
		return l.top().role != control
	case t.Kind == lex.Name:
		return !expecting()[t.Text]
	case t.Kind == lex.String:
		return m.role != head && m.role != middle
	case t.Kind != lex.Punct:
		return t.Kind == lex.Number
	}
	switch t.Text {
	case ")":
		return m.role != control
	case "]":
		return true
	case "}":
		return m.role == object || m.role == funcExpr || m.role == classExpr
	}
	return m.role == postfix
}
