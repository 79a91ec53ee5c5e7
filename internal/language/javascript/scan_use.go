package javascript

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// reserved are words that are no variables, or hardly ever.
var reserved = lex.Words("null true false undefined if else for while do switch case default break continue return throw try catch finally " +
	"var let const with debugger import export extends in instanceof new typeof void delete await yield function class this super arguments async of")

// operandAt notes where the operand begins that token i ends, if it does.
func (r *reader) operandAt(i int) {
	from, open := i, r.Partner[i]
	switch {
	case r.At(i).Kind == lex.Name && r.isMember(i):
		from = i - 2
	case r.role(i) == lex.Tail || r.role(i) == lex.Middle:
		from = r.Partner[i-1] - 1
	case r.marks[i].tagged:
		from = i - 1
	case open < 0 || open > i:
	case r.role(i) == funcExpr && r.Is(open-1, ")") && r.Partner[open-1] > 0:
		from = r.Partner[open-1] - 1
	case r.role(i) != call && r.role(i) != subscript:
		from = open
	case r.Is(open-1, "?."):
		from = open - 2
	default:
		from = open - 1
	}
	if r.begin[i] = i; from >= 0 && from < i {
		r.begin[i] = r.begin[from]
	}
}

// pass goes over the tokens from left to right.
func (r *reader) pass() {
	r.end, r.classes = -3, 0 // no token is behind that
	for i := range r.Tokens {
		r.Step()
		r.token(i)
	}
}

func (r *reader) token(i int) {
	t, m := &r.Tokens[i], &r.marks[i]
	if m.begins && t.Line || t.Is(",") || t.Is(";") || t.Is("=>") {
		delete(r.targets, r.Outer[i])
	}
	switch {
	case t.Kind == lex.Name:
		r.name(i)
	case t.Kind == lex.String:
		if m.tagged && r.end == i-1 {
			r.callees[i] = r.last
			r.call(i, i)
		}
	case t.Kind != lex.Punct:
	case t.Role == call || t.Role == subscript:
		r.bracket(i)
	case t.Text == ")" && t.Role == group:
		if r.end == i-1 && r.passed(i-1) {
			r.operand(r.last, i)
		}
	case t.Text == "=" || t.Text == "||=" || t.Text == "&&=" || t.Text == "??=":
		r.assign(i)
	case t.Role == class || t.Role == classExpr:
		if r.classes--; t.Text == "{" {
			r.classes += 2
		}
	}
}

// bracket reads a bracket behind an operand.
func (r *reader) bracket(i int) {
	open, before := r.Partner[i], i-1
	if r.Is(before, "?.") {
		before--
	}
	switch {
	case open > i:
		if r.end == before {
			r.callees[i] = r.last
		}
		return
	case open < 0:
		return
	case r.role(i) == call:
		r.call(open, i)
	default:
		r.subscript(open, i)
	}
	delete(r.callees, open)
	delete(r.firsts, open)
}

// name reads the name at token i.
func (r *reader) name(i int) {
	t := &r.Tokens[i]
	switch {
	case r.isMember(i):
		v := value{names: members(nil, t.Text), start: t.Start, end: t.End}
		if r.end == i-2 {
			if v.names = members(r.last.names, t.Text); r.last.start >= 0 {
				v.start = r.last.start
			}
			if t.Text == "then" && slices.ContainsFunc(r.last.names, func(of string) bool { return strings.HasSuffix(of, ".") }) {
				r.then(i+1, r.last.names)
				return
			}
		}
		r.operand(v, i)
	case r.marks[i].plain:
	case t.Text == "with" && r.role(i+1) == control:
		r.compute(t.Span, language.ComputedName)
	case t.Text == "import" && (r.Is(i+1, "(") || r.Is(i+1, ".")), !reserved()[t.Text], len(r.names[t.Text]) > 0:
		r.operand(value{names: r.meanings(i), start: t.Start, end: t.End}, i)
	}
}

// then binds the first parameter of the function that brackets at token i begin with to a module.
func (r *reader) then(i int, names []string) {
	for r.Is(i, "(") || r.Is(i, "async") || r.Is(i, "function") || r.Is(i, "*") || r.At(i).Kind == lex.Name && r.Is(i+1, "(") {
		r.Step()
		i++
	}
	r.target(i, names, nil, 0)
}

// assign notes what the operator at token i assigns to.
func (r *reader) assign(i int) {
	to, around := i-1, r.Outer[i]
	list := r.targets[around]
	if to < 0 || !r.Is(r.begin[to]-1, "=") {
		list = list[:0]
	}
	if r.role(to) == pattern {
		list = append(list, r.Partner[to])
	} else if r.isVariable(to) && !r.isMember(to) {
		list = append(list, to)
	}
	r.targets[around] = list
}

