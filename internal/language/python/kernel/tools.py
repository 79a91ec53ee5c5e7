"""What only some cells and questions need."""
import os
import re
import sys

MAX_MATCHES = 1000
MAX_VARIABLES = 2000


# Questions.

def complete(driver, request):
    code, cursor = request.get("code", ""), request.get("cursor", 0)
    before = code[:cursor]
    if driver.shell:
        start, matches = driver.shell.completions(code, cursor)
    else:
        start, matches = completions(driver.namespace(), before)
    return {"matches": matches[:MAX_MATCHES], "start": start, "end": cursor}


def completions(namespace, before):
    line = before[before.rfind("\n") + 1:]
    word = re.search(r"[\w.]*$", before).group()
    start = len(before) - len(word)
    if re.match(r"\s*(import|from)\s+[\w.]*$", line):
        return start, modules(word)
    import rlcompleter
    completer = rlcompleter.Completer(namespace)
    matches = []
    while len(matches) <= MAX_MATCHES:
        match = completer.complete(word, len(matches)) if word else None
        if match is None:
            break
        matches.append(match)
    return start, sorted({m.rstrip("( :") for m in matches})


def modules(word):
    import pkgutil
    names = set(sys.builtin_module_names)
    names.update(m.name for m in pkgutil.iter_modules())
    return sorted(n for n in names if n.startswith(word) and not n.startswith("_"))


def inspect(driver, request):
    code, cursor = request.get("code", ""), request.get("cursor", 0)
    before = re.search(r"[\w.]*$", code[:cursor]).group()
    name = before + re.match(r"\w*", code[cursor:]).group()
    if not name.strip("."):
        # Inside a call: what is called.
        found = re.search(r"([\w.]+)\([^()]*$", code[:cursor])
        name = found.group(1) if found else ""
    try:
        value = eval(name, driver.namespace())
    except Exception:
        return {"text": ""}
    return {"text": described(name, value)[:100_000]}


def described(name, value):
    import inspect as i
    parts = []
    if callable(value):
        try:
            parts.append("%s%s" % (name, i.signature(value)))
        except (TypeError, ValueError):
            parts.append(name)
    else:
        parts.append("%s: %s = %s" % (name, type(value).__name__, short(value)))
    doc = i.getdoc(value)
    if doc and (callable(value) or i.ismodule(value)):
        parts.append(doc)
    return "\n\n".join(parts)


def variables(driver, request):
    found = []
    for name, value in sorted(user_variables(driver)):
        if len(found) == MAX_VARIABLES:
            break
        found.append({"name": name, "type": type(value).__name__, "value": short(value)})
    return {"variables": found}


def user_variables(driver):
    hidden = set(driver.shell.hidden) if driver.shell else {"Out", "In", "display"}
    for name, value in list(driver.namespace().items()):
        if not name.startswith("_") and name not in hidden and type(value) is not type(sys):
            yield name, value


def short(value):
    import reprlib
    shorten = reprlib.Repr()
    shorten.maxstring = shorten.maxother = 120
    shorten.maxlist = shorten.maxtuple = shorten.maxdict = shorten.maxset = 10
    try:
        return shorten.repr(value)[:500]
    except Exception as e:
        return "(its repr fails: %s)" % type(e).__name__


def reset(driver, request):
    if driver.shell:
        driver.shell.forget()
    else:
        driver.cells.forget()
    return {}


# Top-level await.

loop = None


def awaited(coroutine):
    global loop
    import asyncio
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except BaseException:
                pass  # what it ended with is the interrupt
        raise


# Magics. A line is one only where it is a syntax error without being one.

LINE = re.compile(r"^(\s*)(?:([\w, .\[\]'\"]+?)\s*=\s*)?([!%])(.*)$")


def line_magic(driver, code, number):
    """The code with its magic in that line made a call; None: it has none there."""
    lines = code.split("\n")
    if not number or number > len(lines):
        return None
    found = LINE.match(lines[number - 1])
    if not found:
        return None
    indent, target, sign, rest = found.groups()
    driver.main.__dict__["__magics__"] = Magics(driver)
    if sign == "!":
        call = "__magics__.%s(%r, globals(), locals())" % ("lines" if target else "system", rest.lstrip("!"))
    else:
        call = "__magics__.line(%r, globals())" % rest
    lines[number - 1] = indent + (target + " = " if target else "") + call
    return "\n".join(lines)


def cell_magic(driver, code):
    head, _, body = code.lstrip().partition("\n")
    driver.main.__dict__["__magics__"] = Magics(driver)
    blank = code[:len(code) - len(code.lstrip())]
    return blank + "__magics__.cell(%r, %r, %d, globals())" % (head[2:], body, blank.count("\n") + 1)


