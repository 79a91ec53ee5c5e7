package javascript

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// pass reads the tokens from left to right.
func (r *reader) pass() {
	r.classes = 0
	for i := 0; i < len(r.Tokens); {
		r.Step()
		i = r.token(i)
	}
}

// token reads what begins at token i and returns where to go on.
func (r *reader) token(i int) int {
	t, m := &r.Tokens[i], &r.marks[i]
	if t.Kind == lex.Punct && (t.Role == class || t.Role == classExpr) {
		if r.classes--; t.Text == "{" {
			r.classes += 2
		}
	}
	v := lex.Value{First: i, Span: t.Span, Told: true}
	switch {
	case m.tagged && r.End == i:
		c := lex.Call{Value: r.Last, Open: i, Args: [][2]int{{i, i + 1}}}
		for _, name := range c.Names {
			got, _ := r.result(&c, name)
			v.Names = r.Add(v.Names, got...)
		}
	case t.Kind == lex.Number, t.Kind == lex.String:
	case r.isDot(i) && r.Kind(i+1) == lex.Name: // of what is not known
		return r.Chain(v, i)
	case r.Is(i, ")", "]", "}"):
		return r.Close(i)
	case t.Kind != lex.Name || m.plain:
		return i + 1
	case t.Text == "with" && r.role(i+1) == control:
		r.Compute(t.Span, language.ComputedName)
		return i + 1
	case t.Text == "import" && r.Is(i+1, "(", "."), !reserved()[t.Text], len(r.names[t.Text]) > 0:
		v.Names, v.Told, v.First = r.meanings(i), false, r.before(i)+1
	}
	return r.Chain(v, i+1)
}

// meanings are what the variable at token i stands for.
func (r *reader) meanings(i int) []string {
	name := r.Tokens[i].Text
	list := r.names[name]
	if r.marks[i].own {
		return list
	}
	if _, declared := r.texts[name]; !declared && (name == "window" || name == "self" || name == "root" || name == "GLOBAL") {
		name = "." // for hosts other than Node.js
	}
	if name = global(name); slices.Contains(list, name) {
		return list
	}
	return append(list[:len(list):len(list)], name)
}

// report tells the use of a name. That something has a constructor is of no interest.
func (r *reader) report(s language.Span, name string, call bool) {
	switch {
	case name == "constructor" && !call:
	case name == ".":
		r.Use(s, "globalThis", call)
	default:
		r.Use(s, strings.TrimSuffix(name, "."), call)
	}
}

// member goes on to the member that token i names.
func (r *reader) member(v *lex.Value, i int) {
	t := &r.Tokens[i]
	if t.Text == "then" && slices.ContainsFunc(v.Names, func(of string) bool { return strings.HasSuffix(of, ".") }) {
		r.then(i+1, v.Names)
		v.Names = nil
	}
	if v.Told || len(v.Names) == 0 {
		v.Span = t.Span
	}
	v.Names, v.Told, v.End = members(v.Names, t.Text), false, t.End
}

// then binds the first parameter of the function that brackets at token i begin with to a module.
func (r *reader) then(i int, names []string) {
	for r.Is(i, "(", "async", "function", "*") || r.Kind(i) == lex.Name && r.Is(i+1, "(") {
		r.Step()
		i++
	}
	r.target(i, names, nil, 0)
}

// assign binds what an operand is assigned to that ends before token end.
func (r *reader) assign(v *lex.Value, end int) {
	r.assigned = false
	if len(v.Names) == 0 || !r.closes(end) && !r.Tokens[end].Line && !r.Is(end, "||", "??", ":") {
		return
	}
	sign := r.before(v.First)
	for n := 0; n < far && r.chooses(sign); n++ {
		r.Step() // it is one of several operands
		for sign--; n < far && sign >= 0 && !r.chooses(sign) && !r.Is(sign, "=", ",", ";", "(", "[", "{"); n++ {
			r.Step()
			if r.Partner[sign] >= 0 {
				sign = min(sign, r.Partner[sign])
			}
			sign--
		}
	}
	for r.Is(sign, "=", "||=", "&&=", "??=") {
		r.Step()
		to := sign - 1
		switch {
		case r.role(to) == pattern:
			to = r.Partner[to]
		case !r.isVariable(to) || r.isDot(to-1):
			return
		}
		r.assigned = true
		// What a name gets of itself would go on for ever.
		if r.Tokens[to].Text != r.Tokens[v.First].Text {
			r.target(to, v.Names, nil, 0)
		}
		sign = to - 1
	}
}

