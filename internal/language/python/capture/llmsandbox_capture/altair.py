"""altair's charts: shown without a browser, and saved."""

import functools
import json
import os
import sys

from . import figures, is_busy, nothing_captured, once, plotly, quiet, store

MIME = dict(figures.MIME, html="text/html", json="application/json")
_names = 0


def _api(module):
    def show(self, *args, **kwargs):
        if not is_busy():
            with quiet("an altair chart"):
                shown(self)

    module.TopLevelMixin.show = functools.wraps(module.TopLevelMixin.show)(show)
    if hasattr(module, "save"):  # what it imported before we came
        _save(module)


def shown(chart):
    """Makes a page, which needs nothing else where altair can do that."""
    import altair

    spec = chart.to_dict()

    def write():
        global _names
        try:
            page = chart.to_html(inline=True)
        except Exception:  # it takes another package
            page = _page(altair, spec)
        _names += 1
        about = {"name": "altair-%d.html" % _names, "mime": "text/html", "source": "altair", "title": _title(spec)}
        return store.write(page.encode("utf-8", "replace"), about, [("application/json", json.dumps(spec).encode("utf-8", "replace"))])

    once.shown(once.digest("altair", json.dumps(spec)), write)


def _page(altair, spec):
    from altair.utils.mimebundle import spec_to_mimebundle

    api = sys.modules[altair.Chart.__mro__[0].__module__]
    mode = "vega-lite"
    return spec_to_mimebundle(
        spec, format="html", mode=mode, vega_version=api.VEGA_VERSION,
        vegaembed_version=api.VEGAEMBED_VERSION, vegalite_version=api.VEGALITE_VERSION)["text/html"]


def _title(spec):
    title = spec.get("title")
    title = title.get("text") if isinstance(title, dict) else title
    return title[:300] if isinstance(title, str) else ""


def _save(module):
    original = module.save

    @functools.wraps(original)
    def save(chart, fp, *args, **kwargs):
        if is_busy():
            return original(chart, fp, *args, **kwargs)
        with nothing_captured():
            result = original(chart, fp, *args, **kwargs)
        with quiet("a saved altair chart"):
            _saved(chart, fp, kwargs.get("format"))
        return result

    module.save = save


def _saved(chart, fp, format):
    global _names
    if isinstance(fp, (str, os.PathLike)):
        name = os.path.basename(os.fsdecode(fp))
        data, format = figures.read(os.fsdecode(fp)), format or name.rsplit(".", 1)[-1]
    else:
        data, name = plotly.written(fp), ""
    if data is None:
        return
    if not name:
        _names += 1
        name = "altair-%d.%s" % (_names, format)
    about = {"name": name[-200:], "mime": MIME.get(str(format).lower(), "application/octet-stream"), "source": "altair"}
    spec = chart.to_dict()
    about["title"] = _title(spec)
    if about["mime"] == "text/html":
        once.saved(once.digest("altair", json.dumps(spec)))
    if format == "png":
        about["width"], about["height"] = figures.png_size(data)
    store.write(data, about)


LOOK_AFTER = {"altair.vegalite.v*": _api, "altair.utils.save": _save}
