"""Drawing that the program did not ask for must not warn in its name."""

import contextlib
import logging
import threading
import warnings

LIBRARIES = ("matplotlib", "PIL", "fontTools", "plotly", "bokeh", "altair")


class _OfThread(type):
    def __subclasscheck__(cls, category):
        return threading.get_ident() == cls.thread


@contextlib.contextmanager
def silence():
    """Keeps what this thread says to itself. Warnings that others give are theirs, and so
    is the record of which have been given."""
    me = threading.get_ident()
    mine = ("ignore", None, _OfThread("Mine", (Warning,), {"thread": me}), None, 0)

    def of_others(record):
        return threading.get_ident() != me

    loggers = [one for name, one in list(logging.root.manager.loggerDict.items())
               if name.split(".")[0] in LIBRARIES and isinstance(one, logging.Logger)]
    for logger in loggers:
        logger.addFilter(of_others)
    filters = warnings.filters
    filters.insert(0, mine)
    try:
        yield
    finally:
        if mine in filters:
            filters.remove(mine)
        for logger in loggers:
            logger.removeFilter(of_others)
