package ruby

import (
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scanCode implements [language.Scan].
func scanCode(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	read(&facts, string(code), lex.Names{}, lex.Names{})
	return facts.Ordered()
}

// read adds what code says to facts. Names and methods are what names stand for around it.
func read(facts *lex.Facts, code string, names, methods lex.Names) {
	r := reader{
		Facts: facts, code: code, Stream: lex.NewStream(tokens(facts, code)), names: names, methods: methods,
		locals: map[string]bool{}, bound: map[int]bool{}, values: map[int]value{}, executed: -1,
	}
	r.bind()
	for i := 0; i < len(r.Tokens); {
		r.Step()
		i = r.token(i)
	}
}

// A reader tells what tokens say. Methods of an object that is not known are of no interest,
// but for those that look up others or run code.
type reader struct {
	*lex.Facts
	code string
	lex.Stream
	// names are what variables and constants stand for, methods what the new names of
	// methods do.
	names, methods lex.Names
	// locals are names of local variables, wherever they are.
	locals map[string]bool
	// bound are the last tokens of names that a variable was made to stand for.
	bound map[int]bool
	// values are what operands stand for, by their last tokens, until they are asked for.
	values map[int]value
	// executed is the argument that was read as code last.
	executed int
}

// A value is what an operand stands for: modules or objects, or methods that are not called
// yet.
type value struct {
	names  []string
	method bool
	start  int // where it is written, or -1 where it is no name in the code
}

// dot tells whether a member comes behind token i.
func (r *reader) dot(i int) bool {
	return dots(r.At(i))
}

// token reads what begins at token i and returns where to go on.
func (r *reader) token(i int) int {
	t := &r.Tokens[i]
	switch {
	case t.Kind == lex.String:
		r.literal(i)
	case t.Is(")") && r.Partner[i] >= 0:
		// A value in brackets is one, but the arguments of a call are not its value.
		before := r.At(r.Partner[i] - 1)
		if v, ok := r.values[i-1]; ok && (r.Tokens[r.Partner[i]].Spaced || !isOperand(before)) {
			r.values[i] = v
		}
	case t.Kind != lex.Name || r.isLabel(i):
	case r.isMember(i):
		r.member(i)
	case t.Text == "def":
		if i++; r.dot(i + 1) {
			i += 2
		}
	case t.Text == "class" || t.Text == "module":
		if r.At(i+1).Kind == lex.Name {
			return lex.ReadChain(r.Meter, r.Tokens, i+1, "::").Behind
		}
	case t.Text == "undef":
		i++
	case t.Text == "alias":
		if old := r.At(i + 2); old.Kind == lex.Name || old.Constant {
			r.Use(old.Span, old.Text, false)
		}
		i += 2
	case !keywords()[t.Text]:
		r.head(i)
	}
	return i + 1
}

// isOperand tells whether a token may be the end of one.
func isOperand(t *lex.Token) bool {
	switch t.Kind {
	case lex.Name:
		return !opening()[t.Text]
	case lex.Punct:
		return t.Text == ")" || t.Text == "]" || t.Text == "}"
	}
	return t.Kind == lex.String || t.Kind == lex.Number
}

// isLabel tells whether the name at token i is a key: a colon follows it.
func (r *reader) isLabel(i int) bool {
	next := r.At(i + 1)
	return next.Is(":") && !next.Spaced && !r.At(i-1).Is("?") && !r.isMember(i)
}

// isMember tells whether the name at token i is that of something's member, which is not so
// behind a :: that nothing comes before.
func (r *reader) isMember(i int) bool {
	p := r.At(i - 1)
	return p.Is(".") || p.Is("&.") || p.Is("::") && !p.Spaced && isOperand(r.At(i-2))
}

// literal reads the string at token i: commands are run, and &:name is a method.
func (r *reader) literal(i int) {
	t := r.Tokens[i]
	written := strings.TrimLeft(r.code[t.Start:t.End], "<~-")
	switch {
	case strings.HasPrefix(written, "`"):
		r.Use(language.Span{Start: t.Start, End: t.Start + 1}, "`", true)
	case strings.HasPrefix(written, "%x"):
		r.Use(language.Span{Start: t.Start, End: t.Start + 3}, "`", true)
	case !t.Constant || written[0] != ':' && !strings.HasPrefix(written, "%s"):
	case r.At(i-1).Is("&") || r.dot(i+1) && r.At(i+2).Is("to_proc"):
		r.named(i, t.Text, false)
	}
}

// head reads the name at token i, which no dot comes before.
func (r *reader) head(i int) {
	t := r.Tokens[i]
	next, arg := r.At(i+1), r.argument(i+1)
	called := next.Is("(") && !next.Spaced
	first := t.Text[0]
	switch {
	case first == '@' || t.Text == "self" || first == '$' || isConstant(t.Text) && !called && next.Kind != lex.String:
		if first != '@' || len(r.names[t.Text]) > 0 {
			r.value(i, value{names: r.names.Of(t.Text), start: t.Start})
		}
	case len(r.names[t.Text]) > 0 && !called && arg < 0:
		r.value(i, value{names: r.names.Of(t.Text), start: t.Start})
	default:
		of := r.methods.Of(t.Text)
		if r.locals[t.Text] && !called && arg < 0 && !slices.ContainsFunc(of, func(name string) bool { return alone()[name] }) {
			return
		}
		r.call(i, nil, of, language.Span{Start: t.Start, End: t.End})
	}
}

func isConstant(name string) bool { return name[0] >= 'A' && name[0] <= 'Z' }

// named tells of a method or a constant that the string at token i names. What is no name
// names nothing.
func (r *reader) named(i int, name string, call bool) {
	odd := func(c rune) bool {
		return c < 0x80 && !isWord(byte(c)) && !strings.ContainsRune("?!=`:.", c)
	}
	if !strings.ContainsFunc(name, odd) {
		r.Use(r.Tokens[i].Span, name, call)
	}
}

// value notes what the operand that ends at token i stands for. Without a member behind it,
// that is a use; and Kernel itself, with all its methods, goes where it is not followed.
func (r *reader) value(i int, v value) {
	if r.dot(i + 1) {
		r.values[i] = v
		return
	}
	if r.At(i + 1).Is(")") {
		r.values[i] = v
	}
	if next := r.At(i + 1); assigning()[next.Text] && next.Kind == lex.Punct && v.start == r.Tokens[i].Start {
		return
	}
	for _, name := range v.names {
		if v.start >= 0 && name != "self" {
			r.Use(language.Span{Start: v.start, End: r.Tokens[i].End}, name, false)
		}
		if name == "Kernel" && !r.bound[i] {
			r.Compute(r.Tokens[i].Span, language.ComputedName)
		}
	}
}

// member reads the name at token i, which is a member of what comes before the dot.
func (r *reader) member(i int) {
	t, next := r.Tokens[i], r.At(i+1)
	of, known := r.values[i-2]
	delete(r.values, i-2)
	use := language.Span{Start: t.Start, End: t.End}
	if known && of.start >= 0 && !of.method {
		use.Start = of.start
	}
	switch act := actions[t.Text]; {
	case r.At(i-1).Is("::") && isConstant(t.Text) && !(next.Is("(") && !next.Spaced):
		if !known || of.method {
			return
		}
		v := value{start: of.start}
		for _, module := range of.names {
			v.names = append(v.names, scoped(module, t.Text))
		}
		r.value(i, v)
	case known && of.method:
		if t.Text == "call" || t.Text == "===" || t.Text == "yield" {
			r.call(i, nil, of.names, use)
		}
	case known:
		if hands()[t.Text] && slices.Contains(of.names, "Kernel") {
			r.Compute(t.Span, language.ComputedName)
		}
		r.call(i, of.names, []string{t.Text}, use)
	case act >= ofAny:
		r.call(i, []string{""}, []string{t.Text}, use)
	}
}

// call reads a call, by the name at token i, of the methods of the objects in of, or of self.
func (r *reader) call(i int, of, methods []string, use language.Span) {
	end := i
	if open := r.At(i + 1); open.Is("(") && !open.Spaced && r.Partner[i+1] > i {
		end = r.Partner[i+1]
	}
	whole := language.Span{Start: r.Tokens[i].Start, End: max(r.Tokens[i].End, r.Tokens[end].End)}
	c := invocation{use: use, whole: whole, argument: r.argument(i + 1)}
	if len(of) == 0 {
		of = []string{""}
	}
	result := value{start: -1}
	for _, c.of = range of {
		for _, c.method = range methods {
			got, method := r.invoke(c)
			if got != "" {
				result.names, result.method = append(result.names, got), method
			}
		}
	}
	if len(result.names) == 0 {
		return
	}
	if !result.method {
		r.value(end, result)
	} else if member := r.At(end + 2); r.dot(end+1) && (member.Is("call") || member.Is("===") || member.Is("yield")) {
		r.values[end] = result
	} else {
		r.escapes(result.names, c.whole)
	}
}

// escapes reports methods that are taken as values: what they are called with is not known.
func (r *reader) escapes(methods []string, at language.Span) {
	for _, name := range methods {
		switch act := actions[name]; {
		case act == imports || act == autoloads:
			r.Compute(at, language.ComputedImport)
		case act == runs || codeOf()[name]:
			r.Compute(at, language.ComputedCode)
		case act == sends || act == takes || act == constants:
			r.Compute(at, language.ComputedName)
		}
	}
}

// argument is where the first argument of a call begins whose name ends before token i, or -1.
func (r *reader) argument(i int) int {
	t, next := r.At(i), r.At(i+1)
	switch {
	case t.Is("("):
		end := r.Partner[i]
		if end == i+1 || next.Kind == 0 {
			return -1
		}
		if t.Spaced && end > i && !r.ends(end+1) {
			return i
		}
		return i + 1
	case t.Kind == lex.String, t.Spaced && (t.Kind == lex.Number || t.Kind == lex.Name && !parting()[t.Text]):
		return i
	case t.Kind == lex.Punct && t.Spaced && (prefix()[t.Text] || !next.Spaced && maybePrefix()[t.Text]):
		return i
	}
	return -1
}

// ends tells whether an argument is over at token i.
func (r *reader) ends(i int) bool {
	t := r.At(i)
	return t.Kind == 0 || t.Kind == lex.Newline || t.Kind == lex.Name && parting()[t.Text] ||
		t.Kind == lex.Punct && strings.Contains(",)]};", t.Text)
}

// constant is the text of the argument at token i if it is nothing but strings, one behind
// the other or with a + between them, and the token behind it.
func (r *reader) constant(i int) (text string, behind int, ok bool) {
	text, behind, ok = r.Constant(r.Meter, i)
	return text, behind, ok && r.ends(behind)
}

// behind is the argument behind one that ends before token i, or -1.
func (r *reader) behind(i int) int {
	if r.At(i).Is(",") && i+1 < len(r.Tokens) {
		return i + 1
	}
	return -1
}

// nested reads the string at token i, whose value is text, as code.
func (r *reader) nested(i int, text string) {
	if r.executed == i {
		return
	}
	r.executed = i
	r.Nested(r.Tokens[i].Span, func() { read(r.Facts, text, r.names, r.methods) })
}

// moduleName is the name of the library that a program requires so: without a file's ending,
// and without the directory that Ruby's own libraries lie in.
func moduleName(text string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(text, ".rb"), ".so")
	if name == "" {
		return ""
	}
	if strings.HasPrefix(name, ".") {
		return name
	}
	name = path.Clean(name)
	if !path.IsAbs(name) {
		return name
	}
	if at := strings.LastIndex(name, "/lib/"); at >= 0 && strings.Contains(name[:at], "/gems/") {
		return name[at+len("/lib/"):]
	}
	_, own, ok := strings.Cut(name, "/ruby/")
	if !ok {
		return name
	}
	for {
		first, rest, more := strings.Cut(own, "/")
		if !more || first != "vendor_ruby" && first != "site_ruby" && !lex.IsDigit(first[0]) && !strings.Contains(first, "-linux") {
			return own
		}
		own = rest
	}
}
