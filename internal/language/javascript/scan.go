package javascript

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxMembers bounds how many members what a variable stands for has.
	maxMembers = 5
	// maxPasses bounds how often names are looked at for what others of them stand for.
	maxPasses = 8
	// far is how many tokens are looked at for the end of a function that has no braces, and for
	// what an operand is assigned to.
	far = 64
)

// scanCode implements [language.Scan]. What a name is given anywhere in a program counts
// everywhere: a name stands for all of that, and also for what Node.js has under it, but not where
// the program declares it itself in brackets around.
func scanCode(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	budget := lex.BudgetOf(4 * len(code))
	read(&facts, string(code), lex.Names{}, &budget)
	return facts.Ordered()
}

// read adds what code says to facts. Names are what names stand for around it.
func read(facts *lex.Facts, code string, names lex.Names, budget *lex.Budget) {
	marked := strings.Contains(code, "<!--") || strings.Contains(code, "-->")
	l := lexer{script: marked && !usesModules([]byte(code))}
	l.Code, l.Facts = code, facts
	l.run()
	r := reader{marks: l.marks, names: names, budget: budget, own: lex.Scopes{}, texts: map[string]*string{}, declaring: map[int]declaration{}}
	r.Facts, r.Stream = facts, lex.NewStream(l.Tokens)
	r.Dots, r.Opens = r.isDot, func(i int) bool { return r.Is(i, "(", "[") && (r.role(i) == call || r.role(i) == subscript) }
	r.Passes = func(before, open int) bool {
		return r.role(open) == group && (r.Is(before, ",", "=") || r.chooses(before))
	}
	r.Member, r.Item, r.Result, r.Report, r.Escapes, r.Assign = r.member, r.item, r.result, r.report, r.escapes, r.assign
	for _, d := range l.doubtful {
		r.nested(d.Value, d.Span)
	}
	r.declarations()
	// Names may be used before the code that tells what they stand for.
	for n := 0; r.changed || n == 0; n++ {
		r.Step()
		if n == maxPasses {
			r.MarkUnreadable("names in it stand for each other more often than is followed")
			break
		}
		r.changed = false
		r.Binding = true
		r.pass()
		r.Binding = false
	}
	r.pass()
}

// A reader tells what tokens say. A name is written as it is reported, with two exceptions: a module has
// a dot behind it, and the object of all that is there without an import is a dot.
type reader struct {
	lex.Resolver
	marks []mark
	// names are what variables stand for.
	names   lex.Names
	changed bool // they were added to
	budget  *lex.Budget
	// own are the names that the program declares itself, and texts what those of them are that it
	// declares once, as a constant text.
	own   lex.Scopes
	texts map[string]*string
	// declaring are the declarations that are read, by the bracket around.
	declaring map[int]declaration
	assigned  bool // the last operand was bound
	classes   int  // how many are around
}

// A declaration by one of the words const, let, var and using goes on behind a comma.
type declaration struct {
	scope int
	by    string
}

// reserved are words that are no variables, or hardly ever.
var reserved = lex.Words("null true false undefined if else for while do switch case default break continue return throw try catch finally " +
	"var let const with debugger import export extends in instanceof new typeof void delete await yield function class this super arguments async of")

// given are names that a file has, or that a cell of a kernel has, when it declares them with var.
var given = lex.Words("require module exports eval process globalThis global Function Reflect WebAssembly fetch Deno Bun")

func (r *reader) role(i int) role { return r.At(i).Role }

func (r *reader) isDot(i int) bool { return r.Is(i, ".", "?.") }

// isVariable tells whether a variable's name is at token i.
func (r *reader) isVariable(i int) bool { return r.Kind(i) == lex.Name && !r.marks[i].plain }

// closes tells whether an expression cannot go on at token i, and ends whether it may be over.
func (r *reader) closes(i int) bool {
	t := r.At(i)
	return t.Kind == 0 || t.Kind == lex.Punct && strings.Contains(",;)]}", t.Text)
}

