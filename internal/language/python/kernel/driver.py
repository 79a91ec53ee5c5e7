"""The driver of a Python kernel: requests on descriptor 3, events on 4.

It imports next to nothing before it is ready. What most cells need is loaded right
after that, and what few need with the first one that does.
"""
import sys

import _ast
import _signal
import builtins
import os

ONLY_AST, AWAIT, COROUTINE = 0x400, 0x2000, 0x80
MAX_LINE = 8 << 20
# Bounds what a value or traceback may take of a line, in characters.
MAX_TEXT = 1 << 20
ROWS = 1000  # of a table's data


class Stop(BaseException):
    """Ends the driver."""


class Driver:
    def __init__(self, directory, plain):
        self.pid = os.getpid()
        self.sources = {}
        for name in ("tools", "shell"):
            with open(os.path.join(directory, name + ".py"), encoding="utf-8") as f:
                self.sources[name] = f.read()
        self.loaded = {}
        self.add_data, self.without_ours = add_data, without_ours
        self.buffer = b""
        self.current = 0  # the request that runs
        self.stdin = False
        self.running = False  # an interrupt is the code's
        self.holding = self.held = False  # and comes later
        self.asking = None
        # Cells may close or redirect 1 and 2; the marks still have to get out.
        self.outputs = [os.dup(1), os.dup(2)]
        for fd in (3, 4):
            os.set_inheritable(fd, False)
        self.main = type(sys)("__main__")
        sys.modules["__main__"] = self.main
        self.main.__dict__.update(__builtins__=builtins, __doc__=None)
        sys.path[0] = ""
        sys.argv = [""]
        self.shell = None
        if not plain:
            try:
                import IPython  # noqa: F401
            except ImportError:
                pass
            else:
                self.shell = self.load("shell").make(self, directory)
        self.flavor = "plain"
        if self.shell is not None:
            self.flavor = "ipython"
        else:
            self.cells = Plain(self)
        _signal.signal(_signal.SIGINT, self.interrupted)

    def load(self, name):
        """Loads a part of the driver. Its source was read at the start, since a cell can
        remove the files."""
        if name not in self.loaded:
            module = type(sys)("kernel_" + name)
            exec(compile(self.sources[name], "<kernel %s>" % name, "exec"), module.__dict__)
            self.loaded[name] = module
        return self.loaded[name]

    # The wire.

    def receive(self):
        while b"\n" not in self.buffer:
            if self.running:
                self.select([3], [], [])
            # An interrupt must not come between what is read and where it goes.
            self.holding = True
            data = os.read(3, 1 << 16)
            self.buffer += data
            self.holding = False
            if not data:
                raise Stop
            if self.held:
                self.held = False
                raise KeyboardInterrupt
        line, self.buffer = self.buffer.split(b"\n", 1)
        return self.json.loads(line)

    def send(self, event):
        line = self.json.dumps(event).encode("ascii") + b"\n"
        if len(line) > MAX_LINE:
            event.pop("value", None)
            event.pop("variables", None)
            event.pop("matches", None)
            line = self.json.dumps(event).encode("ascii") + b"\n"
        self.write(4, line)

    def write(self, fd, data):
        while data:
            try:
                data = data[os.write(fd, data):]
            except BlockingIOError:
                os.set_blocking(fd, True)  # a cell has made the pipe non-blocking

    def serve(self):
        version = "%d.%d.%d" % sys.version_info[:3]
        self.write(4, (
            '{"event":"ready","language":"python","version":"%s","flavor":"%s"}\n' % (version, self.flavor)).encode())
        import json
        import linecache
        import select
        import threading
        import traceback
        self.select = select.select
        self.json, self.linecache, self.traceback = json, linecache, traceback
        self.asking = threading.Lock()
        builtins.input = self.input
        builtins.exit = builtins.quit = Exit()
        sys.stdin = Stdin(self)
        sys.meta_path.insert(0, PatchGetpass(self))
        sys.meta_path.append(UserSite)
        while True:
            try:
                request = self.receive()
            except Stop:
                return
            self.handle(request)

    def handle(self, request):
        op = request["op"]
        if op == "run":
            self.run(request)
        elif op in ("complete", "inspect", "variables", "reset"):
            self.ask(op, request)
        # An answer to a question that is no longer asked is dropped.

    # Cells.

    def interrupted(self, signum, frame):
        if self.running and self.holding:
            self.held = True
        elif self.running:
            raise KeyboardInterrupt

    def guarded(self, work, *args):
        """Calls work so that an interrupt ends it; the outcome of one is None."""
        _signal.signal(_signal.SIGINT, self.interrupted)
        try:
            self.running = True
            outcome = work(*args)
            self.running = False
        except KeyboardInterrupt:
            self.running = False
            return None
        return outcome

    def run(self, request):
        self.current, self.stdin = request["id"], request.get("stdin", False)
        cells = self.shell or self.cells
        outcome = self.guarded(cells.run, request.get("code", ""))
        if outcome is None:
            outcome = {"status": "interrupted"}
        if os.getpid() != self.pid:
            self.leave(outcome)
        captured = sys.modules.get("llmsandbox_capture")
        if captured is not None:  # a plotting library has been imported
            self.guarded(captured.end_of_cell)
        outcome.update(event="done", id=self.current)
        self.current = 0
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except Exception:
                pass  # a cell has closed it, or put something else there
        mark = b"\0" + request["mark"].encode()
        for fd in self.outputs:
            self.write(fd, mark)
        self.send(outcome)

    def leave(self, outcome):
        """Ends a process that a cell forked and that came to the end of the cell."""
        try:
            sys.stdout.flush()
        finally:
            os._exit(outcome.get("exit_code", 0 if outcome["status"] == "ok" else 1))

    def ask(self, op, request):
        tools = self.load("tools")
        reply = {"event": "reply", "id": request["id"]}
        try:
            answer = self.guarded(getattr(tools, op), self, request)
            reply.update({"error": "it was interrupted"} if answer is None else answer)
        except Exception as e:
            reply["error"] = "%s: %s" % (type(e).__name__, e)
        self.send(reply)

    def namespace(self):
        return self.shell.user_ns if self.shell else self.main.__dict__

    def failure(self, e):
        """The outcome of a cell that an exception ended."""
        if isinstance(e, KeyboardInterrupt):
            return {"status": "interrupted", "error": self.described(e)}
        if isinstance(e, SystemExit):
            return {"status": "exit", "exit_code": self.exit_code(e), "state_lost": False}
        return {"status": "error", "error": self.described(e)}

    def exit_code(self, e):
        if e.code is None:
            return 0
        if isinstance(e.code, int):
            return e.code & 0xff
        sys.stderr.write("%s\n" % (e.code,))
        return 1

    def described(self, e):
        try:
            summary = self.traceback.TracebackException(type(e), e, e.__traceback__)
            strip(summary)
            text = "".join(summary.format())
        except Exception as broken:
            text = "%s (its traceback could not be shown: %s)\n" % (type(e).__name__, type(broken).__name__)
        try:
            message = str(e)
        except Exception:
            message = ""
        return {"name": type(e).__name__, "message": message[:MAX_TEXT], "traceback": text[:MAX_TEXT]}

    # Questions to the host.

    def question(self, event):
        """Sends an event of the cell that runs and returns the answer; None without a cell."""
        with self.asking:
            if not self.current or os.getpid() != self.pid:
                return None
            event["id"] = self.current
            self.send(event)
            while True:
                answer = self.receive()
                if answer["op"] in ("input", "installed") and answer["id"] == self.current:
                    return answer

    def input(self, prompt="", /):
        line = self.line(str(prompt), False)
        if line is None:
            raise EOFError("EOF when reading a line")
        return line

    def line(self, prompt, password):
        sys.stdout.flush()
        if not self.stdin:
            return None
        answer = self.question({"event": "input", "prompt": prompt, "password": password})
        if answer is None or answer.get("eof"):
            return None
        return answer.get("text", "")


