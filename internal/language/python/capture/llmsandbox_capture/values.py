"""Values of a kernel's cells: what a notebook would show of them."""

import base64
import json
import sys

from . import figures, quiet, store

ROWS = 1000  # of a table's data
FORMS = ("image/png", "image/jpeg", "image/svg+xml", "application/pdf", "text/html",
         "text/latex", "text/markdown", "application/json", "text/csv", "text/plain")
METHODS = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex"),
           ("_repr_svg_", "image/svg+xml"), ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"),
           ("_repr_pdf_", "application/pdf"), ("_repr_json_", "application/json"))
BINARY = ("image/png", "image/jpeg", "application/pdf")  # as text they are base64
_names = 0


def show(value):
    """Shows what libraries have a way of their own to show."""
    with quiet("a value"):
        return _figure(value)
    return True  # it was tried


def display(value):
    """Makes an artifact of what is displayed, and tells whether there was more than text."""
    done = False
    with quiet("what was displayed"):
        done = _figure(value) or publish(_forms(value), type(value).__module__.partition(".")[0])
    return done


def publish(forms, source="display"):
    """Makes an artifact of a bundle of forms by MIME type."""
    global _names
    known = [mime for mime in FORMS if forms.get(mime)]
    if not known:
        return False
    main = known[0]
    _names += 1
    ending = {"image/svg+xml": "svg", "text/plain": "txt", "text/markdown": "md", "text/latex": "tex"}.get(main, main.partition("/")[2])
    about = {"name": "display-%d.%s" % (_names, ending), "mime": main, "source": source}
    data = _bytes(main, forms[main])
    if main == "image/png":
        about["width"], about["height"] = figures.png_size(data)
    store.write(data, about, [(mime, _bytes(mime, forms[mime])) for mime in known[1:] if mime != "text/plain"])
    return True


def _bytes(mime, form):
    if isinstance(form, bytes):
        return form
    if isinstance(form, str) and mime in BINARY:
        return base64.b64decode(form)
    if isinstance(form, str):
        return form.encode("utf-8", "replace")
    return json.dumps(form).encode()


def _is(value, module, name):
    """Tells whether a value is of a class, without importing what may not be there."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _figure(value):
    """Shows what libraries have a way of their own to show, and tells whether it did."""
    if _is(value, "matplotlib.figure", "Figure"):
        figures._shown(value)
    elif _is(value, "plotly.basedatatypes", "BaseFigure"):
        from . import plotly

        plotly.shown(value.to_dict())
    elif _is(value, "altair", "TopLevelMixin"):
        from . import altair

        altair.shown(value)
    elif _is(value, "bokeh.models", "LayoutDOM"):
        from . import bokeh

        bokeh.shown(value)
    elif _is(value, "PIL.Image", "Image"):
        from . import pictures

        pictures.shown(value)
    else:
        return False
    return True


def _forms(value):
    forms = {}
    if isinstance(value, type):
        return forms
    bundle = _call(value, "_repr_mimebundle_")
    if isinstance(bundle, tuple):
        bundle = bundle[0]
    if isinstance(bundle, dict):
        forms.update((mime, form) for mime, form in bundle.items() if mime in FORMS and mime != "text/plain"
                     and (isinstance(form, (str, bytes)) or _is_json(form)))
    for method, mime in METHODS:
        form = None if mime in forms else _call(value, method)
        if isinstance(form, tuple):
            form = form[0]
        if isinstance(form, (str, bytes)) or (isinstance(form, (dict, list)) and _is_json(form)):
            forms[mime] = form
    table = getattr(value, "data", value) if _is(value, "pandas.io.formats.style", "Styler") else value
    if "text/html" in forms and _is(table, "pandas", "DataFrame"):
        forms["text/csv"] = table.head(ROWS).to_csv()
    elif "text/html" in forms and _is(table, "polars", "DataFrame"):
        forms["text/csv"] = table.head(ROWS).write_csv()
    return forms


def _is_json(form):
    try:
        json.dumps(form, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _call(value, name):
    method = getattr(value, name, None)
    if not callable(method):
        return None
    try:
        return method()
    except Exception:
        return None  # as in notebooks: another form does
