package javascript

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A scope is the tokens from one up to another where a name is the program's own.
type scope struct{ from, end int }

// A constant is the text that a name is declared with, if it is the same wherever it is declared.
type constant struct {
	text string
	ok   bool
}

// A declaration by one of the words const, let, var and using goes on behind a comma.
type declaration struct {
	scope
	by string
}

// given are names that a file has, or that a cell of a kernel has, when it declares them with var.
var given = lex.Words("require module exports eval process globalThis global Function Reflect WebAssembly fetch Deno Bun")

// An owned name is one that the program declares itself.
type owned struct {
	constant
	scopes []scope
	end    int // the furthest end of those that have begun
}

// declare notes that the name at token i is the program's own in a scope that has begun.
func (r *reader) declare(i int, in scope, c constant) {
	o := r.owned[r.Tokens[i].Text]
	if o == nil {
		o = &owned{constant: c}
		r.owned[r.Tokens[i].Text] = o
	}
	if o.constant != c {
		o.constant = constant{}
	}
	o.scopes, o.end = append(o.scopes, in), max(o.end, in.end)
}

// own finds which names are the program's own where they are used.
func (r *reader) own() {
	for _, o := range r.owned {
		slices.SortFunc(o.scopes, func(a, b scope) int { return a.from - b.from })
		o.end = 0
	}
	for i := range r.Tokens {
		o := r.owned[r.Tokens[i].Text]
		if o == nil {
			continue
		}
		for len(o.scopes) > 0 && o.scopes[0].from <= i {
			r.Step()
			o.scopes, o.end = o.scopes[1:], max(o.end, o.scopes[0].end)
		}
		r.marks[i].own = i < o.end
	}
}

// around is the scope that the bracket is which token i lies in. A loop's goes on with its body.
func (r *reader) around(i int) scope {
	open := r.Outer[i]
	if open < 0 || r.Partner[open] < 0 {
		return scope{max(open, 0), len(r.Tokens)}
	}
	end := r.Partner[open]
	if r.role(open) == control && r.Is(end+1, "{") {
		end = r.Skip(end + 1)
	}
	return scope{open, end}
}

// meanings are what the variable at token i stands for.
func (r *reader) meanings(i int) []string {
	name := r.Tokens[i].Text
	list := r.names[name]
	if r.marks[i].own {
		return list
	}
	if others := name == "window" || name == "self" || name == "root" || name == "GLOBAL"; others && r.owned[name] == nil {
		name = "." // for hosts other than Node.js
	}
	if name = global(name); slices.Contains(list, name) {
		return list
	}
	return append(list[:len(list):len(list)], name)
}

// bind has a name stand for names, too. Of a long one it is what the first members are called, since
// names that are made of each other may grow for ever.
func (r *reader) bind(name string, names []string) {
	for _, meaning := range names {
		if r.Step(); name == "await" || name == "yield" {
			r.Trouble("a name in it is a word of the language")
		}
		if parts := strings.SplitAfterN(meaning, ".", maxMembers+1); len(parts) > maxMembers {
			meaning = strings.TrimSuffix(strings.Join(parts[:maxMembers], ""), ".")
		}
		n := len(r.names[name])
		r.Bind(r.names, name, meaning)
		r.changed = r.changed || len(r.names[name]) > n
	}
}

// declarations finds what the program declares, its static imports, and where operands begin.
func (r *reader) declarations() {
	for i := range r.Tokens {
		r.operandAt(i)
		t, around := &r.Tokens[i], r.Outer[i]
		if r.marks[i].begins && r.Tokens[i].Line || t.Is(";") {
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
		case t.Text == "var" || t.Text == "let" || t.Text == "const" || t.Text == "using":
			if next.Is("[") || next.Is("{") || next.Kind == lex.Name && next.Text != "in" && next.Text != "of" && next.Text != "instanceof" {
				r.declaring[around] = declaration{r.around(i), t.Text}
				r.declared(i+1, r.declaring[around])
			}
		case t.Text == "function":
			r.function(i)
		case t.Text == "class" && next.Kind == lex.Name && next.Text != "extends":
			if r.marks[i+1].plain = true; r.role(i) == class {
				r.declare(i+1, r.around(i), constant{})
			}
		case (t.Text == "import" || t.Text == "from") && next.Kind == lex.String:
			r.module(i + 1)
			if t.Text == "from" {
				r.statement(i)
			}
		}
	}
	r.own()
}

