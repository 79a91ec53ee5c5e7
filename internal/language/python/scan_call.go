package python

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// getter is what the name of a function begins with that gets the member, or the item, whose
// name follows in brackets: operator.attrgetter("x") returns one.
const getter = "operator.attrgetter("

// result handles a call of a function that is known by name, and returns what the call stands
// for. If instead is true, what it got is reported as used, and the function itself is not.
func (r *reader) result(c *call, name string) (got []string, instead bool) {
	switch actionOf(name) {
	case gets:
		return r.attribute(c, c.given, r.constant(r.arg(c, 1)))
	case imports:
		return r.imports(c, name), false
	case loads:
		r.Compute(c.at, language.ComputedImport)
	case executes:
		r.execute(c, r.arg(c, 0, "source"), r.read)
	case measures:
		for n := range c.args {
			if source := r.arg(c, n, "stmt", "setup"); r.constant(source).ok {
				r.execute(c, source, r.read)
			}
		}
	case interacts:
		r.Compute(c.at, language.ComputedCode)
	case commands, starts:
		if actionOf(name) == commands || r.hasShell(c) {
			r.execute(c, r.arg(c, 0, "command", "args", "cmd"), func(line string) { r.shell(line, 0) })
		}
	case sets:
		if name := r.constant(r.arg(c, 1)); name.ok {
			r.uses(r.members(c.given, name.text, name.at), name.at, false)
		}
	case picks, keys:
		if member := r.constant(r.arg(c, 0)); member.ok && len(member.text) < maxName {
			return []string{getter + member.text + ")"}, false
		} else if actionOf(name) == picks && len(c.args) > 0 {
			r.Compute(c.at, language.ComputedName)
		}
	case returns:
		return r.returned(c, name), false
	default:
		if path, ok := strings.CutPrefix(name, getter); ok {
			return r.picked(c, strings.TrimSuffix(path, ")")), true
		}
		n := strings.LastIndexByte(name, '.')
		switch of, method := name[:max(n, 0)], name[n+1:]; {
		case of != "" && method == "__getattribute__":
			return r.attribute(c, []string{of}, r.constant(r.arg(c, 0)))
		case isDictionary(of) && len(c.args) > 0 && (method == "get" || method == "pop" || method == "setdefault" || method == "__getitem__"):
			return r.item(c, of, r.constant(r.arg(c, 0))), false
		}
	}
	return nil, false
}

// attribute is what getattr gets.
func (r *reader) attribute(c *call, of []string, name literal) (got []string, instead bool) {
	if name.ok {
		return r.get(c, of, name.text, c.at)
	}
	if len(c.args) > 0 {
		r.unknown(c.at, of)
	}
	return nil, false
}

// get tells the use of a member that a call gets by its name, if it is one of something known.
func (r *reader) get(c *call, of []string, name string, at language.Span) (got []string, known bool) {
	called := r.Is(r.Partner[c.open]+1, "(")
	if introspective()[name] {
		return r.inner(of, name, at, called), true
	}
	got = r.members(of, name, at)
	r.uses(got, at, called)
	return got, len(got) > 0
}

// picked is what an operator.attrgetter or an operator.itemgetter gets of its argument.
func (r *reader) picked(c *call, path string) (all []string) {
	for _, of := range c.given {
		if isDictionary(of) {
			all = r.add(all, r.item(c, of, literal{text: path, at: c.at, ok: true})...)
			continue
		}
		got := []string{of}
		for name := range strings.SplitSeq(path, ".") {
			got = r.members(got, name, c.at)
		}
		r.uses(got, c.at, true)
		all = r.add(all, got...)
	}
	return all
}

// item is what a dictionary of names has under a key.
func (r *reader) item(c *call, of string, key literal) (got []string) {
	of = strings.TrimSuffix(of, ".__dict__")
	switch {
	case of == "sys.modules" && key.ok:
		return r.load(key)
	case of == "sys.modules":
		if !key.own {
			r.Compute(key.at, language.ComputedImport)
		}
		return nil
	case !key.ok:
		r.unknown(key.at, []string{of})
		return nil
	case of != "globals()" || introspective()[key.text]:
		got, _ = r.get(c, []string{of}, key.text, key.at)
		return got
	}
	got = r.meanings(key.text, -1)
	r.uses(got, key.at, r.Is(r.Partner[c.open]+1, "("))
	return got
}

