"""Bars, histograms, pies and other shapes."""

from . import points


def container(container, x, y, legend, budget, taken):
    kind = type(container).__name__
    if kind == "BarContainer":
        return _bars(container, x, y, legend, budget, taken)
    if kind == "ErrorbarContainer" and id(container) not in taken:
        return _errors(container, x, y, legend, budget, taken)
    if kind == "StemContainer":
        line = container.markerline
        taken.update((id(line), id(container.baseline), id(container.stemlines)))
        return [_named({"type": "scatter", "x": x.values(line.get_xdata(), budget), "y": y.values(line.get_ydata(), budget)},
                       legend.label(line, container.get_label()))]
    return []


def _named(series, label):
    if label:
        series["label"] = label
    return series


def _bars(bars, x, y, legend, budget, taken):
    taken.update(map(id, bars.patches))
    # One that is nowhere stands for something in a legend.
    rectangles = [r for r in bars.patches if hasattr(r, "get_width") and r.get_x() == r.get_x()]
    if not rectangles:
        return []
    label = legend.label(rectangles[0], bars.get_label())
    flat = getattr(bars, "orientation", "vertical") == "horizontal"
    along, up = (y, x) if flat else (x, y)
    starts = [r.get_y() if flat else r.get_x() for r in rectangles]
    widths = [r.get_height() if flat else r.get_width() for r in rectangles]
    sizes = [r.get_width() if flat else r.get_height() for r in rectangles]
    bases = [r.get_x() if flat else r.get_y() for r in rectangles]
    if _touch(starts, widths) and not along.names:
        places, kind = along.values(starts + [starts[-1] + widths[-1]], budget), "histogram"
    else:
        places, kind = along.values([s + w / 2 for s, w in zip(starts, widths)], budget, within=0.5), "bar"
    heights = [b + s for b, s in zip(bases, sizes)] if up.scale == "date" else sizes
    values = up.values(heights, budget)
    series = {"type": kind, "x": values, "y": places} if flat else {"type": kind, "x": places, "y": values}
    if bars.errorbar is not None:
        _ends(bars.errorbar, series, x, y, budget, flat)
    return [_named(series, label)]


def _touch(starts, widths):
    """Tells whether bars stand side by side without a gap, as those of a histogram."""
    if len(starts) < 2:
        return False
    near = 1e-6 * abs(widths[0] or 1)
    return all(abs(starts[i] + widths[i] - starts[i + 1]) <= near for i in range(len(starts) - 1))


def _parts(errorbar):
    line, caps, bars = errorbar.lines
    return [p for p in (line, *caps, *bars) if p is not None]


def _errors(container, x, y, legend, budget, taken):
    """Points, and the ends of the bars through them."""
    line, caps, bars = container.lines
    taken.update(map(id, _parts(container)))
    series = {"type": "line"}
    if line is not None:
        xs, ys = line.get_data(orig=True)
        series["x"], series["y"] = x.values(xs, budget), y.values(ys, budget)
        if line.get_linestyle() in ("None", "", " "):
            series["type"] = "scatter"
        _ends(container, series, x, y, budget, flat=False)
    if "y" not in series:
        return []
    return [_named(series, legend.label(line if line is not None else bars[0], container.get_label()))]


def take_errors(containers, taken):
    """Error bars that belong to bars are told with them."""
    for bars in containers:
        if getattr(bars, "errorbar", None) is not None and type(bars).__name__ == "BarContainer":
            taken.update(map(id, (bars.errorbar, *_parts(bars.errorbar))))


def _ends(errorbar, series, x, y, budget, flat):
    """The ends of the bars along a series' values; where there is none they are null."""
    lines = errorbar.lines[2]
    if not lines or not (errorbar.has_xerr if flat else errorbar.has_yerr):
        return
    # Those along x come first where there are both.
    segments = lines[0 if flat else -1].get_segments()
    ends = [[p[0 if flat else 1] for p in segment] or [float("nan")] for segment in segments]
    up = x if flat else y
    series["low"], series["high"] = up.values([min(e) for e in ends], budget), up.values([max(e) for e in ends], budget)


def rest(ax, x, y, legend, budget, taken):
    """Shapes that belong to nothing else."""
    wedges, series = [], []
    for patch in ax.patches:
        if id(patch) in taken or not patch.get_visible():
            continue
        kind = type(patch).__name__
        if kind == "Wedge":
            wedges.append(patch)
        elif kind == "StepPatch":
            values, edges, _ = patch.get_data()
            series.append(_named({"type": "histogram", "x": x.values(edges, budget), "y": y.values(values, budget)}, legend.label(patch)))
        elif kind == "Polygon" and patch.get_transform().contains_branch(ax.transData):
            xy = patch.get_xy()
            series.append(_named({"type": "area", "x": x.values(xy[:, 0], budget), "y": y.values(xy[:, 1], budget)}, legend.label(patch)))
    if wedges:
        label = [legend.label(w) for w in wedges]
        share = [points.value((w.theta2 - w.theta1) / 360) for w in wedges]
        series.append({"type": "pie", "x": budget.values(label), "y": budget.values(share)})
    return series
