"""What plotly's figures show, read from their JSON."""

import base64
import re

from . import points

DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?$")


def read(content):
    """The chart of a figure as a dict, or None when there is nothing that we can tell."""
    try:
        budget = points.Budget()
        layout = _get(content, "layout") or {}
        systems, order = {}, []
        for trace in _get(content, "data") or ():
            series = _series(trace, budget)
            if series is None:
                continue
            key = (_get(trace, "xaxis") or "x", _get(trace, "yaxis") or "y")
            if key not in systems:
                systems[key] = {"x": _axis(layout, key[0]), "y": _axis(layout, key[1]), "series": []}
                order.append(systems[key])
            for which in ("x", "y"):
                if systems[key][which]["scale"] == "":
                    systems[key][which]["scale"] = _scale(series.get(which))
            systems[key]["series"].append(series)
        for system in order:
            for which in ("x", "y"):
                system[which]["scale"] = system[which]["scale"] or "linear"
        return budget.chart(_title(layout), order)
    except Exception as problem:
        from . import store

        store.note("what a plotly figure shows could not be read: %s: %s" % (type(problem).__name__, problem))
        return None


def _get(of, name):
    try:
        return of[name]
    except (KeyError, TypeError, ValueError):
        return None


def _title(of):
    title = _get(of, "title")
    text = title if isinstance(title, str) else _get(title, "text")
    return points.text(text) if text else ""


def _axis(layout, key):
    axis = _get(layout, key[0] + "axis" + key[1:]) or {}
    about = {"scale": {"linear": "linear", "log": "log", "date": "date", "category": "category", "multicategory": "category"}.get(_get(axis, "type"), "")}
    label = _title(axis)
    if label:
        about["label"] = label
    return about


def _scale(values):
    names = [v for v in values or () if isinstance(v, str)][:20]
    if not names:
        return "linear"
    return "date" if all(DATE.match(n) for n in names) else "category"


def _series(trace, budget):
    kind = _get(trace, "type") or "scatter"
    type_, names = {
        "scatter": (_scatter(trace), "xy"), "scattergl": (_scatter(trace), "xy"), "scatter3d": (_scatter(trace), "xyz"),
        "bar": ("bar", "xy"), "histogram": ("histogram", "xy"), "box": ("box", "xy"), "violin": ("box", "xy"),
        "pie": ("pie", "xy"), "heatmap": ("heatmap", "xyz"), "contour": ("heatmap", "xyz"),
    }.get(kind, (None, ""))
    if type_ is None:
        return None
    series = {"type": type_}
    label = _get(trace, "name")
    if label:
        series["label"] = points.text(label)
    if kind == "pie":
        values, labels = array(_get(trace, "values")), array(_get(trace, "labels"))
        sources = {"x": labels, "y": values}
    else:
        sources = {name: array(_get(trace, name)) for name in names}
    for name, values in sources.items():
        if values is None or len(values) == 0:
            continue
        if type_ == "heatmap" and name == "z":
            series["z"] = budget.rows([points.plain(row) for row in values])
        else:
            series[name] = budget.values(values)
    return series if len(series) > 1 else None


def _scatter(trace):
    if _get(trace, "fill") not in (None, "none"):
        return "area"
    return "scatter" if _get(trace, "mode") in ("markers", "markers+text", "text") else "line"


def array(values):
    """Values as they are, or as plotly packs arrays of numbers."""
    if not isinstance(values, dict):
        return None if values is None else points.plain(values)
    import numpy

    unpacked = numpy.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    shape = values.get("shape")
    if shape:
        unpacked = unpacked.reshape([int(n) for n in (shape.split(",") if isinstance(shape, str) else shape)])
    return unpacked.tolist()
