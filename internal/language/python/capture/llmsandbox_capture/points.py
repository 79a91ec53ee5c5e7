"""Numbers, names and times as JSON has them, and no more of them than a reader wants."""

import json
import math

POINTS = 1000    # of a series
SERIES = 50      # of a chart
BYTES = 256 << 10  # of a chart
TEXT = 200       # characters of a name


class Budget:
    """What a chart may still hold. truncated tells that something did not fit."""

    def __init__(self):
        self.truncated = False

    def values(self, values, limit=POINTS):
        """A list of one point each, evenly taken from all of them when there are more."""
        array = plain(values)
        return [value(v) for v in self._some(array, limit)]

    def rows(self, array, limit=50):
        """The rows of a table of numbers."""
        if any(len(row) > limit for row in array[:1]) or len(array) > limit:
            self.truncated = True
        return [[value(v) for v in self._some(row, limit)] for row in self._some(array, limit)]

    def _some(self, array, limit):
        if len(array) <= limit:
            return array
        self.truncated = True
        last = len(array) - 1
        return [array[i * last // (limit - 1)] for i in range(limit)]

    def chart(self, title, axes):
        """The whole, with series left out from the end until it is small enough."""
        left, size = SERIES, 0
        for ax in axes:
            kept = []
            for series in ax["series"]:
                size += len(json.dumps(series, allow_nan=False))
                if left == 0 or size > BYTES:
                    self.truncated = True
                    break
                kept.append(series)
                left -= 1
            ax["series"] = kept
        chart = {"axes": [ax for ax in axes if ax["series"]]}
        if not chart["axes"]:
            return None
        if title:
            chart["title"] = title
        if self.truncated:
            chart["truncated"] = True
        return chart


def plain(values):
    """A sequence that can be indexed, of whatever kind of array it was."""
    if isinstance(values, (list, tuple)):
        return values
    if hasattr(values, "mask") and hasattr(values, "filled"):  # what is masked has no value
        return values.tolist()
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") == "M" and getattr(dtype, "type", None) is not None:
        import numpy

        try:
            return numpy.datetime_as_string(numpy.asarray(values).astype("datetime64[us]")).tolist()
        except (TypeError, ValueError):
            pass  # with a time zone: each by itself
    if getattr(dtype, "kind", "") in ("i", "u", "f", "b") and hasattr(values, "tolist"):
        return values.tolist()
    return list(values)


def value(v):
    """One of them."""
    if v is None:
        return v
    if isinstance(v, int):
        return int(v) if abs(v) < 1 << 63 else float_(v)
    if isinstance(v, str):
        return text(v)
    if hasattr(v, "isoformat"):
        return time(v.isoformat())
    if hasattr(v, "item"):  # a number of numpy's
        return value(v.item()) if not hasattr(v.item(), "item") else text(str(v))
    try:
        return float_(v)
    except (TypeError, ValueError):
        return text(str(v))


def float_(v):
    v = float(v)
    if not math.isfinite(v):
        return None
    return float("%.10g" % v)


def text(s):
    return str(s)[:TEXT].encode("utf-8", "replace").decode()


def time(s):
    """Without the parts that say nothing."""
    for none in ("+00:00", ".000000", "T00:00:00"):
        if s.endswith(none):
            s = s[: -len(none)]
    return None if s == "NaT" else s
