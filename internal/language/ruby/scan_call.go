package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// An action is what a method does with its arguments.
type action uint8

const (
	imports action = iota + 1 // brings in a library
	exposes                   // makes something of methods by their names
	evals                     // runs code, when it is of those in codeOf
	// From here on, a method matters whatever object it is of.
	mentions  // nothing with arguments
	autoloads // brings in a library for a constant
	sends     // calls a method by its name
	takes     // is a method by its name
	constants // is a constant by its name
	runs      // runs code
	ofAny     = mentions
)

var actions = map[string]action{
	"require": imports, "load": imports, "require_relative": imports, "autoload": autoloads,
	"send": sends, "__send__": sends, "public_send": sends,
	"method": takes, "public_method": takes, "instance_method": takes, "public_instance_method": takes, "singleton_method": takes,
	"const_get":     constants,
	"instance_eval": runs, "class_eval": runs, "module_eval": runs, "eval": evals, "compile": evals, "new": evals,
	"public": exposes, "module_function": exposes, "private": exposes,
	"alias_method": mentions, "instance_variable_get": mentions, "class_exec": mentions, "const_source_location": mentions,
	"binding": mentions,
}

var (
	// codeOf are the methods that run code only as methods of these.
	codeOf = lex.Words("eval binding.eval TOPLEVEL_BINDING.eval RubyVM::InstructionSequence.eval RubyVM::InstructionSequence.compile " +
		"RubyVM::InstructionSequence.new")
	// hands are methods whose result, or whose block, gets what they are called of.
	hands = lex.Words("itself freeze dup clone then tap yield_self")
	// core are classes whose constants, by const_get, are those that there are without.
	core = lex.Words("Module Class String Symbol Array Hash Integer Float Struct Proc Range Comparable Enumerable")
	// keywords are those that are no names.
	keywords = lex.Words("true false nil end yield super defined? redo retry __FILE__ __LINE__ __method__ if unless while until and or not " +
		"return break next when in case then do else elsif begin ensure rescue for BEGIN END")
	// alone are methods that do something without arguments. The others, of those that matter,
	// fail without: there, the name of a variable is nothing else.
	alone = lex.Words("fork binding sleep")
	// parting are keywords that end an argument before them.
	parting = lex.Words("if unless while until and or rescue then do end in else elsif when ensure")
	// prefix are operators that an argument may begin with, maybePrefix those that do when no
	// white space is behind them.
	prefix      = lex.Words("-> ! ~ [")
	maybePrefix = lex.Words("* ** & - + ::")
)

// maxName bounds a name: longer ones are not put together.
const maxName = 256

// scoped is the constant of a module.
func scoped(module, name string) string {
	if module == "Object" || module == "Kernel" || module == "BasicObject" || module == "self" || len(module) > maxName {
		return name
	}
	return module + "::" + name
}

// qualified is the method of an object. Those of Kernel and Object need no object.
func qualified(of, method string) string {
	if of == "" || of == "self" || of == "Kernel" || of == "Object" || of == "TOPLEVEL_BINDING" && method != "eval" || len(of) > maxName {
		return method
	}
	return of + "." + method
}

// An invocation is a method that is called.
type invocation struct {
	of, method string
	use, whole language.Span // where its name is, and all of the call
	argument   int           // where the first one begins, or -1
}

// invoke tells of a call, and returns the name that its result has, or that of the method
// that it is.
func (r *reader) invoke(c invocation) (name string, method bool) {
	r.Use(c.use, qualified(c.of, c.method), true)
	for {
		r.Step()
		name = qualified(c.of, c.method)
		act := actions[c.method]
		if c.method == "binding" {
			return "binding", false
		}
		if act == exposes {
			r.exposed(c.argument)
		}
		if c.method == "alias_method" {
			_, behind, _ := r.constant(c.argument)
			r.exposed(r.behind(behind))
		}
		if act == autoloads || act == imports && name == c.method {
			r.imported(c, act)
		}
		if act == runs || codeOf()[name] {
			r.execute(c)
		}
		if act != sends && act != takes && act != constants || c.argument < 0 {
			return "", false
		}
		text, behind, ok := r.constant(c.argument)
		if !ok {
			r.Compute(c.whole, language.ComputedName)
			return "", false
		}
		switch act {
		case takes:
			name = qualified(c.of, text)
			r.named(c.argument, name, false)
			return name, true
		case constants:
			name = strings.TrimPrefix(strings.TrimPrefix(text, "::"), "Object::")
			if c.of != "" && !core()[c.of] {
				name = scoped(c.of, name)
			}
			r.named(c.argument, name, false)
			return name, false
		}
		r.named(c.argument, qualified(c.of, text), true)
		c.method, c.argument = text, r.behind(behind)
	}
}

