"""Charts of matplotlib and tables of pandas in results of code, against the server that the environment names. Its sandboxes have both."""

import base64
import os

from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import BarChart, BoxAndWhiskerChart, LineChart, PieChart, ScatterChart, SuperChart

CHARTS = {
    "plt.plot([0.0, 1.5], [1, 3.5], label='L'); plt.plot([1], [2]); plt.title('T'); plt.xlabel('Time (s)'); plt.ylabel('Speed [m/s]')": (
        LineChart,
        {"title": "T", "x_label": "Time (s)", "x_unit": "s", "y_label": "Speed [m/s]", "y_unit": "m/s", "x_scale": "linear"},
        [{"label": "L", "points": [[0.0, 1.0], [1.5, 3.5]]}, {"label": "Line 1", "points": [[1.0, 2.0]]}],
    ),
    "import datetime; plt.plot([datetime.date(2026, 1, 2)], [1]); plt.yscale('log')": (
        LineChart,
        {"title": None, "x_scale": "datetime", "y_scale": "log"},
        [{"label": "Line 0", "points": [["2026-01-02", 1.0]]}],
    ),
    "plt.scatter([1, 2], [3, 4.5], label='S')": (ScatterChart, {}, [{"label": "S", "points": [[1.0, 3.0], [2.0, 4.5]]}]),
    "plt.bar(['a', 'b'], [1, 2.5], label='G'); plt.ylabel('n (kg)')": (
        BarChart,
        {"y_label": "n (kg)", "y_unit": "kg"},
        [{"label": "a", "group": "G", "value": 1}, {"label": "b", "group": "G", "value": 2.5}],
    ),
    "plt.barh(['a'], [1]); plt.xlabel('n (kg)')": (BarChart, {"y_label": "n (kg)", "y_unit": "kg"}, [{"label": "a", "group": "Group 0", "value": 1}]),
    "plt.pie([0.9, 0.1], labels=['a', 'b'])": (PieChart, {}, [{"label": "a", "angle": 324.0, "radius": 1.0}, {"label": "b", "angle": 36.0, "radius": 1.0}]),
    "plt.boxplot([[1, 2, 3, 4, 5]], tick_labels=['a'])": (
        BoxAndWhiskerChart,
        {},
        [{"label": "a", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4, "max": 5, "outliers": []}],
    ),
}


def drawn(execution):
    """The chart of an execution that has drawn nothing but one figure."""
    assert not execution.error and len(execution.results) == 1, execution
    result = execution.results[0]
    assert base64.b64decode(result.png).startswith(b"\x89PNG") and result.text.startswith("<Figure size") and not result.is_main_result, result
    return result.chart


def main():
    with Sandbox.create() as sb:
        assert not sb.run_code("import matplotlib.pyplot as plt, pandas as pd").error
        for code, (kind, members, elements) in CHARTS.items():
            chart = drawn(sb.run_code(code + "; plt.show()"))
            got = chart.to_dict()
            assert isinstance(chart, kind) and got["elements"] == elements and members.items() <= got.items(), (code, got)
        both = drawn(sb.run_code("f, (a, b) = plt.subplots(1, 2); f.suptitle('Both'); a.plot([1, 2]); b.bar(['x'], [1]); plt.show()"))
        assert isinstance(both, SuperChart) and both.title == "Both" and [type(c) for c in both.elements] == [LineChart, BarChart], both.to_dict()
        table = sb.run_code("pd.DataFrame({'a': [1, 2], 'b': ['x', None]})").results[0]
        assert table.data == {"a": [1, 2], "b": ["x", None]} and "<table" in table.html and table.is_main_result, table.formats()


if __name__ == "__main__":
    main()
    os._exit(0)  # as sdk.py does
