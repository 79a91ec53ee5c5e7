package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "//", Block: true, Ends: "\n\r\u2028\u2029", Names: "$\u200c\u200d", Universal: true, Balanced: true,
	Escapes:   &lex.Escapes{Letters: "ntrbfv", Values: "\n\t\r\b\f\v"},
	Operators: lex.OperatorsOf(">>>= ... === !== **= <<= >>= >>> &&= ||= ??= => == != <= >= && || ?? ++ -- += -= *= /= %= &= |= ^= ** << >> ?."),
}

// A role is what a bracket, a part of a template or an operator is. Whether a slash divides or
// begins a regular expression depends on it.
type role = uint8

const (
	block     role = iota + lex.Tail + 1 // { of statements
	object                               // { of an object
	class                                // { of a class that is a statement
	classExpr                            // { of one that is a value
	function                             // { of a function that is a statement, or of a method
	funcExpr                             // { of one that is a value
	arrow                                // { of an arrow function
	insertion                            // { of what is inserted in a template
	control                              // ( of if, for, while, with, switch, catch; : of a label or a case
	params                               // ( of a function or a method
	group                                // ( around an expression
	call                                 // ( of arguments
	list                                 // [ of an array
	subscript                            // [ of a member
	pattern                              // { or [ around names that are bound
	regex                                // a regular expression
	postfix                              // ++ or -- behind an operand
)

// A mark is what else is known of a token.
type mark struct {
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
	asks    int // open ?, whose : is to come
	role    role
	body    role // of the function or class whose head is being read
	isClass bool // it is a class
}

// A lexer splits code into tokens. A template with insertions is a string and, for each ${}, its
// code between braces and another string.
type lexer struct {
	lex.Lexer
	marks  []mark
	frames []frame // one more than brackets are open
	script bool    // it has no static import or export, so that <!-- may be a comment
	// doubtful is what may be code and may be a comment or a regular expression.
	doubtful []language.Literal
}

func (l *lexer) run() {
	l.Table, l.Special, l.Add = &table, l.special, l.added
	l.Unreadable = func(reason string) {
		if l.Depth == 0 { // what is only in a string may be no code
			l.MarkUnreadable(reason)
		}
	}
	l.frames = append(l.frames, frame{role: block})
	if l.Has("#!") {
		l.comment()
	}
	l.Run()
}

func (l *lexer) top() *frame { return &l.frames[len(l.Open)] }

// at is the bracket that is open, or -1.
func (l *lexer) at() int {
	if n := len(l.Open); n > 0 {
		return l.Open[n-1]
	}
	return -1
}

// last is the last token with its mark; before the first one, a token that is nothing.
func (l *lexer) last() (*lex.Token, *mark) {
	if n := len(l.marks); n > 0 {
		return &l.Tokens[n-1], &l.marks[n-1]
	}
	return &lex.Token{}, &mark{}
}

// comment goes over the rest of a line.
func (l *lexer) comment() string {
	start := l.Pos
	l.To(table.Ends)
	l.Comment(start, l.Pos)
	return l.Code[start:l.Pos]
}

// special reads what depends on what comes before.
func (l *lexer) special(c byte) bool {
	start, doc := l.Pos, l.begins()
	switch {
	case c == '"' || c == '\'':
		l.Pos++
		l.Literal(start, lex.Quote{End: string(c), Escapes: table.Escapes, Doc: doc})
	case c == '`':
		n, tagged := len(l.Tokens), l.operand()
		l.Pos++
		l.Literal(start, lex.Quote{End: "`", Escapes: table.Escapes, Lines: true, Insert: "${", Parts: true, Doc: doc})
		l.marks[n].tagged = tagged
	case c == '/' && !l.operand():
		l.regex()
	case c == '#':
		l.Pos++
		l.Put(lex.Name, start, l.Name())
	case c == '?' && l.At(1) == '.' && lex.IsDigit(l.At(2)):
		l.Pos++
		l.Put(lex.Punct, start, "?")
	case l.script && (c == '<' && l.Has("<!--") || c == '-' && l.Line && l.Has("-->")):
		l.markup()
	case c >= 0x80:
		r, n := l.Rune()
		if end := r == 0x2028 || r == 0x2029; end || strings.ContainsRune("\u00a0\u1680\u202f\u205f\u3000\ufeff", r) || r >= 0x2000 && r <= 0x200a {
			l.Pos += n
			l.Line = l.Line || end
			return true
		}
		return false
	default:
		return false
	}
	return true
}

// markup goes over a comment as HTML has them. In a module the same is code, and which of
// both a file is, its name may say: so it is read as code, too.
func (l *lexer) markup() {
	start := l.Pos
	text := strings.TrimPrefix(strings.TrimPrefix(l.comment(), "<!--"), "-->")
	if strings.Contains(text, "`") || strings.Contains(text, "/*") {
		l.Unreadable("a comment in the way of HTML is code in a module")
	}
	l.doubtful = append(l.doubtful, language.Literal{Span: language.Span{Start: start, End: l.Pos}, Value: text})
}

// regex reads a regular expression with its flags.
func (l *lexer) regex() {
	start, prev := l.Pos, *l.Last()
	l.Pos++
	t := l.Literal(start, lex.Quote{End: "/", Escapes: &lex.Escapes{Verbatim: true}, Class: true, Flags: true, Dynamic: true})
	t.Role = regex
	if prev.Is("await") || prev.Is("yield") { // where these are names it is divided by
		l.doubtful = append(l.doubtful, language.Literal{Span: t.Span, Value: t.Text})
	}
}

