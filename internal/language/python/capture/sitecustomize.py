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

# An interpreter that was started ahead goes no further, and what it forks comes back from here.
try:
    with open(SUPPORT + "/ahead", encoding="utf-8") as f:
        code = f.read()
    os.unlink(SUPPORT + "/ahead")  # its children are none
except OSError:
    pass
else:
    # Compiled by itself, as exec frees the tree of a text only when it has been executed: in each program.
    exec(compile(code, "<string>", "exec"), dict(globals(), own=globals()))
    del code
# Python asks for one module of this name: the one that is there without us is next.
del sys.modules["sitecustomize"]
import sitecustomize