// exposed tells of methods that are named by arguments from token i on.
func (r *reader) exposed(i int) {
	for i >= 0 {
		r.Step()
		text, behind, ok := r.constant(i)
		if !ok {
			return
		}
		r.named(i, text, false)
		i = r.behind(behind)
	}
}

// imported tells of a library that is brought in.
func (r *reader) imported(c invocation, act action) {
	if c.argument < 0 {
		return
	}
	text, behind, ok := r.constant(c.argument)
	if act == autoloads && ok {
		text, _, ok = r.constant(r.behind(behind))
	}
	if !ok {
		r.Compute(c.whole, language.ComputedImport)
		return
	}
	name := moduleName(text)
	if c.method == "require_relative" && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, ".") {
		name = "./" + name
	}
	r.Import(c.whole, name)
}

// execute reads code that is run, or tells that it is not known. A block is no such code.
func (r *reader) execute(c invocation) {
	if c.argument < 0 || r.At(c.argument).Is("&") {
		return
	}
	if text, _, ok := r.constant(c.argument); ok {
		r.nested(c.argument, text)
	} else {
		r.Compute(c.whole, language.ComputedCode)
	}
}

// bind finds what variables and constants stand for, the new names of methods, and which
// names are those of local variables. What a name stands for anywhere counts everywhere: this is
// one pass, and it is better to report too much.
func (r *reader) bind() {
	until := -1     // parameters are read up to here
	lined := false  // or to the end of the line
	stroke := false // or to the next stroke
	for i := range r.Tokens {
		t, p := &r.Tokens[i], r.At(i-1)
		switch {
		case t.Kind == lex.Newline || t.Is(";"):
			lined, stroke = false, false
		case t.Is("{") || t.Is("do"):
			lined = false
		case t.Is("->"):
			lined = true
		case t.Is("|"):
			stroke = !stroke && (p.Is("{") || p.Is("do"))
		case t.Is("def") && !r.isMember(i):
			open := i + 2
			if r.dot(open) {
				open += 2
			}
			if r.At(open).Is("(") {
				until = max(until, r.Partner[open])
			} else {
				lined = true
			}
		case t.Kind == lex.Punct && assigning()[t.Text] && p.Kind == lex.Name && !r.isMember(i-1):
			r.assigned(i)
		case t.Is("alias") && !r.isMember(i):
			r.renamed(i+1, i+2)
		case t.Is("alias_method"):
			first := r.argument(i + 1)
			if _, behind, ok := r.constant(first); ok {
				r.renamed(first, r.behind(behind))
			}
		case t.Kind == lex.Name && (i < until || lined || stroke || p.Is("=>") || p.Is("for") || p.Is("in")):
			r.locals[t.Text] = true
		}
	}
}

// assigned notes the names that get a value by the operator at token i, and what they stand
// for if that is nothing but a name.
func (r *reader) assigned(i int) {
	name := r.At(i - 1).Text
	r.locals[name] = true
	for at := i - 2; r.At(at).Is(",") && r.At(at-1).Kind == lex.Name; at -= 2 {
		r.Step()
		r.locals[r.At(at-1).Text] = true
	}
	first := i + 1
	if r.At(first).Is("::") {
		first++
	}
	t := r.At(first)
	if t.Kind != lex.Name || r.At(i-2).Is(",") {
		return
	}
	object := isConstant(t.Text) || t.Is("self") || t.Is("binding") || len(r.names[t.Text]) > 0
	if !object {
		return
	}
	c := lex.ReadChain(r.Meter, r.Tokens, first, "::")
	if next := r.At(c.Behind); r.dot(c.Behind) || next.Is("(") || next.Is("[") || next.Kind == lex.String {
		return
	}
	for _, of := range r.names.Of(c.Names[0]) {
		for _, member := range c.Names[1:] {
			of = scoped(of, member)
		}
		r.Bind(r.names, name, of)
	}
	r.bound[c.Behind-1] = true
}

// renamed notes that a method, named at token i, is the one named at token old.
func (r *reader) renamed(i, old int) {
	made, is := r.At(i), r.At(old)
	if made.Text == "" || is.Text == "" {
		return
	}
	for _, method := range r.methods.Of(is.Text) {
		r.Bind(r.methods, made.Text, method)
	}
}
