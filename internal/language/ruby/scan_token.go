package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "#", Ends: "\n", Joins: true, Balanced: true,
	Operators: lex.OperatorsOf("**= <=> === ... <<= >>= &&= ||= ** == != >= <= && || =~ !~ .. :: += -= *= /= %= &= |= ^= << >> -> => &."),
}

// A lexer splits code into tokens. A literal with insertions is a string that is not constant,
// and behind it, for each #{}, its code between braces. A here-document comes where it is
// asked for.
type lexer struct {
	lex.Lexer
	// missing are ends of here-documents that do not come any more.
	missing map[terminator]bool
	// lines is where a line begins that goes on with the statement before it.
	lines int
	// locals are names that were given a value anywhere before, and, with false, those that
	// may have been.
	locals map[string]bool
}

// What the lexer has to know of a token is its role.
const (
	member uint8 = 1 << iota // a name behind a dot or def
	label                    // a name before a colon
	opens                    // a bracket that ends a method's parameters: its body follows
	begins                   // an operand was expected there
)

// tokens splits code.
func tokens(facts *lex.Facts, code string) []lex.Token {
	l := lexer{locals: map[string]bool{}, missing: map[terminator]bool{}}
	l.Code, l.Facts, l.Table = code, facts, &table
	l.Special, l.Newline, l.Add = l.special, l.newline, l.added
	l.Unreadable = func(reason string) {
		// Code in a string that cannot be read is computed code.
		if facts.Depth == 0 {
			facts.MarkUnreadable(reason)
		} else {
			facts.Compute(language.Span{}, language.ComputedCode)
		}
	}
	l.Run()
	return l.Tokens
}

// was tells whether the last token has a role.
func (l *lexer) was(role uint8) bool { return l.Last().Role&role != 0 }

// added gives a token its role before it is added.
func (l *lexer) added(t *lex.Token) {
	l.note(t.Kind, t.Text)
	if l.operand() {
		t.Role = begins
	}
	def := func(i int) bool { return i >= 0 && l.Tokens[i].Is("def") }
	if at := l.Closed; t.Is(")") && at > 1 && (def(at-2) || l.Tokens[at-2].Is(".") && def(at-4)) {
		t.Role |= opens
	}
}

// comment goes over lines from =begin to =end.
func (l *lexer) comment() {
	start := l.Pos
	for closed := false; !closed; closed = isBlank(l.At(0)) {
		l.Step()
		if !l.Through("\n=end") {
			l.Unreadable("a comment is not closed")
			break
		}
	}
	l.To("\n")
	l.Comment(start, l.Pos)
}

