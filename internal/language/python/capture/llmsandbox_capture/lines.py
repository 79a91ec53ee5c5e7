"""Lines, and points drawn as lines without a stroke."""


def lines(ax, x, y, legend, budget, taken):
    series = []
    for line in ax.get_lines():
        if id(line) in taken or not line.get_visible():
            continue
        xs, ys = line.get_data(orig=True)
        if len(ys) == 0:  # stands for something in a legend
            continue
        one = {"type": "scatter" if line.get_linestyle() in ("None", "", " ") else "line"}
        label = legend.label(line)
        if label:
            one["label"] = label
        if hasattr(line, "get_data_3d"):
            xs, ys, zs = line.get_data_3d()
            one["z"] = budget.values(zs)
        # A line across the whole of the axes has no place in the other direction.
        across = line.get_transform()
        if across == ax.transData or across.contains_branch_seperately(ax.transData)[0]:
            one["x"] = x.values(xs, budget)
        if across == ax.transData or across.contains_branch_seperately(ax.transData)[1]:
            one["y"] = y.values(ys, budget)
        if "x" in one or "y" in one:
            series.append(one)
    return series
