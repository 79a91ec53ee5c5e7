package security

// shells are ways to hand a line to a shell.
func shells() concern {
	return concern{
		about: "it runs a line in a shell",
		names: map[string]string{
			"python":     "os.system os.popen posix.system nt.system subprocess.getoutput subprocess.getstatusoutput asyncio.create_subprocess_shell commands.getoutput pty.spawn",
			"javascript": "child_process.exec child_process.execSync",
			"java":       "java.lang.Runtime.exec",
			"cpp":        "system popen _popen _wsystem ShellExecute ShellExecuteA ShellExecuteW WinExec",
			"r":          "system system2 shell shell.exec pipe",
			"ruby":       "system exec spawn ` IO.popen Kernel.system Kernel.exec Kernel.spawn Process.spawn Process.exec PTY.spawn",
			"bash":       "eval bash sh dash zsh ksh csh tcsh fish",
			"perl":       "system exec ` qx readpipe CORE::system CORE::exec open2 open3 IPC::Open2::open2 IPC::Open3::open3",
			"php":        "system exec shell_exec passthru popen proc_open pcntl_exec `",
			"lua":        "os.execute io.popen",
			"julia":      "run pipeline Base.run Base.pipeline",
			"kotlin":     "Runtime.getRuntime java.lang.Runtime.getRuntime",
			"csharp":     "Process.Start System.Diagnostics.Process.Start",
		},
		modules: map[string]string{"r": "sys processx", "ruby": "open3 pty"},
		patterns: []Pattern{
			{Pattern: `\bopen\b[^;\n]*["'][ \t]*(\||-\|)|\bopen\b[^;\n]*\|[ \t]*["']`, Languages: []string{"perl"}},
			{Pattern: `\bCommand\s*::\s*new\s*\(\s*"(/\S*/)?(ba|da|z|k|c)?sh"`, Languages: []string{"rust"}},
			{Pattern: `(?m)^[ \t]*\.(shell|system)\b`, Languages: []string{"sql"}},
			{Pattern: `(?m)^[ \t]*\.(import|open|read|once|output)\b[^\n]*\|`, Languages: []string{"sql"}},
			{Pattern: `os/exec\.Command(Context)?\s*\([^)\n]*["` + "`" + `](/\S*/)?(ba|da|z|k|c)?sh["` + "`" + `]`, Languages: []string{"go"}},
			{Pattern: `\bopen\s*\(?\s*["']\|`, Languages: []string{"ruby"}},
			{Pattern: `java\.lang\.Runtime\.getRuntime\s*[^\s(]`, Languages: []string{"java"}},
			{Pattern: `subprocess\.\w+\s*\([^\n]*\bshell\s*=\s*True`, Languages: []string{"python"}},
		},
	}
}

