"""plotly's figures: shown without a browser, and saved."""

import functools
import os

from . import figures, is_busy, nothing_captured, once, plotly_chart, quiet, store

_names = 0


def _renderers(module):
    original = module.show

    @functools.wraps(original)
    def show(fig, renderer=None, validate=True, **kwargs):
        if is_busy():
            return original(fig, renderer, validate, **kwargs)
        content = module.validate_coerce_fig_to_dict(fig, validate)
        with quiet("a plotly figure"):
            shown(content, kwargs.get("config"))

    module.show = show


def shown(content, config=None):
    """Makes the page that a browser would be sent, and the figure's data beside it."""
    import plotly.io

    data = plotly.io.to_json(content, validate=False, remove_uids=True)

    def write():
        global _names
        if not store.room("a plotly figure"):
            return 0
        try:
            page = plotly.io.to_html(content, config=config, include_plotlyjs=True, full_html=True, validate=False)
        except OSError:  # packaged without the script
            page = plotly.io.to_html(content, config=config, include_plotlyjs="cdn", full_html=True, validate=False)
        _names += 1
        about = _about(content, "plotly-%d.html" % _names, "text/html")
        return store.write(page.encode("utf-8", "replace"), about, [("application/json", data.encode("utf-8", "replace"))])

    once.shown(once.digest("plotly", data), write)


def _about(content, name, mime):
    about = {"name": name[-200:], "mime": mime, "source": "plotly"}
    chart = plotly_chart.read(content)
    if chart is not None:
        about["chart"] = chart
        if "title" in chart:
            about["title"] = chart["title"]
    return about


def _html(module):
    original = module.write_html

    @functools.wraps(original)
    def write_html(fig, file, *args, **kwargs):
        if is_busy():
            return original(fig, file, *args, **kwargs)
        if len(args) < 12 and "auto_open" not in kwargs:
            kwargs["auto_open"] = False  # there is no browser
        with nothing_captured():
            result = original(fig, file, *args, **kwargs)
        with quiet("a saved plotly figure"):
            _saved(fig, file, "text/html", "html")
        return result

    module.write_html = write_html


def _kaleido(module):
    original = module.write_image

    @functools.wraps(original)
    def write_image(fig, file, format=None, *args, **kwargs):
        if is_busy():
            return original(fig, file, format, *args, **kwargs)
        with nothing_captured():
            result = original(fig, file, format, *args, **kwargs)
        with quiet("a saved plotly figure"):
            kind = format or os.path.splitext(str(file))[1][1:] or "png"
            _saved(fig, file, figures.MIME.get(kind.lower(), "application/octet-stream"), kind)
        return result

    module.write_image = write_image


def _saved(fig, file, mime, kind):
    global _names
    if isinstance(file, (str, os.PathLike)):
        data, name = figures.read(os.fsdecode(file)), os.path.basename(os.fsdecode(file))
    else:
        data, name = written(file), ""
    if data is None:
        return
    if not name:
        _names += 1
        name = "plotly-%d.%s" % (_names, kind)
    content = fig if isinstance(fig, dict) else fig.to_dict()
    about = _about(content, name, mime)
    if mime == "text/html":
        import plotly.io

        once.saved(once.digest("plotly", plotly.io.to_json(content, validate=False, remove_uids=True)))
    if mime == "image/png":
        about["width"], about["height"] = figures.png_size(data)
    store.write(data, about)


def written(file):
    """What is in a file object, where it can be told without moving in it."""
    if hasattr(file, "getvalue"):
        data = file.getvalue()
        return data.encode("utf-8", "replace") if isinstance(data, str) else data
    name = getattr(file, "name", None)
    if isinstance(name, str) and os.path.exists(name):
        file.flush()
        return figures.read(name)
    return None


LOOK_AFTER = {
    "plotly.io._renderers": _renderers,
    "plotly.io._html": _html,
    "plotly.io._kaleido": _kaleido,
}
