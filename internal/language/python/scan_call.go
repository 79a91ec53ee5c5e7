package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// call is what a call stands for, and tells what it does; next tells that its result is
// called at once.
func (s *scanner) call(l *link, a *arguments, next bool) meaning {
	m := l.m
	switch m.kind {
	case method:
		return s.method(m, a, next)
	case picker:
		if of := a.get(0, ""); of.kind == named || of.kind == space {
			return s.get(of, meaning{kind: text, text: m.text, at: m.at}, true)
		}
		return meaning{}
	case named:
	default:
		if l.last == "load_module" {
			return s.load(a.get(0, "fullname"), a)
		}
		return meaning{}
	}
	switch m.text {
	case "__import__", "importlib.__import__":
		got := s.load(a.get(0, "name"), a)
		if got.kind == named && !a.has(3, "fromlist") {
			got.text, _, _ = strings.Cut(got.text, ".")
		}
		return got
	case "importlib.import_module", "pkgutil.resolve_name", "pydoc.locate", "runpy.run_module", "imp.load_module", "imp.find_module",
		"importlib.util.find_spec", "importlib.find_loader", "pkgutil.get_loader", "pkgutil.find_loader", "test.support.import_helper.import_module":
		return s.load(a.get(0, "name"), a)
	case "importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader", "importlib.machinery.ExtensionFileLoader",
		"importlib.machinery.SourcelessFileLoader", "runpy.run_path", "imp.load_source", "imp.load_dynamic", "imp.load_compiled":
		s.compute(m.at, language.ComputedImport)
	case "importlib.reload":
		return a.get(0, "module")
	case "sys.modules.get", "sys.modules.pop", "sys.modules.setdefault", "sys.modules.__getitem__":
		return s.load(a.get(0, ""), a)
	case "exec", "eval", "compile":
		return s.execute(m, a)
	case "timeit.timeit", "timeit.repeat", "timeit.Timer", "cProfile.run", "profile.run", "pdb.run", "pdb.runeval", "doctest.debug_src":
		for n, name := range []string{"stmt", "setup"} {
			if src := a.get(n, name); src.kind == text {
				s.code(src.at, src.text)
			}
		}
	case "get_ipython":
		return meaning{kind: named, text: "get_ipython()"}
	case "get_ipython().system", "get_ipython().getoutput", "get_ipython().system_raw", "get_ipython().run_line_magic",
		"get_ipython().run_cell_magic", "get_ipython().magic", "get_ipython().run_cell", "get_ipython().ex", "get_ipython().ev":
		s.compute(m.at, language.ComputedCode)
	case "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "posix.system",
		"asyncio.create_subprocess_shell":
		s.command(a.get(0, "command"))
	case "subprocess.run", "subprocess.call", "subprocess.Popen", "subprocess.check_output", "subprocess.check_call":
		if a.has(9, "shell") {
			s.command(a.get(0, "args"))
		}
	case "getattr":
		return s.getattr(l, a, next)
	case "object.__getattribute__", "type.__getattribute__":
		return s.get(a.get(0, "self"), a.get(1, "name"), next)
	case "setattr", "delattr", "hasattr":
		s.rebinds = s.rebinds || m.text != "hasattr"
		if of := a.get(0, "obj"); of.kind == named && a.get(1, "name").kind == text {
			return s.get(of, a.get(1, "name"), false)
		}
		return meaning{}
	case "vars", "globals", "locals", "dir":
		s.rebinds = s.rebinds || m.text != "dir"
		if m.text == "dir" {
			return meaning{}
		}
		if a.count == 0 {
			return meaning{kind: space}
		}
		if of := a.get(0, ""); of.kind == named {
			return meaning{kind: space, text: of.text}
		}
	case "operator.attrgetter", "operator.methodcaller", "operator.itemgetter":
		return s.picker(m, a)
	default:
		return s.constant(m.text, a)
	}
	return meaning{}
}

// picker is what gets a member by its name.
func (s *scanner) picker(m meaning, a *arguments) meaning {
	name := a.get(0, "")
	switch {
	case name.kind == text:
		return meaning{kind: picker, text: name.text, at: name.at}
	case m.text != "operator.itemgetter":
		s.compute(m.at, language.ComputedName)
	}
	return meaning{}
}

// load is a module that a function brings in.
func (s *scanner) load(name meaning, a *arguments) meaning {
	if name.kind != text {
		if a.count > 0 || len(a.named) > 0 {
			s.compute(a.at, language.ComputedImport)
		}
		return meaning{}
	}
	module := strings.TrimSpace(name.text)
	if strings.HasPrefix(module, ".") {
		of := a.get(1, "package")
		if of.kind != text {
			return meaning{}
		}
		module = of.text + module
	}
	module, member, _ := strings.Cut(module, ":")
	if name.at.Start < a.at.Start && a.at.End > 0 { // it is a constant that has a name
		name.at = a.at
	}
	s.imports(name.at, module)
	if member != "" {
		module = join(module, member)
		s.use(name.at, module, false)
	}
	return meaning{kind: named, text: module}
}