// escapes is what is computed where an operand goes that ends before token end, if it is not followed
// there: into an argument, a list, an object, a result.
func (r *reader) escapes(v *lex.Value, end int) (kind language.ComputedKind) {
	p := r.before(v.First)
	if r.assigned || p < 0 || !r.ends(end) && !r.Is(end, "||", "??", ":") {
		return ""
	}
	if n := len(r.Calls) - 1; n >= 0 && r.Calls[n].Open == p && slices.ContainsFunc(r.Calls[n].Names, reflective) {
		return ""
	}
	in := r.role(r.Outer[p+1])
	switch r.Tokens[p].Text {
	case "return", "yield", "throw", "default":
		if r.marks[p].plain {
			return ""
		}
	case "(", "[", "{", ",":
		if in != call && in != list && in != object && (in != group || r.ends(end)) {
			return ""
		}
	case "...", "=>":
		if in == pattern {
			return ""
		}
	case "=":
		if p == 0 || !r.marks[p-1].plain && r.role(p-1) != subscript {
			return ""
		}
	case ":":
		if in == pattern || r.role(p) == control {
			return ""
		}
	default:
		if !r.chooses(p) {
			return ""
		}
	}
	for _, name := range v.Names {
		switch {
		case importer(name):
			return language.ComputedImport
		case name == "process", name == "module", name == "." && !r.chooses(p):
			kind = language.ComputedName
		}
	}
	return kind
}

// item is the member that an index names.
func (r *reader) item(c *lex.Call) lex.Value {
	open, end := c.Open, r.Partner[c.Open]
	whole := r.SpanOf(open, end+1)
	key, ok := r.text([2]int{open + 1, end})
	if !ok && end == open+2 && r.Kind(open+1) == lex.Number {
		key, ok = r.Tokens[open+1].Text, true
	}
	if !ok {
		r.Tell(&c.Value, false)
		if slices.ContainsFunc(c.Names, sensitive) {
			r.Compute(whole, language.ComputedName)
		}
		return lex.Value{First: c.First, Span: whole, Told: true}
	}
	v := lex.Value{First: c.First, Span: whole, Names: members(c.Names, key)}
	if end > open+2 { // what else the brackets hold is reported where it is written
		v.End = v.Start + 1
	} else if !c.Told && len(c.Names) > 0 {
		v.Start = c.Start
	}
	return v
}

// member is a member of what has a name; it is empty where that is not known.
func member(of, name string) string {
	loads := of == "module" || strings.HasPrefix(of, "module.") || of == "require.main" || of == "process.mainModule"
	switch {
	case name == "constructor" && !loads:
		return name
	case of == "" || of == "constructor" && name != "call" && name != "apply" && name != "bind":
		return ""
	case of == ".":
		return global(name)
	case strings.HasSuffix(of, ".") && name == "default", len(of)+len(name) > lex.MaxName:
		return of
	case strings.HasSuffix(of, "."):
		return of + name
	case of != "Reflect" && (name == "call" || name == "apply" || name == "bind"):
		return of
	}
	return of + "." + name
}

