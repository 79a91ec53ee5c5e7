"""What matplotlib's figures show, read from them without changing them."""

import weakref

from . import lines, patches, points
from .collections_ import collections
from .direction import Direction
from .legend import Legend

_boxes = weakref.WeakKeyDictionary()  # axes -> what boxes on them stand for


def remember_boxes(axes, stats, drawn):
    _boxes.setdefault(axes, []).append((list(stats), [a for part in drawn.values() for a in part], drawn))


def read(figure):
    """The chart of a figure, or None when there is nothing that we can tell."""
    try:
        budget = points.Budget()
        axes = [_axes(ax, budget) for ax in figure.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]
        above = getattr(figure, "_suptitle", None)
        return budget.chart(points.text(above.get_text()) if above is not None else "", axes)
    except Exception as problem:
        from . import store

        store.note("what a figure shows could not be read: %s: %s" % (type(problem).__name__, problem))
        return None


def _axes(ax, budget):
    x, y = Direction(ax, "x"), Direction(ax, "y")
    legend = Legend(ax)
    taken = set()  # artists that are part of something
    series = []
    for stats, parts, drawn in _boxes.get(ax, ()):
        taken.update(map(id, parts))
        series += _box(stats, drawn, x, y, budget)
    patches.take_errors(ax.containers, taken)
    for container in ax.containers:
        series += patches.container(container, x, y, legend, budget, taken)
    series += lines.lines(ax, x, y, legend, budget, taken)
    series += collections(ax, x, y, legend, budget, taken)
    series += patches.rest(ax, x, y, legend, budget, taken)
    for image in ax.images:
        array = image.get_array()
        if array is not None and array.ndim == 2:
            series.append({"type": "heatmap", "z": budget.rows(array.tolist())})
    description = {"x": x.describe(budget), "y": y.describe(budget), "series": series}
    title = next((t for t in (ax.get_title(loc) for loc in ("center", "left", "right")) if t), "")
    if title:
        description["title"] = points.text(title)
    return description


def _box(stats, drawn, x, y, budget):
    """Each box's five numbers: both ends of the whiskers, the quartiles, the median."""
    names = []
    for i, s in enumerate(stats):
        line = drawn["medians"][i]
        across = [list(line.get_xdata()), list(line.get_ydata())]
        along = x if len(set(across[1])) == 1 else y
        middle = sum(across[0 if along is x else 1]) / 2
        names.append(along.name(middle, 0.5) if along.names else points.text(s.get("label") or "") or points.value(middle))
    rows = [[s["whislo"], s["q1"], s["med"], s["q3"], s["whishi"]] for s in stats]
    return [{"type": "box", "x": budget.values(names), "z": budget.rows(rows, points.POINTS)}]