// processes are ways to start and to stop other programs.
func processes() concern {
	return concern{
		about: "it starts or signals other processes",
		modules: map[string]string{
			"python":     "subprocess multiprocessing pty pexpect sh plumbum fabric invoke _posixsubprocess _winapi concurrent.futures.process",
			"javascript": "child_process cluster execa shelljs cross-spawn node-pty",
			"java":       "java.lang.ProcessBuilder java.lang.ProcessHandle java.awt.Desktop org.apache.commons.exec",
			"cpp":        "spawn.h boost/process boost/process.hpp",
			"go":         "os/exec plugin",
			"r":          "parallel callr future",
			"ruby":       "childprocess",
			"perl":       "IPC::Open2 IPC::Open3 IPC::Run IPC::Cmd Proc threads forks",
			"lua":        "posix luaposix lanes",
			"rust":       "std::process::Command libc nix rustix",
			"julia":      "Distributed",
			"kotlin":     "java.lang.ProcessBuilder java.lang.ProcessHandle java.awt.Desktop",
		},
		names: map[string]string{
			"python": "os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe " +
				"os.spawnv os.spawnve os.spawnvp os.spawnvpe os.fork os.forkpty os.posix_spawn os.posix_spawnp os.startfile os.kill os.killpg posix.* " +
				"asyncio.create_subprocess_exec concurrent.futures.ProcessPoolExecutor signal.pthread_kill loop.subprocess_exec",
			"javascript": "child_process.* cluster.* process.kill process.abort Deno.run Deno.Command Bun.spawn Bun.spawnSync Bun.$",
			"java":       "java.lang.ProcessBuilder java.lang.ProcessBuilder.* java.lang.ProcessHandle java.lang.ProcessHandle.* java.lang.Runtime.halt",
			"cpp": "execl execlp execle execv execvp execvpe execve execveat fexecve fork vfork clone clone3 posix_spawn posix_spawnp kill killpg tgkill " +
				"CreateProcess CreateProcessA CreateProcessW TerminateProcess _spawnl _spawnv _execl _execv",
			"go": "os.StartProcess os.FindProcess syscall.Exec syscall.ForkExec syscall.StartProcess syscall.Kill os/exec.*",
			"r":  "parallel::* tools::pskill pskill mcfork mclapply makeCluster",
			"ruby": "fork Kernel.fork Process.fork Process.kill Process.daemon Process.detach Open3.* PTY.* Kernel.syscall " +
				"trap Kernel.trap",
			"bash": "python python2 python3 perl ruby node php lua Rscript java gcc g++ cc make nohup setsid disown at batch crontab " +
				"kill killall pkill xterm screen tmux script expect parallel exec",
			"perl":   "fork kill CORE::fork CORE::kill",
			"php":    "pcntl_fork pcntl_signal posix_kill proc_terminate proc_nice",
			"rust":   "std::process::Command process::Command Command std::process::Command::* process::Command::* Command::* std::process::abort",
			"julia":  "kill addprocs detach",
			"kotlin": "ProcessBuilder ProcessHandle.* java.lang.ProcessBuilder java.lang.ProcessHandle.*",
			"csharp": "Process Process.* ProcessStartInfo System.Diagnostics.Process System.Diagnostics.Process.* System.Diagnostics.ProcessStartInfo Environment.FailFast",
		},
		patterns: []Pattern{
			{Pattern: `[\w:]+\s*\(\)\s*\{[^{}]*\|[^{}|]*&[^{}&]*\}`, Description: "it is a fork bomb", Languages: []string{"bash"}},
			{Pattern: `\bawk\b[^\n]*\bsystem\s*\(`, Languages: []string{"bash"}, In: InAll},
			{Pattern: `\bfind\b[^\n|;]*-(exec|execdir|ok|okdir)\b`, Languages: []string{"bash"}},
		},
	}
}

