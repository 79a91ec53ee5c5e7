"""bokeh's plots: shown without a browser, and saved."""

import functools
import os

from . import figures, is_busy, nothing_captured, quiet, store

_names = 0


def _showing(module):
    original = module.show

    @functools.wraps(original)
    def show(obj, browser=None, *args, **kwargs):
        if is_busy():
            return original(obj, browser, *args, **kwargs)
        if module.curstate().notebook or not (isinstance(obj, (list, tuple)) or hasattr(obj, "document")):
            return original(obj, browser, *args, **kwargs)
        if module.curstate().file:
            with nothing_captured():
                result = original(obj, browser or "none", *args, **kwargs)
        else:  # only to be looked at
            result = None
        with quiet("a bokeh plot"):
            shown(obj)
        return result

    module.show = show


def shown(obj):
    """Makes a page that needs nothing else."""
    from bokeh.embed import file_html
    from bokeh.io.state import curstate
    from bokeh.resources import INLINE

    global _names
    _names += 1
    file = curstate().file
    page = file_html(obj, INLINE, title=file.title if file else "Bokeh Plot", theme=curstate().document.theme)
    name = os.path.basename(file.filename) if file else "bokeh-%d.html" % _names
    about = {"name": name[-200:], "mime": "text/html", "source": "bokeh", "title": _title(obj)}
    store.write(page.encode("utf-8", "replace"), about)


def _title(obj):
    title = getattr(obj, "title", None)
    return str(getattr(title, "text", title) or "")[:300]


def _saving(module):
    original = module.save

    @functools.wraps(original)
    def save(obj, *args, **kwargs):
        path = original(obj, *args, **kwargs)
        if not is_busy():
            with quiet("a saved bokeh plot"):
                data = figures.read(path)
                if data is not None:
                    store.write(data, {"name": os.path.basename(path)[-200:], "mime": "text/html", "source": "bokeh", "title": _title(obj)})
        return path

    module.save = save


LOOK_AFTER = {"bokeh.io.showing": _showing, "bokeh.io.saving": _saving}