class Magics:
    def __init__(self, driver):
        self.driver = driver

    def fill(self, command, outer, inner):
        """Puts the values of {names} in, as far as there are any."""
        names = {**outer, **inner}

        def value(m):
            try:
                return str(eval(m.group(1), names))
            except Exception:
                return m.group()

        return re.sub(r"(?<![{$])\{([^{}\n]+)\}", value, command)

    def system(self, command, outer, inner):
        import subprocess
        sys.stdout.flush()
        code = subprocess.call(["/bin/sh", "-c", self.fill(command, outer, inner)])
        outer["_exit_code"] = code

    def lines(self, command, outer, inner):
        import subprocess
        done = subprocess.run(["/bin/sh", "-c", self.fill(command, outer, inner)], stdout=subprocess.PIPE)
        outer["_exit_code"] = done.returncode
        return done.stdout.decode(errors="replace").splitlines()

    def line(self, text, namespace):
        name, _, rest = text.strip().partition(" ")
        method = getattr(self, "magic_" + name, None)
        if method is None:
            known = sorted(n[6:] for n in dir(self) if n.startswith("magic_"))
            raise NameError("no magic %%%s: this kernel has %s; all others need IPython" % (name, ", ".join(known)))
        return method(rest.strip(), namespace)

    def cell(self, head, body, above, namespace):
        name, _, rest = head.strip().partition(" ")
        if name in ("bash", "sh"):
            import subprocess
            sys.stdout.flush()
            return_code = subprocess.call([name, "-c", body])
            if return_code:
                raise RuntimeError("%s ended with exit code %d" % (name, return_code))
            return None
        if name not in ("time", "timeit"):
            raise NameError("no cell magic %%%%%s: this kernel has time, timeit, bash and sh" % name)
        code = compile("\n" * above + body, "<cell %d>" % self.driver.cells.count, "exec")
        return self.timed(code, namespace) if name == "time" else self.timed_often(code, namespace)

    def magic_pip(self, rest, namespace):
        words = rest.split()
        if words[:1] != ["install"]:
            import subprocess
            sys.stdout.flush()
            subprocess.call([sys.executable, "-m", "pip", *words])
            return
        install(self.driver, words[1:])

    def magic_pwd(self, rest, namespace):
        return os.getcwd()

    def magic_cd(self, rest, namespace):
        os.chdir(os.path.expanduser(rest or "~"))
        print(os.getcwd())

    def magic_who(self, rest, namespace):
        print("\t".join(sorted(name for name, _ in user_variables(self.driver))) or "no variables")

    def magic_reset(self, rest, namespace):
        self.driver.cells.forget()

    def magic_time(self, rest, namespace):
        return self.timed(compile(rest, "<%time>", "exec"), namespace)

    def magic_timeit(self, rest, namespace):
        self.timed_often(compile(rest, "<%timeit>", "exec"), namespace)

    def timed(self, code, namespace):
        import time
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            exec(code, namespace)
        finally:
            print("CPU time: %s, wall time: %s" % (span(time.process_time() - cpu), span(time.perf_counter() - wall)))

    def timed_often(self, code, namespace):
        import timeit
        timer = timeit.Timer(lambda: exec(code, namespace))
        loops = 1
        while timer.timeit(loops) < 0.02:
            loops *= 10
        runs = [t / loops for t in timer.repeat(5, loops)]
        print("%s per loop (mean of 5 runs, %d loops each)" % (span(sum(runs) / len(runs)), loops))


def span(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds / 1e-9)


def install(driver, words):
    """%pip install: done by the host, which decides whether it may be."""
    libraries = [w for w in words if not w.startswith("-")]
    refused = [w for w in words if w.startswith("-") and w not in ("-q", "-qq", "--quiet", "-U", "--upgrade")]
    if refused or not libraries:
        raise ValueError("%%pip install takes names of libraries with their versions, and not: %s" % " ".join(refused or words))
    answer = driver.question({"event": "install", "libraries": libraries})
    if answer is None:
        raise RuntimeError("libraries can only be installed while a cell runs")
    if answer.get("error"):
        raise RuntimeError(answer["error"])
    import importlib
    for directory in reversed(answer.get("dirs") or ()):
        site = os.path.join(directory, "site")
        if site not in sys.path:
            sys.path.insert(1, site)
            # The processes that cells start find it, too.
            os.environ["PYTHONPATH"] = site + os.pathsep + os.environ.get("PYTHONPATH", "")
            os.environ["PATH"] = os.path.join(directory, "bin") + os.pathsep + os.environ.get("PATH", "")
    importlib.invalidate_caches()
    print("installed: " + " ".join(libraries))