func (r *reader) ends(i int) bool { return r.closes(i) || r.Tokens[i].Line }

// chooses tells of the operator at token i that what is behind it may be what it results in.
func (r *reader) chooses(i int) bool {
	return r.Is(i, "||", "&&", "??", "?") || r.Is(i, ":") && r.role(i) != control
}

// before is the token before the operand that begins at token i, and before words that change nothing
// about what it stands for.
func (r *reader) before(i int) int {
	for i--; r.Is(i, "await", "new", "async"); i-- {
		r.Step()
	}
	return i
}

// nested reads code that is the value of the string at s.
func (r *reader) nested(code string, s language.Span) {
	switch {
	case r.Binding:
	case r.budget.Take(len(code)):
		r.Nested(s, func() { read(r.Facts, code, r.names, r.budget) })
	default:
		r.Compute(s, language.ComputedCode)
	}
}

// declarations finds what the program declares, and its static imports.
func (r *reader) declarations() {
	for i := range r.Tokens {
		r.Step()
		t, around := &r.Tokens[i], r.Outer[i]
		if r.marks[i].begins && t.Line || t.Is(";") {
			delete(r.declaring, around)
		}
		switch next := r.At(i + 1); {
		case t.Is(","):
			if d, ok := r.declaring[around]; ok {
				r.declared(i+1, d)
			}
		case t.Kind == lex.Punct:
			r.head(i)
		case !r.isVariable(i):
		case r.Is(i, "var", "let", "const", "using"):
			if next.Is("[") || next.Is("{") || next.Kind == lex.Name && !r.Is(i+1, "in", "of", "instanceof") {
				r.declaring[around] = declaration{r.around(i), t.Text}
				r.declared(i+1, r.declaring[around])
			}
		case t.Text == "function":
			r.function(i)
		case t.Text == "class" && next.Kind == lex.Name && next.Text != "extends":
			if r.marks[i+1].plain = true; r.role(i) == class {
				r.declare(i+1, r.around(i))
			}
		case r.Is(i, "import", "from") && next.Kind == lex.String:
			r.module(i + 1)
			if t.Text == "from" {
				r.statement(i)
			}
		}
	}
	for i := range r.Tokens {
		r.marks[i].own = r.isVariable(i) && r.own.In(&r.Stream, i, r.Tokens[i].Text, nil)
	}
}

// declare notes that the name at token i is the program's own in a bracket, -1 outside of all.
func (r *reader) declare(i, bracket int) {
	r.own[lex.Scope{Bracket: bracket, Name: r.Tokens[i].Text}] = true
	r.texts[r.Tokens[i].Text] = nil
}

// around is the bracket that is the scope of token i. A loop's is its body, too.
func (r *reader) around(i int) int {
	open := r.Outer[i]
	if open < 0 || r.Partner[open] < 0 {
		return -1
	}
	if body := r.Partner[open] + 1; r.role(open) == control && r.Is(body, "{") && r.Partner[body] > 0 {
		r.Outer[body], r.Outer[r.Partner[body]] = open, open
	}
	return open
}

// declared declares what is at token i.
func (r *reader) declared(i int, d declaration) {
	t := r.At(i)
	if t.Kind == lex.Name && d.by == "var" && d.scope < 0 && given()[t.Text] {
		return
	}
	_, again := r.texts[t.Text]
	r.target(i, nil, &d.scope, 0)
	if t.Kind == lex.Name && d.by == "const" && r.Is(i+1, "=") && !again {
		text, behind, ok := r.Constant(r.Meter, i+2)
		if ok && (r.closes(behind) || r.Tokens[behind].Line && r.Kind(behind) == lex.Name) {
			r.texts[t.Text] = &text
		}
	}
}