class Plain:
    """Runs cells where there is no IPython."""

    def __init__(self, driver):
        self.driver = driver
        self.count = 0
        self.future = 0  # flags of the __future__ imports so far
        self.out = {}
        self.forget()

    def forget(self):
        namespace = self.driver.main.__dict__
        namespace.clear()
        self.out.clear()
        namespace.update(__name__="__main__", __builtins__=builtins, __doc__=None, _="", Out=self.out, display=display)

    def run(self, code):
        self.count += 1
        outcome = self.outcome(code)
        outcome["count"] = self.count
        return outcome

    def outcome(self, code):
        driver = self.driver
        name = "<cell %d>" % self.count
        driver.linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        try:
            tree = self.parse(code, name)
            last = tree.body[-1:]
            shown = last and isinstance(last[0], _ast.Expr) and not code.rstrip().endswith(";")
            if shown:
                tree.body.pop()
            self.execute(tree, name, "exec")
            if not shown:
                return {"status": "ok"}
            value = self.execute(_ast.Expression(last[0].value), name, "eval")
            if value is None:
                return {"status": "ok"}
            if isinstance(value, Exit):
                value()
            namespace = driver.main.__dict__
            namespace["_"] = self.out[self.count] = value
            return {"status": "ok", "value": shown_as(value)}
        except BaseException as e:
            return driver.failure(e)

    def parse(self, code, name):
        if code.lstrip().startswith("%%"):
            code = self.driver.load("tools").cell_magic(self.driver, code)
        return self.parsed(code, name)

    def parsed(self, code, name, tries=1000):
        try:
            return compile(code, name, "exec", ONLY_AST | AWAIT | self.future, True)
        except SyntaxError as e:
            if tries == 0:
                raise
            changed = self.driver.load("tools").line_magic(self.driver, code, e.lineno)
            if changed is None:
                raise
        return self.parsed(changed, name, tries - 1)

    def execute(self, tree, name, mode):
        code = compile(tree, name, mode, AWAIT | self.future, True)
        # What lies above the flags of code objects is for __future__.
        self.future |= code.co_flags & 0x1fe0000
        namespace = self.driver.main.__dict__
        if not code.co_flags & COROUTINE:
            return eval(code, namespace)
        return self.driver.load("tools").awaited(eval(code, namespace))


