"""One direction of a coordinate system: what its positions mean."""

import sys

from . import points

DATES = ("DateConverter", "ConciseDateConverter", "_SwitchableDateConverter", "DatetimeConverter")


class Direction:
    def __init__(self, ax, which):
        self.axis = getattr(ax, which + "axis")
        self.label = self.axis.get_label_text()
        get = getattr(self.axis, "get_converter", None)
        self.converter = type(get() if get else getattr(self.axis, "converter", None)).__name__
        self.frequency = getattr(self.axis, "freq", None)  # pandas counts periods of it
        self.names = self._names()
        if self.names:
            self.scale = "category"
        elif self.frequency is not None or self.converter in DATES:
            self.scale = "date"
        else:
            self.scale = "log" if "log" in getattr(ax, "get_%sscale" % which)() else "linear"

    def describe(self, budget):
        about = {"scale": self.scale}
        if self.label:
            about["label"] = points.text(self.label)
        if self.names:
            about["categories"] = budget.values([self.names[p] for p in sorted(self.names)])
        return about

    def values(self, positions, budget, within=1e-6):
        """What positions mean: dates, names of the categories that they are within so
        much of, or themselves."""
        values = budget.values(positions)
        if self.scale == "date" and _numbers(positions):
            return [self._date(v) for v in values]
        return [self.name(v, within) for v in values] if self.names else values

    def name(self, position, within):
        if not isinstance(position, (int, float)) or not self.names:
            return position
        nearest = min(self.names, key=lambda p: abs(p - position))
        return self.names[nearest] if abs(nearest - position) < within else position

    def _date(self, v):
        if not isinstance(v, (int, float)):
            return v
        try:
            if self.frequency is not None:
                return str(sys.modules["pandas"].Period(ordinal=int(v), freq=self.frequency))
            from matplotlib import dates

            return points.time(dates.num2date(v).isoformat())
        except (ValueError, OverflowError, KeyError):
            return points.value(v)

    def _names(self):
        from matplotlib.ticker import FixedFormatter, FixedLocator

        named, formatter, locator = {}, self.axis.get_major_formatter(), self.axis.get_major_locator()
        if self.converter == "StrCategoryConverter":
            named = {p: name for name, p in getattr(self.axis.units, "_mapping", {}).items()}
        elif isinstance(locator, FixedLocator):
            function = getattr(formatter, "func", None)
            if isinstance(formatter, FixedFormatter):
                named = dict(zip(locator.locs, formatter.seq))
            elif getattr(getattr(function, "func", None), "__name__", "") == "_format_with_dict":
                named = function.args[0]
        return {float(p): points.text(s) for p, s in list(named.items())[: points.POINTS] if s != ""}


def _numbers(values):
    first = next(iter(values), None)
    return isinstance(first, (int, float)) or getattr(getattr(first, "dtype", None), "kind", "") in ("i", "u", "f")