// text is the text of an argument, or of an index, if it is strings, templates, and names of constant
// ones, with a + between them, or a list of strings that is joined.
func (r *reader) text(arg [2]int) (string, bool) {
	if arg[1] == arg[0]+1 && r.Kind(arg[0]) == lex.String {
		return r.Text(arg)
	}
	if end := r.Partner[arg[0]] + 1; end > 0 && r.role(arg[0]) == list && r.Is(end, ".") && r.Is(end+1, "join") && r.At(end+2).Role == call {
		return r.joined(arg[0], end+2, arg[1])
	}
	var b strings.Builder
	for i := arg[0]; i < arg[1]; i++ {
		r.Step()
		t := &r.Tokens[i]
		if t.Kind == lex.Punct && (t.Text == "+" || t.Role == insertion || t.Role == group) {
			continue
		}
		text := &t.Text
		if r.isVariable(i) && r.marks[i].own {
			text = r.texts[t.Text]
		} else if t.Kind != lex.String || !t.Constant && t.Role != lex.Head && t.Role != lex.Middle && t.Role != lex.Tail {
			return "", false
		}
		if text == nil || !r.budget.Take(len(*text)) {
			return "", false
		}
		b.WriteString(*text)
	}
	return b.String(), arg[1] > arg[0]
}

// joined is the text of the strings in the list at token i, which the brackets at token by join, if end is
// behind those.
func (r *reader) joined(i, by, end int) (string, bool) {
	separator, ok, args := ",", r.Partner[by] == end-1, r.Args(by)
	if ok && len(args) > 0 {
		separator, ok = r.Text(args[0])
	}
	var b strings.Builder
	for n, arg := range r.Args(i) {
		text, constant := r.Text(arg)
		if ok = ok && constant && r.budget.Take(len(separator)+len(text)); !ok {
			return "", false
		}
		if n > 0 {
			b.WriteString(separator)
		}
		b.WriteString(text)
	}
	return b.String(), ok
}

// head looks for patterns and parameters at the operator at token i.
func (r *reader) head(i int) {
	t, p := &r.Tokens[i], i-1
	switch {
	case t.Is("=") && (r.role(p) == list || r.role(p) == object):
		r.target(r.Partner[p], nil, nil, 0)
	case t.Is("=>") && r.Is(p, ")") && r.Partner[p] >= 0:
		r.parameters(r.Partner[p], r.body(i))
	case t.Is("=>") && r.isVariable(p):
		r.declare(p, r.body(i))
		r.marks[p].plain = true
	case t.Is("(") && r.Partner[i] > 0 && (r.role(i) == params || r.role(i) == control && r.Is(p, "catch")):
		r.parameters(i, r.body(r.Partner[i]))
	}
}

// body is the bracket of the body of a function whose head ends at token i. Where there is none, the head's
// end is one.
func (r *reader) body(i int) int {
	at := i + 1
	if r.Is(at, "{") {
		return at
	}
	for r.Is(i, "=>") && at < min(i+far, len(r.Tokens)) && (at == i+1 || !r.ends(at)) {
		r.Step()
		if r.Outer[at] = i; r.Partner[at] > at {
			r.Outer[r.Partner[at]] = i
		}
		at = r.Skip(at)
	}
	return i
}

// parameters declares those in the brackets at token open, in a body, and for each other.
func (r *reader) parameters(open, body int) {
	r.Tokens[open].Role, r.Tokens[r.Partner[open]].Role = params, params
	for _, arg := range r.Args(open) {
		r.target(arg[0], nil, &body, 0)
		r.target(arg[0], nil, &open, 0)
	}
}

// function declares the name of the function at token i. That of one that is a value is known only
// inside of it.
func (r *reader) function(i int) {
	at, before := i+1, r.before(i)
	if r.Is(at, "*") {
		at++
	}
	if r.Kind(at) != lex.Name {
		return
	}
	r.marks[at].plain = true
	switch open := at + 1; {
	case r.role(i) != function:
		if r.Is(open, "(") && r.Partner[open] > 0 {
			r.declare(at, r.body(r.Partner[open]))
		}
	case !r.Is(before, ")", "else", "do", ":"): // without a condition
		r.declare(at, r.around(i))
	}
}