// evaluation is code that is made when a program runs.
func evaluation() concern {
	return concern{
		about: "it executes code that it makes or loads itself",
		modules: map[string]string{
			"python":     "code codeop runpy",
			"javascript": "vm vm2 isolated-vm",
			"java":       "javax.script javax.tools jdk.jshell groovy.lang bsh org.mozilla.javascript org.graalvm.polyglot",
			"go":         "github.com/traefik/yaegi github.com/dop251/goja github.com/robertkrimen/otto",
			"r":          "reticulate V8 rJava",
			"perl":       "Safe",
			"kotlin":     "javax.script javax.tools jdk.jshell kotlin.script",
			"csharp":     "Microsoft.CSharp System.CodeDom System.Reflection.Emit Mono.CSharp",
		},
		names: map[string]string{
			"python":     "eval exec compile execfile __import__ imp.load_source importlib.util.spec_from_file_location importlib.machinery.SourceFileLoader types.CodeType types.FunctionType",
			"javascript": "eval Function vm.* constructor module.constructor._load module._compile process.mainModule.require",
			"java":       "java.lang.ClassLoader java.lang.ClassLoader.* java.net.URLClassLoader java.lang.Class.forName java.lang.invoke.MethodHandles.Lookup.defineClass",
			"r":          "source sys.source evalq eval.parent str2lang str2expression",
			"ruby": "eval Kernel.eval instance_eval class_eval module_eval binding.eval Binding.eval binding load Kernel.load RubyVM.* " +
				"RubyVM::InstructionSequence.* RubyVM::InstructionSequence instance_exec class_exec TOPLEVEL_BINDING TOPLEVEL_BINDING.* ERB.new",
			"bash":   "source . enable",
			"perl":   "eval evalbytes",
			"php":    "eval assert create_function call_user_func call_user_func_array unserialize",
			"lua":    "load loadstring loadfile dofile",
			"julia":  "eval include_string Meta.parse Core.eval Base.eval",
			"kotlin": "Class.forName java.lang.Class.forName ClassLoader URLClassLoader",
			"csharp": "Assembly.Load Assembly.LoadFrom Assembly.LoadFile Activator.CreateInstance CSharpCodeProvider",
		},
		patterns: []Pattern{
			{Pattern: `\beval\s*\(\s*(base::)?(parse|str2lang|str2expression)\s*\(`, Languages: []string{"r"}},
			{Pattern: `\bparse\s*\(\s*text\s*=`, Languages: []string{"r"}},
			{Pattern: `\.loadClass\s*\(|\.defineClass\s*\(`, Languages: []string{"java"}},
			{Pattern: `\|\s*(sudo\s+)?(/\S*/)?(ba|da|z|k)?sh\b`, Languages: []string{"bash"}},
		},
	}
}

// native is code beyond the language's own rules: machine code, raw memory, and means to
// reach what the language hides.
func native() concern {
	return concern{
		about: "it reaches native code, raw memory or what the language hides",
		modules: map[string]string{
			"python":     "ctypes _ctypes cffi mmap gc _imp resource fcntl",
			"javascript": "ffi-napi ffi koffi worker_threads inspector v8 wasi repl node-gyp bindings",
			"java": "java.lang.foreign java.lang.reflect java.lang.invoke java.lang.instrument sun.misc sun.reflect jdk.internal com.sun.jna com.sun.tools.attach " +
				"jnr.ffi",
			"cpp":    "dlfcn.h sys/mman.h sys/ptrace.h sys/syscall.h syscall.h linux windows.h jni.h Python.h",
			"go":     "unsafe syscall C golang.org/x/sys plugin runtime/cgo internal",
			"r":      "Rcpp inline cpp11 tcltk",
			"ruby":   "fiddle ffi dl win32ole win32api objspace inline",
			"perl":   "DynaLoader XSLoader Inline FFI",
			"php":    "ffi",
			"lua":    "ffi debug",
			"rust":   "std::os std::arch core::arch libloading libc",
			"julia":  "Libdl",
			"kotlin": "sun.misc java.lang.reflect java.lang.foreign java.lang.invoke kotlin.reflect com.sun.jna",
			"csharp": "System.Runtime.InteropServices System.Reflection",
		},
		names: map[string]string{
			"python": "__subclasses__ __globals__ __builtins__ __code__ __mro__ __bases__ __base__ __closure__ __reduce__ __reduce_ex__ __loader__ " +
				"gi_frame f_globals f_builtins f_locals cr_frame tb_frame sys._getframe sys._current_frames sys.settrace sys.setprofile sys.modules " +
				"sys.meta_path sys.path_hooks",
			"javascript": "process.binding process._linkedBinding process.dlopen WebAssembly WebAssembly.* __proto__ process.mainModule process.getBuiltinModule",
			"java":       "java.lang.System.load java.lang.System.loadLibrary java.lang.Runtime.load java.lang.Runtime.loadLibrary native",
			"cpp":        "asm __asm__ __asm dlopen dlsym dlmopen mmap mprotect syscall ptrace process_vm_readv process_vm_writev LoadLibrary LoadLibraryA GetProcAddress VirtualAlloc",
			"go":         "//go:linkname plugin.Open unsafe.*",
			"r":          "dyn.load library.dynam .C .Call .External .External2 .Fortran .Internal .Primitive getNativeSymbolInfo unlockBinding assignInNamespace reg.finalizer",
			"ruby":       "Fiddle.* Fiddle::* ObjectSpace.* syscall TracePoint.* set_trace_func",
			"bash":       "gdb strace ltrace ldd insmod modprobe rmmod",
			"perl":       "syscall dump",
			"php":        "dl ffi::*",
			"lua":        "debug.* package.loadlib",
			"rust":       "unsafe extern asm std::mem::transmute mem::transmute",
			"julia":      "ccall cglobal unsafe_load unsafe_wrap unsafe_pointer_to_objref dlopen Libdl.*",
			"kotlin":     "external System.load System.loadLibrary",
			"csharp":     "unsafe extern DllImport Marshal.*",
			"sql":        "load_extension fts3_tokenizer",
		},
		patterns: []Pattern{
			{Pattern: `(?m)^[ \t]*\.load\b`, Languages: []string{"sql"}},
			{Pattern: `\{[^{}]*\.__\w+__`, Languages: []string{"python"}, In: InStrings},
			{Pattern: `\bLD_(PRELOAD|LIBRARY_PATH|AUDIT)\s*=`, Languages: []string{"bash"}},
			{Pattern: `\.setAccessible\s*\(|\.getDeclared(Method|Field|Constructor)s?\s*\(`, Languages: []string{"java"}},
			{Pattern: `\.getMethods?\s*\([^\n]*\.invoke\s*\(`, Languages: []string{"java"}},
		},
	}
}

