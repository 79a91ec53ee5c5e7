package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A lexer splits code into tokens. A literal with insertions is a string that is not constant,
// and behind it, for each #{}, its code between braces. A here-document comes where it is
// asked for.
type lexer struct {
	lex.Cursor
	text   string
	facts  *lex.Facts
	tokens []lex.Token
	state  state // of the last token
	open   []int // the brackets that are open
	spaced bool  // white space comes before the next token
	// body is where the code goes on behind the here-documents of this line, or 0.
	body int
	// missing are ends of here-documents that do not come any more.
	missing map[terminator]bool
	depth   int // how many insertions are read inside of each other
	// lines is where a line begins that goes on with the statement before it.
	lines int
	// locals are names that were given a value anywhere before, and, with false, those that
	// may have been.
	locals map[string]bool
}

// A state is what the lexer has to know of the last token.
type state struct {
	method bool // a name behind a dot or def
	label  bool // a name before a colon
	opens  bool // a bracket that ends a method's parameters: its body follows
	begins bool // an operand was expected there
}

func (l *lexer) run() {
	l.tokens = make([]lex.Token, 0, len(l.text)/4+8)
	l.Skip("\ufeff")
	l.tokenize(0)
	if len(l.open) > 0 {
		l.trouble("a bracket is not closed")
	}
}

// tokenize reads up to the end, or until fewer brackets are open.
func (l *lexer) tokenize(open int) {
	for !l.End() && len(l.open) >= open {
		l.facts.Step()
		if l.spaced = false; !l.space() {
			l.next()
		}
	}
}

// trouble notes why code could not be read. Code in a string that cannot be
// read is computed code.
func (l *lexer) trouble(reason string) {
	if l.facts.Depth == 0 {
		l.facts.Trouble(reason)
	} else {
		l.facts.Compute(language.Span{}, language.ComputedCode)
	}
}

func (l *lexer) last() *lex.Token {
	if len(l.tokens) == 0 {
		return &lex.Token{}
	}
	return &l.tokens[len(l.tokens)-1]
}

// add appends a token that ends here.
func (l *lexer) add(kind lex.Kind, start int, text string) {
	begins := l.operand()
	l.note(kind, text)
	span := language.Span{Start: start, End: l.Pos}
	l.tokens = append(l.tokens, lex.Token{Kind: kind, Span: span, Text: text, Spaced: l.spaced})
	l.state = state{begins: begins}
}

// space goes over white space and comments, and adds ends of statements. It tells that it is
// to be called again.
func (l *lexer) space() bool {
	for !l.End() {
		l.facts.Step()
		first := l.Pos == 0 || l.Code[l.Pos-1] == '\n'
		switch c := l.Code[l.Pos]; {
		case c == '\n':
			l.newline()
		case isBlank(c):
			l.Pos++
		case c == '\\' && (l.Skip("\\\n") || l.Skip("\\\r\n")):
			l.documents()
		case c == '#':
			start := l.Pos
			l.To("\n")
			l.facts.Comment(start, l.Pos)
		case first && l.Has("=begin") && isBlank(l.At(6)):
			l.comment()
		case first && (l.Has("__END__\n") || l.Has("__END__\r\n") || l.Has("__END__") && l.Pos+7 == len(l.Code)):
			l.facts.Comment(l.Pos, len(l.Code))
			l.Pos = len(l.Code)
		default:
			return false
		}
		l.spaced = true
	}
	return true
}

// comment goes over lines from =begin to =end.
func (l *lexer) comment() {
	start := l.Pos
	for closed := false; !closed; closed = isBlank(l.At(0)) {
		l.facts.Step()
		if !l.Through("\n=end") {
			l.trouble("a comment is not closed")
			break
		}
	}
	l.To("\n")
	l.facts.Comment(start, l.Pos)
}

// newline goes behind the end of a line. It ends a statement unless that cannot be over, or
// the next line goes on with a dot.
func (l *lexer) newline() {
	at := l.Pos
	l.Pos++
	l.documents()
	last := l.last()
	if l.operand() && !l.state.opens && !last.Is("|") || last.Kind == lex.Newline || l.Pos <= l.lines {
		return
	}
	next := l.Cursor
	for !next.End() && (isBlank(next.At(0)) || next.At(0) == '#') {
		l.facts.Step()
		if next.At(0) == '#' {
			next.To("\n")
		} else {
			next.Pos++
		}
	}
	if next.At(0) == '.' && next.At(1) != '.' || next.Has("&.") {
		l.lines = next.Pos
		return
	}
	l.note(lex.Newline, "")
	l.tokens = append(l.tokens, lex.Token{Kind: lex.Newline, Span: language.Span{Start: at, End: at + 1}})
	l.state = state{}
}

