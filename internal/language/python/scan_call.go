package python

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// getter is what the name of a function begins with that gets the member whose name follows in
// brackets: operator.attrgetter("x") returns one.
const getter = "operator.attrgetter("

// report reports the use of a name, unless that is one that only results have here.
func (r *reader) report(at language.Span, name string, call bool) {
	top, _, _ := strings.Cut(name, ".")
	r.rebinds = r.rebinds || rebinding()[name] || rebinding()[top]
	if !strings.HasPrefix(name, "globals()") && !strings.HasPrefix(name, getter) {
		r.Use(at, name, call)
	}
}

// escapes is what a function may do that is a value and is not called.
func (r *reader) escapes(v *lex.Value, _ int) (kind language.ComputedKind) {
	for _, name := range v.Names {
		switch actionOf(name) {
		case imports, loads:
			kind = language.ComputedImport
		case executes:
			return language.ComputedCode
		case gets, picks:
			kind = language.ComputedName
		}
	}
	return kind
}

// assign binds the names that are assigned to by nothing but an expression that ends before token end.
func (r *reader) assign(v *lex.Value, end int) {
	if r.Is(v.First-1, ":=") {
		r.alias(v.First-2, v.Names)
		return
	}
	if !r.ends(end) {
		return
	}
	sign := v.First - 1
	for ; r.At(sign).Role&alone != 0; sign -= 2 {
		r.Step()
		r.alias(sign-1, v.Names)
	}
	if r.At(sign).Role&typed != 0 {
		r.alias(r.statement, v.Names)
	}
}

// alias binds the name at token i to what it may stand for.
func (r *reader) alias(i int, of []string) {
	for _, o := range of {
		r.Bind(r.names, r.At(i).Text, o)
	}
}

// member goes on to the member that is named by token i.
func (r *reader) member(v *lex.Value, i int) {
	t := &r.Tokens[i]
	builtin := t.Text == "__import__" && (slices.Contains(v.Names, "builtins") || slices.Contains(v.Names, "importlib"))
	switch {
	case t.Text == "__call__":
		return
	case t.Text == "load_module" && len(v.Names) == 0: // of any loader
		v.Names, v.Span, v.Told = []string{"imp.load_module"}, t.Span, true
		return
	case introspective()[t.Text] && !builtin:
		r.Tell(v, false)
		v.Names, v.Span = r.inner(v.Names, t.Text, t.Span, r.Is(i+1, "(")), t.Span
		return
	case v.Told || len(v.Names) == 0:
		v.Span = t.Span
	}
	v.Names = r.members(v.Names, t.Text, t.Span)
	v.End, v.Told = t.End, false
}

// members are the members of that name which modules or objects have. A module that another
// one has as a member is imported.
func (r *reader) members(of []string, name string, at language.Span) (all []string) {
	shared := sharedModule(name)
	for _, o := range of {
		top, _, _ := strings.Cut(o, ".")
		switch {
		case shared != "" && o != shared && o != "builtins" && !builtins()[top]:
			r.Import(at, shared)
			o = shared
		case o == "builtins" && name != "__dict__":
			o = name // builtins have bare names
		default:
			o = r.Join(o, ".", name)
		}
		all = r.Add(all, o)
	}
	return all
}

// inner reports the use of an introspective member, and returns what that may stand for. A
// dictionary of names has the name of what returns it: "globals()", "os.__dict__".
func (r *reader) inner(of []string, name string, at language.Span, called bool) (all []string) {
	r.report(at, name, called)
	switch name {
	case "__builtins__", "f_builtins":
		return []string{"builtins"}
	case "__globals__", "f_globals", "f_locals":
		return []string{"globals()"}
	case "__import__":
		return []string{name}
	case "__dict__", "__getattribute__", "__getattr__":
		return r.members(of, name, at)
	case "__self__":
		if slices.ContainsFunc(of, func(o string) bool { return builtins()[o] }) {
			return []string{"builtins"}
		}
	}
	return nil
}

// index is what an index has.
func (r *reader) index(c *lex.Call) lex.Value {
	r.Tell(&c.Value, false)
	v := lex.Value{First: c.First, Span: c.Span, Told: true}
	for _, name := range c.Names {
		if isDictionary(name) || name == "builtins" {
			v.Names = r.Add(v.Names, r.item(c, name, [2]int{c.Open + 1, r.Partner[c.Open]})...)
		}
	}
	return v
}