// members are the members of what has one of names.
func members(of []string, name string) (list []string) {
	if len(of) == 0 {
		of = []string{""}
	}
	for _, of := range of {
		if m := member(of, name); m != "" && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// global is what a name stands for that a program does not declare.
func global(name string) string {
	if name == "globalThis" || name == "global" {
		return "."
	}
	return name
}

// sensitive tells of what a name stands for that its members are not to be taken by a computed name.
func sensitive(name string) bool {
	switch name {
	case ".", "process", "require", "module", "Reflect", "WebAssembly", "process.mainModule", "module.constructor":
		return true
	}
	return strings.HasSuffix(name, ".") && name[0] != '.'
}

var (
	// importers are functions that bring in the module that their argument names.
	importers = lex.Words("require import process.getBuiltinModule process.binding process._linkedBinding module._load module.constructor._load")
	// executors are functions that run their first argument as code, or their last one.
	executors = lex.Words("eval vm.runInThisContext vm.runInNewContext vm.runInContext vm.Script vm.SourceTextModule vm.compileFunction " +
		"Function constructor")
)

func importer(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	return importers()[name] || strings.HasSuffix(name, ".require") &&
		(head == "module" || head == "require" || head == "import" || strings.HasPrefix(name, "process.mainModule."))
}

// reflective tells of a function that gets a member by its name.
func reflective(name string) bool {
	return name == "Reflect.get" || name == "Object.getOwnPropertyDescriptor"
}

// result tells what a call does, and returns what its result stands for.
func (r *reader) result(c *lex.Call, name string) ([]string, bool) {
	if name == "constructor" && r.classes > 0 && r.Is(c.Open-3, "this") && r.Is(c.Open-4, "new") {
		return nil, true // in a class that makes another of its kind
	}
	args := c.Args
	if r.isDot(c.Open - 2) {
		switch r.Tokens[c.Open-1].Text {
		case "bind":
			if len(args) < 2 {
				return []string{name}, false
			}
			args = args[1:]
		case "call":
			args = args[min(1, len(args)):]
		case "apply":
			if len(args) > 1 && r.Partner[args[1][0]] == args[1][1]-1 {
				args = r.Args(args[1][0])
			}
		}
	}
	at := language.Span{Start: c.Start, End: max(r.Tokens[c.Open].End, r.At(r.Partner[c.Open]).End)}
	switch name := strings.TrimPrefix(name, "timers."); {
	case importer(name):
		return r.importing(name, at, args), false
	case name == "module.createRequire" || name == "module.createRequireFromPath":
		return []string{"require"}, false
	case name == "module.constructor" || name == "module.Module" || name == "module.":
		return []string{"module"}, false
	case name == "process" || name == "module" || name == ".":
		return []string{name}, false // what a function made of code returns
	case reflective(name):
		return r.reflected(c.Given, args), false
	case name == "worker_threads.Worker" && len(args) > 1:
		options := r.Tokens[args[1][0]:args[1][1]]
		r.Take(len(options))
		if !r.Is(args[1][0], "{") || slices.ContainsFunc(options, func(t lex.Token) bool { return t.Text == "eval" }) {
			return r.execute(name, at, args), false
		}
	case name == "setTimeout" || name == "setInterval" || name == "setImmediate":
		if len(args) > 0 && r.isText(args[0]) {
			return r.execute(name, at, args), false
		}
	case executors()[name], strings.HasPrefix(name, "module.") && strings.HasSuffix(name, "._compile"):
		return r.execute(name, at, args), false
	}
	return nil, false
}

// importing is a call of a function that brings in a module.
func (r *reader) importing(name string, at language.Span, args [][2]int) []string {
	if len(args) == 0 {
		return nil
	}
	text, ok := r.text(args[0])
	module := moduleName(text)
	if strings.HasPrefix(name, "process.") && strings.HasSuffix(strings.ToLower(name), "binding") {
		module = builtinOf(module)
	}
	switch code, holds := dataCode(text); {
	case !ok:
		r.Compute(at, language.ComputedImport)
		return nil
	case holds:
		// It lies behind the function's name, which has a place of its own.
		at.Start = at.End - 1
		r.Compute(at, language.ComputedCode)
		r.nested(code, at)
	default:
		r.Import(at, module)
	}
	return []string{module + "."}
}

// reflected is the member of objects that the second argument names.
func (r *reader) reflected(objects []string, args [][2]int) []string {
	if len(args) < 2 || len(objects) == 0 {
		return nil
	}
	at := r.SpanOf(args[1][0], args[1][1])
	key, ok := r.text(args[1])
	if !ok {
		if slices.ContainsFunc(objects, sensitive) {
			r.Compute(at, language.ComputedName)
		}
		return nil
	}
	v := lex.Value{Span: at, Names: members(objects, key)}
	if args[1][1] == args[1][0]+1 {
		r.Tell(&v, false)
	}
	return v.Names
}

// isText tells whether an argument may be code, and not a function.
func (r *reader) isText(arg [2]int) bool {
	for i := arg[0]; i < arg[1] && !r.Is(i, "=>", "function"); i = r.Skip(i) {
		r.Step()
		if r.Kind(i) == lex.String || r.Is(i, "+") {
			return true
		}
	}
	return false
}

// execute reads code that is run, and what names parameters before it; it tells where that is not known.
// It returns what simple code results in, whether it is run at once or called.
func (r *reader) execute(name string, at language.Span, args [][2]int) []string {
	if name != "Function" && name != "constructor" {
		args = args[:min(1, len(args))]
	}
	code, ok := "", true
	for i := 0; ok && i < len(args); i++ {
		r.Step()
		if code, ok = r.text(args[i]); ok {
			r.nested(code, r.Tokens[args[i][0]].Span)
		}
	}
	if !ok || name == "constructor" {
		r.Compute(at, language.ComputedCode)
	}
	switch result := strings.Trim(strings.TrimPrefix(strings.TrimSpace(code), "return"), " \t\n();"); {
	case !ok:
	case result == "this" || result == "globalThis" || result == "global":
		return []string{"."}
	case result == "process" || result == "require" || result == "module":
		return []string{result}
	}
	return nil
}