// added gives a token its role and its mark before it is added.
func (l *lexer) added(t *lex.Token) {
	m := mark{begins: l.begins()}
	if t.Kind == lex.Name {
		l.name(t, &m)
	} else if t.Kind == lex.Punct {
		l.punct(t)
	}
	l.marks = append(l.marks, m)
}

// name tells what a name is: an identifier, a keyword or a private name.
func (l *lexer) name(t *lex.Token, next *mark) {
	f := l.top()
	prev, m := l.last()
	written := l.Code[t.Start:t.End]
	next.plain = prev.Is(".") || prev.Is("?.") || written[0] == '#'
	if !next.plain && (f.role == class || f.role == classExpr) {
		next.plain = (t.Line || !l.operand() || m.plain || prev.Is("}")) && l.keyed(len(l.Tokens))
	}
	if next.plain || written != "function" && written != "class" {
		return
	}
	if f.isClass, f.body = written == "class", funcExpr; f.isClass {
		f.body = classExpr
	}
	if next.begins || prev.Is("default") || prev.Is("export") || prev.Is("async") && m.begins {
		f.body-- // a statement
	}
	t.Role = f.body
}

// punct tells what an operator or a bracket is.
func (l *lexer) punct(t *lex.Token) {
	f := l.top()
	switch t.Text {
	case "(", "[", "{":
		t.Role = l.opening(t.Text)
		l.frames = append(l.frames[:len(l.Open)+1], frame{role: t.Role})
	case ")", "]", "}":
		if l.Closed >= 0 {
			t.Role = l.Tokens[l.Closed].Role
		}
	case "?":
		if next := l.At(0); next != ':' && next != ')' && next != ',' {
			f.asks++
		}
	case ":":
		if f.asks > 0 {
			f.asks--
		} else if f.role != object {
			t.Role = control
		} else if l.key(len(l.Tokens) - 1) {
			f.body, f.isClass = 0, false
		}
	case ";":
		f.body, f.asks = 0, 0
	case "++", "--":
		if l.operand() && !t.Line {
			t.Role = postfix
		}
	}
}

// opening tells what an opening bracket is of.
func (l *lexer) opening(text string) role {
	outer := l.top()
	prev, m := l.last()
	follows := l.operand() || prev.Is("?.")
	switch n := len(l.Tokens); {
	case text == "{":
		r := l.brace()
		outer.body, outer.isClass = 0, false
		return r
	case text == "[" && follows:
		return subscript
	case text == "[":
		return list
	case outer.body != 0 && !outer.isClass:
		return params
	case prev.Kind == lex.Name && !m.plain && controls()[prev.Text], n > 1 && prev.Is("await") && l.Tokens[n-2].Is("for") && !l.marks[n-2].plain:
		return control
	case l.method():
		return params
	case follows:
		return call
	}
	return group
}

var controls = lex.Words("if for while with switch catch")

// method tells whether the last token is the name of a method in a class or an object.
func (l *lexer) method() bool {
	f, first := l.top(), len(l.Tokens)-1
	t, _ := l.last()
	switch {
	case f.role != class && f.role != classExpr && f.role != object:
		return false
	case t.Is("]") && l.Closed > l.at():
		first = l.Closed
	case t.Kind == lex.Punct:
		return false
	}
	return f.role == object && l.key(first) || f.role != object && l.keyed(first)
}

// key marks the key of an object that begins at token i, and the words before it, as no variables, if
// it is one.
func (l *lexer) key(i int) bool {
	if i <= l.at() || !l.keyed(i) {
		return false
	}
	for ; i > l.at() && !l.Tokens[i].Is(","); i-- {
		l.Step()
		l.marks[i].plain = l.Tokens[i].Kind == lex.Name
	}
	return true
}

// keyed tells whether a key of an object or a member of a class begins at token i, words like
// static before it.
func (l *lexer) keyed(i int) bool {
	f := l.top()
	for ; i-1 > l.at(); i-- {
		l.Step()
		p := &l.Tokens[i-1]
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
		return f.role != object && i < len(l.Tokens) && l.Tokens[i].Line && p.Text != "="
	}
	return true
}

// brace tells what a { is of.
func (l *lexer) brace() role {
	f := l.top()
	t, _ := l.last()
	switch {
	case t.Kind == 0:
		return block
	case t.Kind == lex.String && (t.Role == lex.Head || t.Role == lex.Middle):
		return insertion
	case t.Is("=>"):
		return arrow
	case f.isClass && !t.Is("extends"):
		return f.body
	case t.Is(")") && t.Role == params:
		if f.body != 0 {
			return f.body
		}
		return function
	case t.Is(")") && t.Role == control:
		return block
	case t.Is("static") && (f.role == class || f.role == classExpr):
		return function
	case l.begins() || l.operand():
		return block
	}
	return object
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
		return !m.plain && (t.Text == "else" || t.Text == "do" || t.Text == "try" || t.Text == "finally") || l.Line && l.operand()
	}
	if t.Kind != lex.Punct {
		return l.Line
	}
	switch t.Text {
	case ";":
		return true
	case "{":
		return t.Role != object && t.Role != class && t.Role != classExpr
	case "}":
		return t.Role != object && t.Role != insertion && (t.Role != funcExpr && t.Role != classExpr || l.Line)
	case "]", "++", "--":
		return l.Line
	}
	return t.Role == control || t.Text == ")" && l.Line
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
		return t.Role != lex.Head && t.Role != lex.Middle
	case t.Kind != lex.Punct:
		return t.Kind == lex.Number
	}
	switch t.Text {
	case ")":
		return t.Role != control
	case "]":
		return true
	case "}":
		return t.Role == object || t.Role == funcExpr || t.Role == classExpr
	}
	return t.Role == postfix
}