// isDictionary tells whether a name is that of a dictionary of names.
func isDictionary(name string) bool {
	return name == "globals()" || name == "sys.modules" || strings.HasSuffix(name, ".__dict__")
}

// item is what a dictionary of names has under a key.
func (r *reader) item(c *lex.Call, of string, arg [2]int) []string {
	key, ok := r.Text(arg)
	return r.keyed(c, of, key, ok, r.SpanOf(arg[0], arg[0]+1))
}

// keyed is what it has under a key that is known, or not.
func (r *reader) keyed(c *lex.Call, of, key string, ok bool, at language.Span) []string {
	switch of = strings.TrimSuffix(of, ".__dict__"); {
	case of == "sys.modules" && ok:
		return r.load(key, at)
	case of == "sys.modules":
		if r.source[at.Start:at.End] != "__name__" {
			r.Compute(at, language.ComputedImport)
		}
		return nil
	case !ok:
		r.unknown(at, []string{of})
		return nil
	case of != "globals()" || introspective()[key]:
		got, _ := r.get(c, []string{of}, key, at)
		return got
	}
	got := r.meanings(key, -1)
	r.Tell(&lex.Value{Span: at, Names: got}, r.Is(r.Partner[c.Open]+1, "("))
	return got
}

// get reports the use of a member that a call gets by its name, if it is one of something known.
func (r *reader) get(c *lex.Call, of []string, name string, at language.Span) (got []string, known bool) {
	called := r.Is(r.Partner[c.Open]+1, "(")
	if introspective()[name] {
		return r.inner(of, name, at, called), true
	}
	got = r.members(of, name, at)
	r.Tell(&lex.Value{Span: at, Names: got}, called)
	return got, len(got) > 0
}

// unknown reports a member whose name is computed. One of builtins may be any of them.
func (r *reader) unknown(at language.Span, of []string) {
	r.Compute(at, language.ComputedName)
	if slices.Contains(of, "builtins") {
		r.Use(at, "__builtins__", false)
	}
}

// result reads the call of a function that is known by name, and returns what the call stands
// for. If instead is true, what it got is reported as used, and the function itself is not.
func (r *reader) result(c *lex.Call, name string) (got []string, instead bool) {
	action := actionOf(name)
	n := strings.LastIndexByte(name, '.')
	switch of, method := name[:max(n, 0)], name[n+1:]; {
	case action == imports:
		return r.imports(c, name), false
	case action == loads:
		r.Compute(c.Span, language.ComputedImport)
	case action == interacts:
		r.Compute(c.Span, language.ComputedCode)
	case action == executes:
		r.execute(c, r.read, 0, "source")
	case action == measures:
		for n := range c.Args {
			if source, ok := r.arg(c, n, "stmt", "setup"); ok && r.Kind(source[0]) == lex.String {
				r.execute(c, r.read, n, "stmt", "setup")
			}
		}
	case action == commands, action == starts && r.hasShell(c):
		r.execute(c, func(line string) { r.shell(line, 0) }, 0, "command", "args", "cmd")
	case action == sets:
		if arg, ok := r.arg(c, 1); ok {
			if name, ok := r.Text(arg); ok {
				at := r.SpanOf(arg[0], arg[0]+1)
				r.Tell(&lex.Value{Span: at, Names: r.members(c.Given, name, at)}, false)
			}
		}
	case action == gets, method == "__getattribute__":
		given, at := c.Given, 1
		if action != gets {
			given, at = []string{of}, 0
		}
		arg, ok := r.arg(c, at)
		if name, constant := r.Text(arg); ok && constant {
			return r.get(c, given, name, c.Span)
		}
		if len(c.Args) > 0 {
			r.unknown(c.Span, given)
		}
	case action == picks:
		if arg, ok := r.arg(c, 0); ok {
			if member, ok := r.Text(arg); ok {
				return []string{r.Join(getter, member, ")")}, false
			}
			if name != "operator.itemgetter" {
				r.Compute(c.Span, language.ComputedName)
			}
		}
	case strings.HasPrefix(name, getter):
		return r.picked(c, strings.TrimSuffix(name[len(getter):], ")")), true
	case name == "importlib.reload":
		return c.Given, false
	case name == "get_ipython":
		return []string{"get_ipython()"}, false
	case name == "globals", name == "locals", name == "vars" && len(c.Args) == 0:
		return []string{"globals()"}, false
	case name == "vars":
		return r.members(c.Given, "__dict__", c.Span), false
	case isDictionary(of) && len(c.Args) > 0 && (method == "get" || method == "pop" || method == "setdefault" || method == "__getitem__"):
		return r.item(c, of, c.Args[0]), false
	}
	return nil, false
}

