"""Clouds of points, areas and meshes."""


def collections(ax, x, y, legend, budget, taken):
    series = []
    for c in ax.collections:
        if id(c) in taken or not c.get_visible():
            continue
        one = None
        kinds = [k.__name__ for k in type(c).__mro__]
        if "Path3DCollection" in kinds:
            xs, ys, zs = c._offsets3d
            one = {"type": "scatter", "x": x.values(xs, budget), "y": y.values(ys, budget), "z": budget.values(zs)}
        elif "PathCollection" in kinds and len(c.get_offsets()) and c.get_offset_transform().contains_branch(ax.transData):
            offsets = c.get_offsets()
            one = {"type": "scatter", "x": x.values(offsets[:, 0], budget), "y": y.values(offsets[:, 1], budget)}
        elif "QuadMesh" in kinds:
            one = _mesh(c, budget)
        elif "PolyCollection" in kinds and "Poly3DCollection" not in kinds and len(c.get_paths()) == 1 \
                and c.get_transform().contains_branch(ax.transData):
            one = _area(c.get_paths()[0].vertices.tolist(), x, y, budget)
        if one is not None:
            label = legend.label(c)
            if label:
                one["label"] = label
            series.append(one)
    return series


def _mesh(mesh, budget):
    values, corners = mesh.get_array(), mesh.get_coordinates()
    if values is None:
        return None
    rows, columns = corners.shape[0] - 1, corners.shape[1] - 1
    if values.size != rows * columns:  # drawn with colours that flow from point to point
        rows, columns = rows + 1, columns + 1
    if values.size != rows * columns:
        return None
    return {"type": "heatmap", "z": budget.rows(values.reshape(rows, columns).tolist())}


def _area(vertices, x, y, budget):
    """The two edges of what is filled between, or the outline of another shape."""
    n = (len(vertices) - 3) // 2
    there, back = vertices[1 : n + 1], vertices[n + 2 : 2 * n + 2][::-1]
    if n < 1 or len(vertices) != 2 * n + 3 or any(abs(a[0] - b[0]) > 1e-9 * (1 + abs(a[0])) for a, b in zip(there, back)):
        return {"type": "area", "x": x.values([v[0] for v in vertices], budget), "y": y.values([v[1] for v in vertices], budget)}
    low = [min(a[1], b[1]) for a, b in zip(there, back)]
    high = [max(a[1], b[1]) for a, b in zip(there, back)]
    one = {"type": "area", "x": x.values([a[0] for a in there], budget), "y": y.values(high, budget)}
    if any(low):
        one["low"] = y.values(low, budget)
    return one