// serialized are formats whose reading executes what they say.
func serialized() concern {
	return concern{
		about: "reading it executes what its author wrote",
		modules: map[string]string{
			"python":     "pickle _pickle cPickle marshal shelve dill cloudpickle jsonpickle",
			"javascript": "node-serialize serialize-javascript funcster",
			"java":       "java.io.ObjectInputStream java.beans.XMLDecoder com.thoughtworks.xstream",
		},
		names: map[string]string{
			"python":     "yaml.load yaml.unsafe_load yaml.full_load yaml.Loader yaml.UnsafeLoader pandas.read_pickle joblib.load torch.load numpy.load",
			"javascript": "v8.deserialize",
			"java":       "java.io.ObjectInputStream java.io.ObjectInputStream.*",
			"r":          "unserialize",
			"ruby":       "Marshal.load Marshal.restore YAML.unsafe_load YAML.load_file YAML.unsafe_load_file Psych.unsafe_load Oj.load PStore.new",
		},
	}
}

// introspection are ways to get at things by names that are data.
func introspection() concern {
	return concern{
		about: "it looks at or changes the program itself",
		modules: map[string]string{
			"python": "importlib inspect builtins sys types ast dis operator threading asyncio signal tracemalloc weakref platform getpass tempfile webbrowser",
			"go":     "reflect runtime os/signal os/user go",
			"ruby":   "etc",
		},
		names: map[string]string{
			"python":     "getattr setattr delattr globals locals vars dir __dict__ __class__ __getattribute__ breakpoint input help",
			"javascript": "Reflect.* Proxy globalThis Object.defineProperty Object.setPrototypeOf Object.getPrototypeOf process process.*",
			"java":       "java.lang.Thread java.lang.Thread.* java.lang.Class.getMethod java.lang.Class.newInstance java.lang.System.setSecurityManager",
			"r":          "get mget assign do.call match.fun environment globalenv sys.function sys.call getFromNamespace getAnywhere eval",
			"ruby": "send public_send __send__ method Object.const_get const_get instance_variable_get instance_variable_set define_method " +
				"Thread.* ObjectSpace remove_method",
			"bash": "declare typeset unset trap alias",
		},
	}
}