// picked is what an operator.attrgetter or an operator.itemgetter gets of its argument.
func (r *reader) picked(c *lex.Call, path string) []string {
	got := c.Given
	if len(got) == 1 && isDictionary(got[0]) {
		return r.keyed(c, got[0], path, true, c.Span)
	}
	for name := range strings.SplitSeq(path, ".") {
		got = r.members(got, name, c.Span)
	}
	r.Tell(&lex.Value{Span: c.Span, Names: got}, true)
	return got
}

// imports reports the import of the module that a function brings in, and returns its name.
func (r *reader) imports(c *lex.Call, function string) []string {
	arg, given := r.arg(c, 0, "name", "fullname")
	module, ok := r.Text(arg)
	if ok = ok && given; ok && strings.HasPrefix(module, ".") {
		of, _ := r.arg(c, 1, "package")
		var parent string
		parent, ok = r.Text(of)
		module = parent + module
	}
	if !ok {
		if len(c.Args) > 0 {
			r.Compute(r.SpanOf(c.Open, r.Partner[c.Open]+1), language.ComputedImport)
		}
		return nil
	}
	got := r.load(module, r.Tokens[arg[0]].Span)
	if top, _, ok := strings.Cut(module, "."); ok && strings.HasSuffix(function, "__import__") {
		got = append(got, top)
	}
	return got
}

// load reports the import of a module, which may have a member behind a colon.
func (r *reader) load(module string, at language.Span) []string {
	name, member, ok := strings.Cut(strings.TrimSpace(module), ":")
	r.Import(at, name)
	if ok {
		name = r.Join(name, ".", member)
		r.Use(at, name, false)
	}
	return r.Add(nil, r.Join(name, "", ""))
}

// execute reads what a call runs, if that is constant. What it binds is bound in the program too.
func (r *reader) execute(c *lex.Call, read func(string), n int, names ...string) {
	arg, given := r.arg(c, n, names...)
	if source, ok := r.Text(arg); ok && given {
		r.code(r.Tokens[arg[0]].Span, source, read)
	} else if len(c.Args) > 0 {
		r.Compute(c.Span, language.ComputedCode)
	}
}

// code reads the code in a string.
func (r *reader) code(at language.Span, source string, read func(string)) {
	switch {
	case r.Binding:
	case !r.budget.Take(len(source)):
		r.Compute(at, language.ComputedCode)
	default:
		r.Nested(at, func() { read(source) })
	}
}

// hasShell tells whether the arguments of subprocess.run and its like ask for a shell, or may.
func (r *reader) hasShell(c *lex.Call) bool {
	for n, a := range c.Args {
		if r.Is(a[0], "*") || n == 8 {
			return true
		}
		if r.Is(a[0], "shell") && r.Is(a[0]+1, "=") {
			return a[1] > a[0]+3 || !r.Is(a[0]+2, "False")
		}
	}
	return false
}

// arg is a call's argument: the nth, or one that has one of the names.
func (r *reader) arg(c *lex.Call, n int, names ...string) (arg [2]int, ok bool) {
	for k, a := range c.Args {
		switch {
		case r.Kind(a[0]) == lex.Name && r.Is(a[0]+1, "="):
			if slices.Contains(names, r.Tokens[a[0]].Text) {
				return [2]int{a[0] + 2, a[1]}, a[1] > a[0]+2
			}
		case k == n:
			return a, a[1] > a[0]
		}
	}
	return arg, false
}

// An action is what a function does that is called, or a magic.
type action uint8

const (
	imports   action = iota + 1 // brings in the module that its first argument names
	loads                       // brings in a module from a place that is not looked at
	executes                    // runs the code that is its first argument
	measures                    // runs the code in any of its arguments
	interacts                   // runs code that is not looked at
	commands                    // runs its first argument in a shell
	starts                      // starts a program, in a shell if it is asked to
	gets                        // gets the member of its first argument that its second names
	sets                        // does something else with that member
	picks                       // returns a function that gets the member that is named
	keeps                       // writes or shows what it is given
)