// operand notes what the operand that ends at token i stands for, and tells of it unless it goes on.
func (r *reader) operand(v value, i int) {
	if len(v.names) == 0 {
		return
	}
	r.last, r.end = v, i
	next := i + 1
	if r.Is(next, ".") || r.Is(next, "?.") || (r.role(next) == call || r.role(next) == subscript) && r.Partner[next] > next ||
		next < len(r.Tokens) && r.marks[next].tagged {
		return
	}
	begin := r.begin[i]
	p := r.before(begin)
	assigned := r.assigned(v.names, begin, p, next)
	reflects := slices.ContainsFunc(r.callees[begin-1].names, reflective)
	if reflects {
		r.firsts[begin-1] = v.names
	}
	if !r.tells || r.passed(i) {
		return
	}
	s := language.Span{Start: v.start, End: v.end}
	if v.start < 0 {
		s = r.SpanOf(begin, next)
	} else {
		r.use(s, v.names, false)
	}
	if assigned || reflects || !r.escapes(p, next) {
		return
	}
	for _, name := range v.names {
		if importer(name) {
			r.Compute(s, language.ComputedImport)
		} else if name == "process" || name == "module" || name == "." && !r.chooses(p) {
			r.Compute(s, language.ComputedName)
		}
	}
}

// before is the token before the operand that begins at token i, and before words that change nothing
// about what it stands for.
func (r *reader) before(i int) int {
	for i--; r.Is(i, "await") || r.Is(i, "new") || r.Is(i, "async"); i-- {
		r.Step()
	}
	return i
}

// chooses tells of the operator at token i that what is behind it may be what it results in.
func (r *reader) chooses(i int) bool {
	return r.Is(i, "||") || r.Is(i, "&&") || r.Is(i, "??") || r.Is(i, "?") || r.Is(i, ":") && r.role(i) != control
}

// chosen tells whether what is before token i may be what an expression results in.
func (r *reader) chosen(i int) bool {
	return r.ends(i) || r.Is(i, "||") || r.Is(i, "??") || r.Is(i, ":")
}

// passed tells whether the brackets around stand for the operand that ends at token i.
func (r *reader) passed(i int) bool {
	p := r.before(r.begin[i])
	return r.Is(i+1, ")") && r.role(i+1) == group && (r.role(p) == group || r.Is(p, ",") || r.Is(p, "=") || r.chooses(p))
}

// assigned binds what is assigned to, and tells whether there is any.
func (r *reader) assigned(names []string, begin, before, next int) bool {
	targets := r.targets[r.Outer[begin]]
	if op := r.At(before).Text; len(targets) == 0 || !r.chosen(next) || op != "=" && op != "||=" && op != "&&=" && op != "??=" && !r.chooses(before) {
		return false
	}
	for _, to := range targets {
		// What a name gets of itself would go on for ever.
		if r.Step(); r.Tokens[to].Text != r.Tokens[begin].Text {
			r.target(to, names, nil, 0)
		}
	}
	return true
}

// escapes tells whether an operand goes where it is not followed: into an argument, a list, an object,
// a result. The token before it is p, and that behind it next.
func (r *reader) escapes(p, next int) bool {
	if p < 0 || !r.chosen(next) {
		return false
	}
	in := role(0)
	if p+1 < len(r.Tokens) {
		in = r.role(r.Outer[p+1])
	}
	switch r.Tokens[p].Text {
	case "return", "yield", "throw", "default":
		return !r.marks[p].plain
	case "(", "[", "{", ",":
		return in == call || in == list || in == object || in == group && !r.ends(next)
	case "...", "=>":
		return in != pattern
	case "=":
		return p > 0 && (r.marks[p-1].plain || r.role(p-1) == subscript)
	case ":":
		return in != pattern && r.role(p) != control
	}
	return r.chooses(p)
}

// subscript reads the brackets from token open to end behind an operand.
func (r *reader) subscript(open, end int) {
	of, known := r.callees[open]
	whole := r.SpanOf(open, end+1)
	key, ok := r.constant(open+1, end)
	if !ok && end == open+2 && r.At(open+1).Kind == lex.Number {
		key, ok = r.Tokens[open+1].Text, true
	}
	if !ok {
		if known && of.start >= 0 {
			r.use(language.Span{Start: of.start, End: of.end}, of.names, false)
		}
		if slices.ContainsFunc(of.names, sensitive) {
			r.compute(whole, language.ComputedName)
		}
		return
	}
	v := value{names: members(of.names, key), start: whole.Start, end: whole.End}
	if end > open+2 { // what else the brackets hold is reported where it is written
		v.end = v.start + 1
	} else if known && of.start >= 0 {
		v.start = of.start
	}
	r.operand(v, end)
}
