package javascript

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

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

// An invocation is a call of one function.
type invocation struct {
	name   string
	args   [][2]int // the bounds of the arguments
	called language.Span
	open   int
}

// call reads a call of what callees has for token open, up to its last token.
func (r *reader) call(open, end int) {
	v, known := r.callees[open]
	if !known || v.names[0] == "constructor" && r.classes > 0 && r.Is(open-3, "this") && r.Is(open-4, "new") {
		return // in a class that makes another of its kind
	}
	c := invocation{open: open, called: r.SpanOf(r.begin[end], end+1)}
	if v.start >= 0 {
		c.called.Start = v.start
		r.use(language.Span{Start: v.start, End: v.end}, v.names, true)
	}
	method := ""
	if r.isMember(open - 1) {
		method = r.Tokens[open-1].Text
	}
	result := value{start: -1}
	for _, c.name = range v.names {
		c.args = [][2]int{{open, open + 1}} // a template
		if open < end {
			c.args = r.Args(open)
		}
		switch {
		case method == "bind" && len(c.args) < 2:
			result.names = append(result.names, c.name)
			continue
		case method == "call" || method == "bind":
			c.args = c.args[min(1, len(c.args)):]
		case method == "apply" && len(c.args) > 1:
			if list := c.args[1][0]; r.Partner[list] == c.args[1][1]-1 {
				c.args = r.Args(list)
			}
		}
		for _, name := range r.invoke(c) {
			if !slices.Contains(result.names, name) {
				result.names = append(result.names, name)
			}
		}
	}
	r.operand(result, end)
}

// invoke tells what a call does, and returns what its result stands for.
func (r *reader) invoke(c invocation) []string {
	switch name := strings.TrimPrefix(c.name, "timers."); {
	case importer(name):
		return r.importing(c)
	case name == "module.createRequire" || name == "module.createRequireFromPath":
		return []string{"require"}
	case name == "module.constructor" || name == "module.Module" || name == "module.":
		return []string{"module"}
	case name == "process" || name == "module" || name == ".":
		return []string{name} // what a function made of code returns
	case reflective(name):
		return r.reflected(c)
	case name == "worker_threads.Worker" && len(c.args) > 1:
		options := c.args[1]
		r.Take(options[1] - options[0])
		if !r.Is(options[0], "{") || slices.ContainsFunc(r.Tokens[options[0]:options[1]], func(t lex.Token) bool { return t.Text == "eval" }) {
			r.execute(c)
		}
	case name == "setTimeout" || name == "setInterval" || name == "setImmediate":
		if len(c.args) > 0 && r.isText(c.args[0]) {
			r.execute(c)
		}
	case executors()[name], strings.HasPrefix(name, "module.") && strings.HasSuffix(name, "._compile"):
		return r.execute(c)
	}
	return nil
}

// importing is a call of a function that brings in a module.
func (r *reader) importing(c invocation) []string {
	if len(c.args) == 0 {
		return nil
	}
	text, ok := r.constant(c.args[0][0], c.args[0][1])
	module := moduleName(text)
	if strings.HasPrefix(c.name, "process.") && strings.HasSuffix(strings.ToLower(c.name), "binding") {
		module = builtinOf(module)
	}
	switch code, holds := dataCode(text); {
	case !ok:
		r.compute(c.called, language.ComputedImport)
		return nil
	case module == "" || !r.tells:
	case holds:
		// It lies behind the function's name, which has a place of its own.
		at := language.Span{Start: c.called.End - 1, End: c.called.End}
		r.Compute(at, language.ComputedCode)
		r.nested(code, at)
	default:
		r.Import(c.called, module)
	}
	return []string{module + "."}
}

// reflected is the member of an object that the second argument names.
func (r *reader) reflected(c invocation) []string {
	objects := r.firsts[c.open]
	if len(c.args) < 2 || len(objects) == 0 {
		return nil
	}
	at := r.SpanOf(c.args[1][0], c.args[1][1])
	key, ok := r.constant(c.args[1][0], c.args[1][1])
	if !ok {
		if slices.ContainsFunc(objects, sensitive) {
			r.compute(at, language.ComputedName)
		}
		return nil
	}
	names := members(objects, key)
	if c.args[1][1] == c.args[1][0]+1 {
		r.use(at, names, false)
	}
	return names
}

// isText tells whether an argument may be code, and not a function.
func (r *reader) isText(arg [2]int) bool {
	for i := arg[0]; i < arg[1] && !r.Is(i, "=>") && !r.Is(i, "function"); i = r.Skip(i) {
		r.Step()
		if r.At(i).Kind == lex.String || r.Is(i, "+") {
			return true
		}
	}
	_, ok := r.constant(arg[0], arg[1])
	return ok
}

// execute reads code that is run, and what names parameters before it; it tells where that is not known.
// It returns what simple code results in, whether it is run at once or called.
func (r *reader) execute(c invocation) []string {
	if c.name != "Function" && c.name != "constructor" {
		c.args = c.args[:min(1, len(c.args))]
	}
	code, ok := "", true
	for i := 0; ok && i < len(c.args); i++ {
		r.Step()
		if code, ok = r.constant(c.args[i][0], c.args[i][1]); ok && r.tells {
			r.nested(code, r.Tokens[c.args[i][0]].Span)
		}
	}
	if !ok || c.name == "constructor" {
		r.compute(c.called, language.ComputedCode)
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