def strip(summary):
    """Takes the driver's own frames out of a traceback."""
    seen = set()
    while summary is not None and id(summary) not in seen:
        seen.add(id(summary))
        summary.stack[:] = [f for f in summary.stack if not ours(f.filename)]
        summary = summary.__cause__ or summary.__context__


def without_ours(e):
    """Takes the driver's own frames out of an exception's traceback, but for the first."""
    seen = set()
    while e is not None and id(e) not in seen:
        seen.add(id(e))
        at = e.__traceback__
        while at is not None and at.tb_next is not None:
            if ours(at.tb_next.tb_frame.f_code.co_filename):
                at.tb_next = at.tb_next.tb_next
            else:
                at = at.tb_next
        e = e.__cause__ or e.__context__


def ours(filename):
    return filename == __file__ or filename.startswith("<kernel ")


class Exit:
    """What cells find as exit and quit: called or not, it ends the cell."""

    def __repr__(self):
        return "Use exit() to end the cell"

    def __call__(self, code=None):
        raise SystemExit(code)


# Media types, by the method that gives them.
FORMS = (
    ("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex"),
    ("_repr_svg_", "image/svg+xml"), ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"),
    ("_repr_json_", "application/json"),
)


def shown_as(value):
    """A value's forms by media type."""
    forms = {"text/plain": clip(repr(value))}
    if isinstance(value, type):
        return forms
    captured = sys.modules.get("llmsandbox_capture")
    if captured is not None and captured.show(value):
        return forms  # it is an artifact
    for method, mime in FORMS:
        show = getattr(value, method, None)
        if show is None:
            continue
        try:
            data = show()
        except Exception:
            continue  # its plain form is enough
        data = data[0] if isinstance(data, tuple) else data
        if isinstance(data, bytes):
            import base64
            data = base64.b64encode(data).decode()
        elif isinstance(data, (dict, list)):
            import json
            data = json.dumps(data)
        if isinstance(data, str) and len(data) <= MAX_TEXT:
            forms[mime] = data
    add_data(forms, value)
    return forms


def add_data(forms, value):
    """Adds the data of a table to its other forms."""
    kind = type(value)
    if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas":
        data = value.head(ROWS).to_csv()
        if len(data) <= MAX_TEXT:
            forms["text/csv"] = data


def display(*values):
    """What cells find as display, as in notebooks."""
    try:
        import llmsandbox_capture
    except ImportError:  # nothing is captured
        llmsandbox_capture = None
    for value in values:
        if llmsandbox_capture is None or not llmsandbox_capture.display(value):
            print(repr(value))


def clip(text):
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


class Stdin:
    """What cells find as sys.stdin."""

    encoding, errors, closed, name = "utf-8", "strict", False, "<stdin>"

    def __init__(self, driver):
        self.driver = driver

    def readline(self, size=-1):
        line = self.driver.line("", False)
        return "" if line is None else line + "\n"

    def __iter__(self):
        return iter(self.readline, "")

    def read(self, size=-1):
        return self.readline() if size > 0 else "".join(self)

    def readlines(self, hint=-1):
        return list(self)

    def isatty(self):
        return False

    def readable(self):
        return True

    def writable(self):
        return False

    def fileno(self):
        return 0  # empty

    def flush(self):
        pass

    def close(self):
        pass


class PatchGetpass:
    """Has module getpass, once it is imported, ask the host."""

    def __init__(self, driver):
        self.driver = driver

    def find_spec(self, name, path=None, target=None):
        if name != "getpass":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec
        spec = find_spec("getpass")
        execute, driver = spec.loader.exec_module, self.driver

        def patched(module):
            execute(module)

            def getpass(prompt="Password: ", stream=None, **options):
                line = driver.line(str(prompt), True)
                if line is None:
                    raise EOFError("EOF when reading a password")
                return line

            module.getpass = getpass

        spec.loader.exec_module = patched
        return spec


class UserSite:
    """Finds what a cell has had pip install for the user, when nothing else finds it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        import site
        directory = site.getusersitepackages()
        if not site.ENABLE_USER_SITE or directory in sys.path or not os.path.isdir(directory):
            return None
        # As when Python starts: before what is installed for all users.
        at = [i for i, p in enumerate(sys.path) if p.endswith("-packages")]
        sys.path.insert(at[0] if at else len(sys.path), directory)
        sys.meta_path.remove(cls)
        import importlib.machinery
        importlib.invalidate_caches()
        return importlib.machinery.PathFinder.find_spec(name, path, target)


if __name__ == "__main__":
    __file__ = sys._getframe().f_code.co_filename
    directory = os.path.dirname(os.path.abspath(__file__))
    Driver(directory, sys.argv[1:] == ["plain"]).serve()