// documents goes, behind the end of a line, over the here-documents that begin there.
func (l *lexer) documents() {
	l.Pos, l.body = max(l.Pos, l.body), 0
}

// next reads one token.
func (l *lexer) next() {
	start, c := l.Pos, l.Code[l.Pos]
	method := l.named()
	switch {
	case isWord(c):
		l.name(method)
	case c == '@' || c == '$':
		l.sigil()
		l.add(lex.Name, start, l.text[start:l.Pos])
		l.state.method = method
	case isDigit(c):
		l.number()
		l.add(lex.Number, start, l.text[start:l.Pos])
	case method && length(methods(), l.text[start:]) > 0:
		l.Pos += length(methods(), l.text[start:])
		l.add(lex.Name, start, l.text[start:l.Pos])
		l.state.method = true
	case c == '"' || c == '\'' || c == '`':
		l.Pos++
		l.literal(literal{start: start, open: c, end: c, inserts: c != '\'', constant: c != '`'})
	case c == '/' && (l.operand() || l.At(1) != '=' && l.argument()):
		l.Pos++
		l.literal(literal{start: start, open: '/', end: '/', inserts: true, regex: true})
	case c == '%' && (l.operand() || l.At(1) != '=' && l.argument()) && l.percent():
	case c == '<' && l.At(1) == '<' && (!l.last().Is("class") || l.state.method) && (l.operand() || l.applied(2)) && l.document():
	case c == '?' && (l.operand() || l.argument()) && l.char():
	case c == ':' && l.At(1) != ':' && (method || l.operand() || l.argument() || !l.ended()) && l.symbol():
	case c == '(' || c == '[' || c == '{':
		l.Pos++
		l.add(lex.Punct, start, string(c))
		l.open = append(l.open, len(l.tokens)-1)
	case c == ')' || c == ']' || c == '}':
		l.close(c)
	default:
		l.Pos += max(1, length(operators(), l.text[start:]))
		l.add(lex.Punct, start, l.text[start:l.Pos])
	}
}

// named tells whether a method's name is to come.
func (l *lexer) named() bool {
	t := l.last()
	if n := len(l.tokens); l.renames(n-1) || l.renames(n-2) && (t.Kind == lex.Name || t.Kind == lex.String) {
		return true
	}
	return t.Is(".") || t.Is("&.") || t.Is("::") && !l.state.begins || t.Is("def") && l.variable()
}

// renames tells whether token i is alias, which two names follow, or undef.
func (l *lexer) renames(i int) bool {
	if i < 0 || !l.tokens[i].Is("alias") && !l.tokens[i].Is("undef") {
		return false
	}
	return i == 0 || !l.tokens[i-1].Is(".") && !l.tokens[i-1].Is("&.") && !l.tokens[i-1].Is("::") && !l.tokens[i-1].Is("def")
}

func (l *lexer) close(c byte) {
	start := l.Pos
	l.Pos++
	n := len(l.open) - 1
	if n < 0 || opposite(l.tokens[l.open[n]].Text[0]) != c {
		l.trouble("a bracket is closed that was not opened")
		l.add(lex.Punct, start, string(c))
		return
	}
	at := l.open[n]
	l.open = l.open[:n]
	l.add(lex.Punct, start, string(c))
	l.state.opens = c == ')' && at > 1 && (l.tokens[at-2].Is("def") || at > 3 && l.tokens[at-2].Is(".") && l.tokens[at-4].Is("def"))
}

// name reads an identifier, a constant or a keyword.
func (l *lexer) name(method bool) {
	start := l.Pos
	for !l.End() && (isWord(l.At(0)) || isDigit(l.At(0))) {
		l.facts.Step()
		l.Pos++
	}
	n, prev := len(l.tokens), *l.last()
	defines := prev.Is("def") && method || n > 2 && prev.Is(".") && l.tokens[n-3].Is("def")
	switch c, next := l.At(0), l.At(1); {
	case (c == '?' || c == '!') && (next != '=' || l.At(2) == '=' || l.At(2) == '~' || l.At(2) == '>'):
		l.Pos++
	case c == '=' && defines && next != '=' && next != '~' && next != '>' && !isBlank(next):
		l.Pos++
	}
	label := l.At(0) == ':' && l.At(1) != ':' && !prev.Is("?") && !method
	l.add(lex.Name, start, l.text[start:l.Pos])
	l.state.method, l.state.label = method, label
}

// sigil goes over the name of a variable that is not local.
func (l *lexer) sigil() {
	global := l.Code[l.Pos] == '$'
	if l.Pos++; !global {
		l.Skip("@")
	}
	if l.Identifier("") != "" || !global {
		return
	}
	switch {
	case isDigit(l.At(0)):
		l.number()
	case l.Skip("-"):
		l.Identifier("")
	default:
		_, n := l.Rune()
		l.Pos += n
	}
}

