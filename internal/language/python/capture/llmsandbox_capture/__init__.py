"""Captures what a program's plotting libraries show and save.

The program must not notice: nothing here prints, raises into it or changes its objects.
What goes wrong is a note for whoever reads the captured files.
"""

import contextlib
import importlib
import threading

from . import silence, store

_here = threading.local()


def keep(keeper, module):
    """Looks after a library's module, which has just been loaded."""
    look = getattr(importlib.import_module("llmsandbox_capture." + keeper), "LOOK_AFTER")
    for name, install in look.items():
        if name == module.__name__ or (name.endswith("*") and module.__name__.startswith(name[:-1])):
            install(module)


@contextlib.contextmanager
def quiet(what):
    """Around all of ours that runs within a call of the program's."""
    with nothing_captured():
        try:
            with silence.silence():
                yield
        except Exception as problem:
            store.note("%s was not captured: %s: %s" % (what, type(problem).__name__, problem))


@contextlib.contextmanager
def nothing_captured():
    """Around what draws and saves and is not to be captured itself."""
    before = is_busy()
    _here.busy = True
    try:
        yield
    finally:
        _here.busy = before


def is_busy():
    """Tells whether this thread is within a capture, or not to be captured."""
    return getattr(_here, "busy", False)


def end_of_cell():
    """Captures the figures that are open when a kernel's cell has ended, and closes
    them, as notebooks do. The next cell may show again what this one has."""
    import sys

    from . import once

    once.forget()
    if "matplotlib.pyplot" in sys.modules:
        from . import figures

        figures.show_open()


def show(value):
    """Makes an artifact of a cell's value where its library has a way of its own to show
    it, and tells whether it did: figures, pages, pictures."""
    from . import values

    return values.show(value)


def display(value):
    """Makes an artifact of what a kernel's cell displays, and tells whether there was
    more to it than text."""
    from . import values

    return values.display(value)


def publish(forms):
    """Makes an artifact of a bundle of forms by MIME type, as IPython displays them."""
    from . import values

    return values.publish(forms)