// newline ends a statement, unless that cannot be over, or the next line goes on with a dot.
func (l *lexer) newline(at int) {
	last := l.Last()
	if l.operand() && !l.was(opens) && !last.Is("|") || last.Kind == lex.Newline || l.Pos <= l.lines {
		return
	}
	next := l.Cursor
	for !next.End() && (isBlank(next.At(0)) || next.At(0) == '#') {
		l.Step()
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
	l.Put(lex.Newline, at, "").Role = 0
	l.Spaced = true
}

// special reads what has a meaning that depends on what comes before.
func (l *lexer) special(c byte) bool {
	start, line := l.Pos, l.Pos == 0 || l.At(-1) == '\n'
	named := l.named()
	switch {
	case line && c == '=' && l.Has("=begin") && isBlank(l.At(6)):
		l.comment()
	case line && c == '_' && (l.Has("__END__\n") || l.Has("__END__\r\n") || l.Code[l.Pos:] == "__END__"):
		l.Comment(l.Pos, len(l.Code))
		l.Pos = len(l.Code)
	case isWord(c) && !lex.IsDigit(c):
		l.name(named)
	case c == '@' || c == '$':
		l.sigil()
		l.member(start, named)
	case named && method(l.Code[start:]) > 0:
		l.Pos += method(l.Code[start:])
		l.member(start, true)
	case c == '"' || c == '\'' || c == '`':
		q := between(c, c, c == '\'')
		q.Dynamic = c == '`'
		l.Pos++
		l.Literal(start, q)
	case c == '/' && (l.operand() || l.At(1) != '=' && l.argument()):
		l.Pos++
		l.Literal(start, regular(between(c, c, false)))
	case c == '%' && (l.operand() || l.At(1) != '=' && l.argument()):
		return l.percent()
	case c == '<' && l.At(1) == '<' && (!l.Last().Is("class") || l.was(member)) && (l.operand() || l.applied(2)):
		return l.document()
	case c == '?' && (l.operand() || l.argument()):
		return l.char()
	case c == ':' && l.At(1) != ':' && (named || l.operand() || l.argument() || !l.ended()):
		return l.symbol()
	default:
		return false
	}
	return true
}

// member adds a name that ends here.
func (l *lexer) member(start int, named bool) {
	if t := l.Put(lex.Name, start, l.Code[start:l.Pos]); named {
		t.Role |= member
	}
}

// named tells whether a method's name is to come.
func (l *lexer) named() bool {
	t := l.Last()
	if n := len(l.Tokens); l.renames(n-1) || (t.Kind == lex.Name || t.Kind == lex.String) && l.renames(n-2) {
		return true
	}
	return dots(t) && (!t.Is("::") || !l.was(begins)) || t.Is("def") && l.variable()
}

// dots tells of what the name of a member comes behind.
func dots(t *lex.Token) bool { return t.Is(".") || t.Is("&.") || t.Is("::") }

// renames tells whether token i is alias, which two names follow, or undef.
func (l *lexer) renames(i int) bool {
	if i < 0 || !l.Tokens[i].Is("alias") && !l.Tokens[i].Is("undef") {
		return false
	}
	return i == 0 || !dots(&l.Tokens[i-1]) && !l.Tokens[i-1].Is("def")
}

// name reads an identifier, a constant or a keyword.
func (l *lexer) name(named bool) {
	start := l.Pos
	for !l.End() && isWord(l.At(0)) {
		l.Step()
		l.Pos++
	}
	n, prev := len(l.Tokens), *l.Last()
	defines := prev.Is("def") && named || n > 2 && prev.Is(".") && l.Tokens[n-3].Is("def")
	switch c, next := l.At(0), l.At(1); {
	case (c == '?' || c == '!') && (next != '=' || l.At(2) == '=' || l.At(2) == '~' || l.At(2) == '>'):
		l.Pos++
	case c == '=' && defines && next != '=' && next != '~' && next != '>' && !isBlank(next):
		l.Pos++
	}
	keyed := l.At(0) == ':' && l.At(1) != ':' && !prev.Is("?") && !named
	if l.member(start, named); keyed {
		l.Last().Role |= label
	}
}

// sigil goes over the name of a variable that is not local.
func (l *lexer) sigil() {
	global := l.At(0) == '$'
	if l.Pos++; !global {
		l.Skip("@")
	}
	if l.Identifier("") != "" || !global {
		return
	}
	switch {
	case lex.IsDigit(l.At(0)):
		l.Number()
	case l.Skip("-"):
		l.Identifier("")
	default:
		_, n := l.Rune()
		l.Pos += n
	}
}

// operand tells whether one is expected: an operator, a bracket or a keyword came last.
func (l *lexer) operand() bool {
	switch t := l.Last(); t.Kind {
	case lex.Name:
		return l.variable() && opening()[t.Text]
	case lex.Number, lex.String:
		return false
	case lex.Punct:
		return l.was(opens) || t.Text != ")" && t.Text != "]" && t.Text != "}"
	}
	return true
}

// applied tells whether what comes next, at byte n from here, is an argument of the name
// before it if that is a method's: white space comes before it, but not behind.
func (l *lexer) applied(n int) bool {
	t := l.Last()
	return t.Kind == lex.Name && l.Spaced && !isBlank(l.At(n)) && (!ending()[t.Text] || !l.variable()) && t.Text[0] != '@' && t.Text[0] != '$'
}

// variable tells whether the last token, a name, may be that of a local variable.
func (l *lexer) variable() bool { return !l.was(member | label) }

// argument tells whether what comes next is an argument of the name before it.
func (l *lexer) argument() bool {
	if !l.applied(1) {
		return false
	}
	local, known := l.locals[l.Last().Text]
	if known && l.variable() {
		l.unsure()
	}
	return !local || !l.variable()
}

// ended tells whether the last token is the end of an operand for sure.
func (l *lexer) ended() bool {
	t := l.Last()
	return t.Kind != lex.Name || ending()[t.Text] || l.locals[t.Text] && l.variable() || t.Text[0] == '@' || t.Text[0] == '$' || !l.Spaced
}

// note notes, before a token is added, whether the last one is the name of a local variable,
// or may be.
func (l *lexer) note(kind lex.Kind, text string) {
	t, before := l.Last(), &lex.Token{}
	if n := len(l.Tokens); n > 1 {
		before = &l.Tokens[n-2]
	}
	switch {
	case t.Kind == lex.String && text == "=~":
		l.captures(t.Text)
	case t.Kind != lex.Name || l.was(member):
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

// unsure marks the code unreadable when what comes next is one thing behind a method, and another one
// behind a variable, and it makes a difference for what follows.
func (l *lexer) unsure() {
	const quotes, far = "\"'`#/%\\", 256
	rest, _, short := strings.Cut(l.Code[l.Pos+1:min(l.Pos+1+far, len(l.Code))], "\n")
	switch c := l.At(0); {
	case c == '?' && strings.IndexByte(quotes, l.At(1)) >= 0:
	case (c == '/' || c == '%' && !lex.IsDigit(l.At(1))) && (strings.ContainsAny(rest, quotes) || !short && len(rest) == far):
	default:
		return
	}
	l.Unreadable("an operator may be the start of a literal: write a space behind it")
}

// methods are operators of more than one character that are names of methods.
var methods = lex.OperatorsOf("[]= <=> === [] == =~ !~ != ** +@ -@ !@ ~@ << >> <= >=")

// method is the length of the operator that text begins with and that names a method, or 0.
func method(text string) int {
	n := methods().Longest(text)
	if n == 0 && text != "" && strings.IndexByte("+-*/%<>!&|^~`", text[0]) >= 0 {
		n = 1
	}
	return n
}

var (
	assigning = lex.Words("= ||= &&= += -= *= /= %= **= <<= >>= |= &= ^=")
	// opening are keywords that an operand follows.
	opening = lex.Words("if unless while until and or not return break next when in case then do else elsif begin ensure rescue class module " +
		"for def alias undef BEGIN END")
	// ending are keywords that are operands.
	ending = lex.Words("end self nil true false __FILE__ __LINE__ __ENCODING__ redo retry")
)
