# Loaded by Python itself before every program, so it must stay tiny: what it needs when
# a library to look after is imported is in found.py.
import os
import sys

SUPPORT = os.path.dirname(__file__)
WATCHED = frozenset("""llmsandbox_capture PIL.Image
matplotlib matplotlib.backend_bases matplotlib.figure matplotlib.pyplot matplotlib.animation
matplotlib.axes._axes matplotlib.backends.backend_pdf matplotlib_inline.backend_inline
plotly.io._renderers plotly.io._html plotly.io._kaleido bokeh.io.showing bokeh.io.saving
altair.vegalite.v4.api altair.vegalite.v5.api altair.vegalite.v6.api altair.utils.save""".split())


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in WATCHED:
            try:
                if "find" not in globals():
                    with open(SUPPORT + "/found.py", encoding="utf-8") as f:
                        exec(f.read(), globals())
            except OSError:
                return None  # the program has removed it
            return find(self, name, path, target)


# The program sees its paths as they are without us. Its children find us, too, because
# the environment that they inherit is not the copy in os.environ.
sys.path.remove(SUPPORT)
key = os.environ.encodekey("PYTHONPATH")
rest = [p for p in os.environ["PYTHONPATH"].split(os.pathsep) if p != SUPPORT]
if rest:
    os.environ._data[key] = os.environ.encodevalue(os.pathsep.join(rest))
else:
    del os.environ._data[key]
sys.meta_path.insert(0, Finder())


def literal(text):
    """Reads JSON without true, false and null, which is Python. Module json takes long to
    load, and the program would find it loaded."""
    return eval(text.decode(), {"__builtins__": {}})


def load(modules):
    """Imports modules, and returns the names that no file beside the program may have: its
    imports would find the file first."""
    if not modules:
        return set()
    before = set(sys.modules)
    for module in modules:
        try:
            __import__(module)
        except BaseException as problem:
            import json

            reason = "%s: %s: %s" % (module, type(problem).__name__, problem)
            os.write(4, json.dumps({"event": "reply", "error": reason[:1000]}).encode() + b"\n")
            os._exit(1)
    import gc

    # The program's collections, and the one at its end, would go through all of it: with pandas and
    # matplotlib that is most of the time that a short program takes.
    gc.collect()
    gc.freeze()
    return {name.partition(".")[0] for name in set(sys.modules) - before}


def become(modules):
    """Becomes the program of the request that comes on descriptor 3."""
    loaded = load(modules)
    os.write(4, b'{"event":"ready"}\n')
    try:
        with open(3, "rb") as requests:
            request = literal(requests.readline())
        beside = os.listdir(os.path.dirname(request["file"])) if loaded else []
        if any(name.partition(".")[0] in loaded for name in beside):
            os._exit(1)
        if request["dir"] != os.getcwd():
            if not all(map(os.path.isabs, rest)):
                os._exit(1)  # what is relative in sys.path belongs to the directory before
            os.chdir(request["dir"])
        for name, value in request.get("env", {}).items():
            os.environb[name.encode()] = value.encode()
        args = request.get("args", [])
        if args:
            sys.argv += args
            getattr(sys, "orig_argv", []).extend(args)
        with open(request["file"], "wb") as file:
            file.write(request["code"].encode())
        os.utime(request["touch"])
    except BaseException:
        os._exit(1)  # the code is run in another interpreter
    os.write(4, b'{"event":"begun"}\n')
    os.close(4)


# An interpreter that was started ahead waits here, where nothing of the program's has
# been looked at yet.
try:
    with open(SUPPORT + "/ahead", "rb") as file:
        modules = literal(file.read())
    os.unlink(SUPPORT + "/ahead")  # its children do not wait
except OSError:
    pass
else:
    become(modules)
del become
# Python asks for one module of this name: the one that is there without us is next.
del sys.modules["sitecustomize"]
import sitecustomize