// declared declares what is at token i.
func (r *reader) declared(i int, d declaration) {
	t := r.At(i)
	switch {
	case t.Kind == lex.Name && d.by == "var" && d.scope == scope{0, len(r.Tokens)} && given()[t.Text]:
	case t.Kind == lex.Name && d.by == "const" && r.Is(i+1, "="):
		text, behind, ok := r.text(i+2, 0)
		r.declare(i, d.scope, constant{text, ok && (r.closes(behind) || r.ends(behind) && r.Tokens[behind].Kind == lex.Name)})
	default:
		r.target(i, nil, &d.scope, 0)
	}
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
		r.declare(p, scope{p, r.body(i)}, constant{})
	case t.Is("(") && r.Partner[i] > 0 && (r.role(i) == params || r.role(i) == control && r.Is(p, "catch")):
		r.parameters(i, r.body(r.Partner[i]))
	}
}

// body is the token behind the body of a function whose head ends at token i.
func (r *reader) body(i int) int {
	at := i + 1
	if r.Is(at, "{") {
		return r.Skip(at)
	}
	for r.Is(i, "=>") && at < min(i+far, len(r.Tokens)) && (at == i+1 || !r.ends(at)) {
		r.Step()
		at = r.Skip(at)
	}
	return at
}

// parameters declares those in the brackets at token open, up to the token end.
func (r *reader) parameters(open, end int) {
	r.Tokens[open].Role, r.Tokens[r.Partner[open]].Role = params, params
	for _, arg := range r.Args(open) {
		r.target(arg[0], nil, &scope{open, end}, 0)
	}
}

// function declares the name of the function at token i. That of one that is a value is known only
// inside of it.
func (r *reader) function(i int) {
	at, before := i+1, r.At(r.before(i))
	if r.Is(at, "*") {
		at++
	}
	if r.At(at).Kind != lex.Name {
		return
	}
	r.marks[at].plain = true
	switch open := at + 1; {
	case r.role(i) != function:
		if r.Is(open, "(") && r.Partner[open] > 0 {
			r.declare(at, scope{at, r.body(r.Partner[open])}, constant{})
		}
	case !before.Is(")") && !before.Is("else") && !before.Is("do") && !before.Is(":"): // without a condition
		r.declare(at, r.around(i), constant{})
	}
}

// target binds the names of the pattern at token i to the members of what has one of names, and, with
// a scope, declares them in it.
func (r *reader) target(i int, names []string, in *scope, depth int) {
	r.Step()
	if r.Is(i, "...") {
		i++
	}
	t := r.At(i)
	switch {
	case t.Kind == lex.Name:
		if in != nil {
			r.declare(i, *in, constant{})
		}
		r.bind(t.Text, names)
	case !t.Is("{") && !t.Is("[") || r.Partner[i] < i:
	case depth == lex.MaxDepth:
		r.Trouble("patterns lie too deep inside of each other")
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
		if text, ok := r.constant(i+1, end); ok {
			return end + 2, members(names, text)
		}
		if slices.ContainsFunc(names, sensitive) {
			r.compute(r.Tokens[end-1].Span, language.ComputedName)
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
	for n := 0; n < 8 && first > 0 && !r.Is(first, "import") && !r.Is(first, "export"); n++ {
		r.Step()
		if open := r.Partner[first]; open > 0 {
			first = open
		}
		first--
	}
	names := []string{moduleName(r.Tokens[i+1].Text) + "."}
	name := first + 1
	for at := max(first, 0); at <= i; at++ {
		r.Step()
		t, next := &r.Tokens[at], at+1
		r.marks[at].plain = true
		of := names
		if r.Outer[at] > first {
			of = members(names, r.Tokens[name].Text)
		}
		switch {
		case t.Is("{") || t.Is(","), t.Is("type") && r.At(next).Kind != lex.Punct && !r.Is(next, "as") && next < i:
			name = next
		case t.Kind != lex.Name || at == first || next != i && !r.Is(next, ",") && !r.Is(next, "}"):
		case r.Is(first, "import"):
			r.marks[at].plain = false
			r.declare(at, scope{0, len(r.Tokens)}, constant{})
			r.bind(t.Text, of)
		case r.Outer[at] > first:
			r.Use(r.Tokens[name].Span, strings.TrimSuffix(names[0], ".")+"."+r.Tokens[name].Text, false)
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
