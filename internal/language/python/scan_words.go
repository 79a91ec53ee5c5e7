package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

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
	case "operator.attrgetter", "operator.methodcaller":
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