// number reads a number, whatever its form.
func (l *lexer) number() {
	for dot := false; !l.End(); l.Pos++ {
		l.facts.Step()
		switch c := l.Code[l.Pos]; {
		case c == '.' && !dot && isDigit(l.At(1)):
			dot = true
		case (c == '+' || c == '-') && l.At(-1)|0x20 == 'e' && isDigit(l.At(1)):
		case !isDigit(c) && !isWord(c) || c >= 0x80:
			return
		}
	}
}

// operand tells whether one is expected: an operator, a bracket or a keyword came last.
func (l *lexer) operand() bool {
	switch t := l.last(); t.Kind {
	case lex.Name:
		return !l.state.method && !l.state.label && opening()[t.Text]
	case lex.Number, lex.String:
		return false
	case lex.Punct:
		return l.state.opens || t.Text != ")" && t.Text != "]" && t.Text != "}"
	}
	return true
}

// applied tells whether what comes next, at byte n from here, is an argument of the name
// before it if that is a method's: white space comes before it, but not behind.
func (l *lexer) applied(n int) bool {
	t := l.last()
	return t.Kind == lex.Name && l.spaced && !isBlank(l.At(n)) && (!ending()[t.Text] || !l.variable()) && t.Text[0] != '@' && t.Text[0] != '$'
}

// variable tells whether the last token, a name, may be that of a local variable.
func (l *lexer) variable() bool { return !l.state.method && !l.state.label }

// argument tells whether what comes next is an argument of the name before it.
func (l *lexer) argument() bool {
	if !l.applied(1) {
		return false
	}
	local, known := l.locals[l.last().Text]
	if known && l.variable() {
		l.unsure()
	}
	return !local || !l.variable()
}

// ended tells whether the last token is the end of an operand for sure.
func (l *lexer) ended() bool {
	t := l.last()
	return t.Kind != lex.Name || ending()[t.Text] || l.locals[t.Text] && l.variable() || t.Text[0] == '@' || t.Text[0] == '$' || !l.spaced
}

// note notes, before a token is added, whether the last one is the name of a local variable,
// or may be.
func (l *lexer) note(kind lex.Kind, text string) {
	t, before := l.last(), &lex.Token{}
	if n := len(l.tokens); n > 1 {
		before = &l.tokens[n-2]
	}
	switch {
	case t.Kind == lex.String && text == "=~":
		l.captures(t.Text)
	case t.Kind != lex.Name || l.state.method:
	case kind == lex.Punct && assigning()[text]:
		l.locals[t.Text] = true
	case kind == lex.Newline, kind == lex.Punct && strings.Contains(",|)]};:{", text),
		before.Is("for"), before.Is("in"), before.Is("=>"), before.Is("->"),
		before.Is(",") && (text == "in" || text == "do" || text == "then"):
		if _, known := l.locals[t.Text]; !known {
			l.locals[t.Text] = false
		}
	}
}

// unsure tells trouble when what comes next is one thing behind a method, and another one
// behind a variable, and it makes a difference for what follows.
func (l *lexer) unsure() {
	const quotes, far = "\"'`#/%\\", 256
	rest, _, short := strings.Cut(l.text[l.Pos+1:min(l.Pos+1+far, len(l.text))], "\n")
	switch c := l.At(0); {
	case c == '?' && strings.IndexByte(quotes, l.At(1)) >= 0:
	case (c == '/' || c == '%' && !isDigit(l.At(1))) && (strings.ContainsAny(rest, quotes) || !short && len(rest) == far):
	default:
		return
	}
	l.trouble("an operator may be the start of a literal: write a space behind it")
}

// length is that of the longest of operators at the start of s, or 0.
func length(operators map[string]bool, s string) int {
	for n := min(3, len(s)); n > 0; n-- {
		if operators[s[:n]] {
			return n
		}
	}
	return 0
}

var (
	// operators are those of more than one character.
	operators = lex.Words("**= <=> === ... <<= >>= &&= ||= ** == != >= <= && || =~ !~ .. :: += -= *= /= %= &= |= ^= << >> -> => &.")
	// methods are operators that are names of methods.
	methods   = lex.Words("[]= <=> === [] == =~ !~ != ** +@ -@ !@ ~@ << >> <= >= + - * / % < > ! & | ^ ~ `")
	assigning = lex.Words("= ||= &&= += -= *= /= %= **= <<= >>= |= &= ^=")
	// opening are keywords that an operand follows.
	opening = lex.Words("if unless while until and or not return break next when in case then do else elsif begin ensure rescue class module " +
		"for def alias undef BEGIN END")
	// ending are keywords that are operands.
	ending = lex.Words("end self nil true false __FILE__ __LINE__ __ENCODING__ redo retry")
)