// unknown tells of a member whose name is computed. One of builtins may be any of them.
func (r *reader) unknown(at language.Span, of []string) {
	r.Compute(at, language.ComputedName)
	if slices.Contains(of, "builtins") {
		r.Use(at, "__builtins__", false)
	}
}

// returned is what a function returns whose results always are the same.
func (r *reader) returned(c *call, name string) (all []string) {
	switch {
	case name == "importlib.reload":
		return c.given
	case name == "get_ipython":
		return []string{"get_ipython()"}
	case len(c.args) == 0:
		return []string{"globals()"}
	}
	for _, of := range c.given {
		all = r.add(all, r.join(of, "__dict__"))
	}
	return all
}

// imports tells the import of the module that a function brings in, and returns its name.
func (r *reader) imports(c *call, function string) []string {
	module := r.constant(r.arg(c, 0, "name", "fullname"))
	if module.ok && strings.HasPrefix(module.text, ".") {
		of := r.constant(r.arg(c, 1, "package"))
		module.ok, module.text = of.ok, of.text+module.text
	}
	if !module.ok {
		if len(c.args) > 0 {
			r.Compute(r.SpanOf(c.open, r.Partner[c.open]+1), language.ComputedImport)
		}
		return nil
	}
	got := r.load(module)
	if top, _, ok := strings.Cut(module.text, "."); ok && strings.HasSuffix(function, "__import__") {
		got = append(got, top)
	}
	return got
}

// load tells the import of a module, which may have a member behind a colon.
func (r *reader) load(module literal) []string {
	name, member, ok := strings.Cut(strings.TrimSpace(module.text), ":")
	r.Import(module.at, name)
	if ok {
		name = r.join(name, member)
		r.Use(module.at, name, false)
	}
	if len(name) >= maxName {
		return nil
	}
	return []string{name}
}

// execute reads what a call runs, if that is constant. What it binds is bound in the program too.
func (r *reader) execute(c *call, source []lex.Token, read func(string)) {
	if l := r.constant(source); l.ok {
		r.code(l.at, l.text, read)
	} else if len(c.args) > 0 {
		r.Compute(c.at, language.ComputedCode)
	}
}

// code reads the code in a string.
func (r *reader) code(at language.Span, source string, read func(string)) {
	switch {
	case !r.telling:
	case !r.budget.Take(len(source)):
		r.Compute(at, language.ComputedCode)
	default:
		r.Nested(at, func() { read(source) })
	}
}

// hasShell tells whether the arguments of subprocess.run and its like ask for a shell, or may.
func (r *reader) hasShell(c *call) bool {
	for n, a := range c.args {
		arg := r.Tokens[a[0]:a[1]]
		switch {
		case len(arg) == 0:
		case arg[0].Is("*") || n == 8:
			return true
		case len(arg) > 2 && arg[0].Is("shell") && arg[1].Is("="):
			return len(arg) > 3 || !arg[2].Is("False")
		}
	}
	return false
}

// arg is a call's argument: the nth, or one that has one of the names.
func (r *reader) arg(c *call, n int, names ...string) []lex.Token {
	for k, a := range c.args {
		arg := r.Tokens[a[0]:a[1]]
		switch {
		case len(arg) > 1 && arg[0].Kind == lex.Name && arg[1].Is("="):
			if slices.Contains(names, arg[0].Text) {
				return arg[2:]
			}
		case k == n:
			return arg
		}
	}
	return nil
}

// A literal is what tokens are if they are a string.
type literal struct {
	text string
	at   language.Span
	ok   bool
	own  bool // it is __name__, the name of the module itself
}

// constant is the string that tokens are if they are nothing but strings, one behind the other
// or with a + between them.
func (r *reader) constant(tokens []lex.Token) (l literal) {
	if len(tokens) == 0 {
		return l
	}
	l.at, l.own = tokens[0].Span, len(tokens) == 1 && tokens[0].Is("__name__")
	list := lex.Stream{Tokens: tokens}
	text, behind, ok := list.Constant(r.Meter, 0)
	l.text, l.ok = text, ok && behind == len(tokens)
	return l
}
