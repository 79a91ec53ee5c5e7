"""The names of series, also where only the legend has them."""

from . import points


class Legend:
    def __init__(self, ax):
        self.colours = {}
        legend = ax.get_legend()
        if legend is None:
            return
        owned = _labels(ax)
        handles = getattr(legend, "legend_handles", None) or getattr(legend, "legendHandles", None) or []
        for handle, text in zip(handles, legend.get_texts()):
            colour = _colour(handle)
            if colour is not None and text.get_text() not in owned:
                self.colours.setdefault(colour, points.text(text.get_text()))

    def label(self, artist, own=None):
        """An artist's label; names that begin with an underscore are none."""
        label = str(own if own is not None else artist.get_label() or "")
        if label and not label.startswith("_"):
            return points.text(label)
        return self.colours.get(_colour(artist), "")


def _labels(ax):
    """Labels of what is drawn; a legend may also have entries of its own."""
    lines = {line.get_label() for line in ax.get_lines() if len(line.get_xdata(orig=False))}
    return lines | {a.get_label() for a in (*ax.containers, *ax.collections, *ax.patches)}


def _colour(artist):
    from matplotlib.colors import to_rgb

    for get in ("get_color", "get_facecolor", "get_edgecolor"):
        try:
            colour = getattr(artist, get)()
            if getattr(colour, "ndim", 1) == 2:
                if len(colour) != 1:
                    continue
                colour = colour[0]
            return tuple(round(part, 3) for part in to_rgb(colour))
        except (AttributeError, TypeError, ValueError):
            continue
    return None