// bind has a name stand for names, too. Of a long one it is what the first members are called, since
// names that are made of each other may grow for ever.
func (r *reader) bind(name string, names []string) {
	for _, meaning := range names {
		if r.Step(); name == "await" || name == "yield" {
			r.MarkUnreadable("a name in it is a word of the language")
		}
		if parts := strings.SplitAfterN(meaning, ".", maxMembers+1); len(parts) > maxMembers {
			meaning = strings.TrimSuffix(strings.Join(parts[:maxMembers], ""), ".")
		}
		n := len(r.names[name])
		r.Bind(r.names, name, meaning)
		r.changed = r.changed || len(r.names[name]) > n
	}
}

// target binds the names of the pattern at token i to the members of what has one of names, and, with
// a scope, declares them in it.
func (r *reader) target(i int, names []string, in *int, depth int) {
	r.Step()
	if r.Is(i, "...") {
		i++
	}
	t := r.At(i)
	switch {
	case t.Kind == lex.Name:
		if in != nil {
			r.declare(i, *in)
		}
		r.bind(t.Text, names)
	case !t.Is("{") && !t.Is("[") || r.Partner[i] < i:
	case depth == lex.MaxDepth:
		r.MarkUnreadable("patterns lie too deep inside of each other")
	default:
		r.Tokens[i].Role, r.Tokens[r.Partner[i]].Role = pattern, pattern
		for n, arg := range r.Args(i) {
			at, of := r.key(i, n, arg[0], names)
			r.target(at, of, in, depth+1)
		}
	}
}

// key is where member n of the pattern at token open, at token i, has what it is bound to, and what
// that stands for then.
func (r *reader) key(open, n, i int, names []string) (at int, of []string) {
	t := &r.Tokens[i]
	switch end := r.Partner[i]; {
	case t.Is("..."):
		return i, names
	case r.Is(open, "["):
		return i, members(names, strconv.Itoa(n))
	case t.Is("[") && end > i:
		if text, ok := r.text([2]int{i + 1, end}); ok {
			return end + 2, members(names, text)
		}
		if slices.ContainsFunc(names, sensitive) {
			r.Compute(r.Tokens[end-1].Span, language.ComputedName)
		}
		return end + 2, nil
	case r.Is(i+1, ":"):
		r.marks[i].plain = true
		return i + 2, members(names, t.Text)
	}
	return i, members(names, t.Text)
}

// statement reads an import or an export whose word from is token i. It binds, or tells of, the names
// that begin behind a comma or a bracket.
func (r *reader) statement(i int) {
	first := i - 1
	for n := 0; n < 8 && first > 0 && !r.Is(first, "import", "export"); n++ {
		r.Step()
		if open := r.Partner[first]; open > 0 {
			first = open
		}
		first--
	}
	module := moduleName(r.Tokens[i+1].Text) + "."
	name := first + 1
	for at := max(first, 0); at <= i; at++ {
		r.Step()
		t, next := &r.Tokens[at], at+1
		r.marks[at].plain = true
		of := []string{module}
		if r.Outer[at] > first {
			of = members(of, r.Tokens[name].Text)
		}
		switch {
		case t.Is("{") || t.Is(","), t.Is("type") && r.Kind(next) != lex.Punct && !r.Is(next, "as") && next < i:
			name = next
		case t.Kind != lex.Name || at == first || next != i && !r.Is(next, ",", "}"):
		case r.Is(first, "import"):
			r.marks[at].plain = false
			r.declare(at, -1)
			r.bind(t.Text, of)
		case r.Outer[at] > first:
			r.Use(r.Tokens[name].Span, module+r.Tokens[name].Text, false)
		}
	}
}

// module tells of the module that the string at token i names.
func (r *reader) module(i int) {
	t := &r.Tokens[i]
	if code, ok := dataCode(t.Text); ok {
		r.Compute(t.Span, language.ComputedCode)
		r.nested(code, t.Span)
	} else {
		r.Import(t.Span, moduleName(t.Text))
	}
}