// actionOf is what the function of that name does.
func actionOf(name string) action {
	switch name {
	case "__import__", "importlib.__import__", "importlib.import_module", "importlib.util.find_spec", "importlib.find_loader", "pkgutil.resolve_name",
		"pkgutil.get_loader", "pkgutil.find_loader", "pydoc.locate", "runpy.run_module", "imp.load_module", "imp.find_module",
		"test.support.import_helper.import_module":
		return imports
	case "importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader", "importlib.machinery.ExtensionFileLoader",
		"importlib.machinery.SourcelessFileLoader", "runpy.run_path", "imp.load_source", "imp.load_dynamic", "imp.load_compiled":
		return loads
	case "exec", "eval", "compile":
		return executes
	case "timeit.timeit", "timeit.repeat", "timeit.Timer", "cProfile.run", "profile.run", "pdb.run", "pdb.runeval", "doctest.debug_src":
		return measures
	case "get_ipython().system", "get_ipython().getoutput", "get_ipython().system_raw", "get_ipython().run_line_magic",
		"get_ipython().run_cell_magic", "get_ipython().magic", "get_ipython().run_cell", "get_ipython().ex", "get_ipython().ev":
		return interacts
	case "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "posix.system", "asyncio.create_subprocess_shell":
		return commands
	case "subprocess.run", "subprocess.call", "subprocess.Popen", "subprocess.check_output", "subprocess.check_call":
		return starts
	case "getattr", "object.__getattribute__", "type.__getattribute__":
		return gets
	case "setattr", "delattr", "hasattr":
		return sets
	case "operator.attrgetter", "operator.methodcaller", "operator.itemgetter":
		return picks
	}
	return 0
}

var (
	keywords = lex.Words("False None True and as assert async await break class continue def del elif else except finally for from global if import " +
		"in is lambda nonlocal not or pass raise return try while with yield")
	// builtins are the functions and types that are there without an import.
	builtins = lex.Words("__import__ __build_class__ abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod " +
		"compile complex copyright credits delattr dict dir display divmod enumerate eval exec exit filter float format frozenset get_ipython " +
		"getattr globals hasattr hash help hex id input int isinstance issubclass iter len license list locals map max memoryview min next " +
		"object oct open ord pow print property quit range repr reversed round set setattr slice sorted staticmethod str sum super tuple type " +
		"vars zip")
	// everywhere are names that any program has, and that say nothing.
	everywhere = lex.Words("__name__ __file__ __doc__ __package__ __path__ __all__ __version__ __class__ _ self cls")
	// introspective are the members that lead from an object to what made it or runs it.
	introspective = lex.Words("__subclasses__ __globals__ __builtins__ __code__ __mro__ __bases__ __base__ __class__ __dict__ __getattribute__ " +
		"__getattr__ __closure__ __func__ __self__ __wrapped__ __loader__ __spec__ __reduce__ __reduce_ex__ __import__ __defaults__ " +
		"__kwdefaults__ __subclasshook__ __init_subclass__ f_globals f_builtins f_locals f_back f_code tb_frame gi_frame gi_code cr_frame " +
		"cr_code ag_frame ag_code mro")
	// rebinding are names by which a program may bind others without a statement.
	rebinding = lex.Words("exec eval compile setattr delattr vars globals locals sys.modules __main__ __dict__ __globals__ f_globals f_locals")
	// shared are modules that others commonly have as a member.
	shared = lex.Words("os sys subprocess shutil socket ctypes builtins importlib pickle marshal posix")
	// withoutModules are modules of Python's own that have no others below them.
	withoutModules = lex.Words("os sys subprocess shutil socket pickle marshal re math random time datetime io itertools functools operator " +
		"typing dataclasses pathlib tempfile threading string copy builtins __future__ enum abc contextlib types inspect struct glob platform " +
		"pty posix signal select ssl webbrowser getpass base64 codecs code runpy pkgutil collections")
)

// sharedModule is the module that a member of that name probably is: "os", or "_os" as well.
func sharedModule(name string) string {
	if name = strings.TrimPrefix(name, "_"); shared()[name] {
		return name
	}
	return ""
}
