"""Gathers and scatters by index arrays: sparse matrices, neighbour lists, tables, meshes, images at points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.case import Size
from bench.generated.draw import Draw, Drawn, Inputs, lengths, total_of
from bench.generated.tree import At, Copy, Expr, New, Num, Var, exp, log, sqrt, square, tanh, truncate
from bench.generated.writer import Writer


def draw(d: Draw) -> Drawn:
    """A program of the family."""
    return d.one_of(_sparse, _sparse, _springs, _springs, _histogram, _embedding, _mesh, _image)(d)


def _take(array: Var, *indices: Expr, wraps: bool) -> Expr:
    """An element or a row of an array, by indices that count from the end where they are negative."""
    return At(array, indices, wraps)


def _indices(rng: np.random.Generator, shape: Any, count: int, wraps: bool) -> np.ndarray:
    """Random indices into an axis; with ``wraps`` a part of them counts from the end."""
    found = rng.integers(0, count, shape)
    return np.where(rng.random(shape) < 0.3, found - count, found) if wraps else found


def _activation(d: Draw) -> Callable[[Expr], Expr]:
    return d.one_of(lambda x: x, tanh, lambda x: x / (1.0 + x * x), lambda x: 1.0 / (1.0 + exp(-x)))


def _sparse(d: Draw) -> Drawn:
    """Products of a sparse matrix by rows, one after the other, with something done to each entry."""
    wraps, activation = d.chance(0.3), _activation(d)
    kind = d.one_of("product", "jacobi", "product", "rows of a matrix")
    rows, width = d.lengths(6, 2000, 40000), d.integer(3, 40)
    columns = d.integer(2, 8)
    steps = lengths(2, max(1, min(20, round(1.5e6 / (rows["full"] * width)))))
    f = Writer("loss")
    data, indices, starts = (
        f.parameter("data", 1),
        f.parameter("indices", 1, "long"),
        f.parameter("starts", 1, "long"),
    )
    is_matrix = kind == "rows of a matrix"
    x0, b = f.parameter("x0", 2 if is_matrix else 1), f.parameter("b", 1)
    count = f.parameter("steps", 0, "long")
    names = f.sizes(x0, "n", "m") if is_matrix else f.sizes(x0, "n")
    n = names[0]
    x, y = f.let("x", Copy(x0)), f.let("y", Copy(x0) if d.chance(0.5) else 0.0 * x0)
    starts_at_b, halves = d.chance(0.5), kind == "jacobi"
    with f.loop("step", 0, count):
        with f.loop("i", 0, n) as i:
            if is_matrix:
                columns_of = names[1]
                with f.loop("c", 0, columns_of) as c:
                    f.set(y[i, c], b[i])
                with f.loop("k", starts[i], starts[i + 1]) as k, f.loop("c", 0, columns_of) as c:
                    f.add(y[i, c], data[k] * _take(x, indices[k], c, wraps=wraps))
                with f.loop("c", 0, columns_of) as c:
                    f.set(y[i, c], activation(y[i, c]))
            else:
                total = f.let("total", b[i] if starts_at_b else 0.0)
                with f.loop("k", starts[i], starts[i + 1]) as k:
                    f.add(total, data[k] * _take(x, indices[k], wraps=wraps))
                f.set(y[i], b[i] - 0.5 * total if halves else activation(total))
        f.rotate(x, y)
    result = f.let("result", 0.0)
    with f.loop("i", 0, n) as i:
        if is_matrix:
            with f.loop("c", 0, names[1]) as c:
                f.add(result, square(x[i, c]))
        else:
            f.add(result, d.one_of(square(x[i] - b[i]), x[i] * x[i], x[i] * b[i]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = rows[size] if not is_matrix else max(6, rows[size] // columns)
        each = rng.integers(1, 2 * width, count) if size == "full" else rng.integers(0, 5, count)
        ends = np.concatenate([[0], np.cumsum(each)])
        scale = 0.8 / np.repeat(np.maximum(each, 1), each)
        shape = (count, columns) if is_matrix else (count,)
        return {
            "data": rng.uniform(-1.0, 1.0, ends[-1]) * scale,
            "indices": _indices(rng, ends[-1], count, wraps),
            "starts": ends,
            "x0": rng.standard_normal(shape),
            "b": rng.standard_normal(count),
            "steps": steps[size],
        }

    active = d.one_of(["data", "x0", "b"], ["data"], ["x0"], ["data", "x0"])
    title = f"sparse {kind}{', negative indices' if wraps else ''}"
    return Drawn(title, [f.function(result)], make, active)


def _springs(d: Draw) -> Drawn:
    """Forces or energies between points and their neighbours in a list."""
    wraps, axes = d.chance(0.4), d.integer(1, 3)
    number, width = d.lengths(7, 2000, 30000), d.integer(4, 24)
    scatters, by_rows = d.chance(0.5), d.chance(0.3)
    law = d.one_of("spring", "gauss", "soft", "inverse")
    f = Writer("loss")
    p, neighbours = f.parameter("p", 2), f.parameter("neighbours", 2, "long")
    stiffness = f.parameter("stiffness", 1)
    f.sizes(neighbours, "n", "m")
    n, m = Var("n", of="long"), Var("m", of="long")
    force = f.let("force", New((n, Num(axes)))) if scatters else None
    total = f.let("total", 0.0)
    with f.loop("i", 0, n) as i, f.loop("k", 0, m) as k:
        j = f.let("j", neighbours[i, k])
        if by_rows:
            apart = f.let("apart", p[i] - _take(p, j, wraps=wraps))
            gaps: list[Expr] = [apart[axis] for axis in range(axes)]
        else:
            gaps = [f.let(f"d{axis}", p[i, axis] - _take(p, j, Num(axis), wraps=wraps)) for axis in range(axes)]
        r2 = f.let("r2", total_of([gap * gap for gap in gaps]) + 0.01)
        energy, slope = _law(f, law, r2, stiffness[i])
        if force is None:
            f.add(total, energy)
        else:
            f.let("s", slope)
            for axis, gap in enumerate(gaps):
                f.add(force[i, axis], Var("s") * gap)
                f.set(_take(force, j, Num(axis), wraps=wraps), Var("s") * gap, "-")
    if force is not None:
        with f.loop("i", 0, n) as i:
            for axis in range(axes):
                f.add(total, square(force[i, axis]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = number[size]
        offsets = rng.integers(1, max(2, min(count - 1, 4 * width)), (count, min(width, count - 1)))
        found = (np.arange(count)[:, None] + offsets) % count
        found = np.where(rng.random(found.shape) < 0.3, found - count, found) if wraps else found
        return {
            "p": rng.uniform(0.0, 2.0, (count, axes)),
            "neighbours": found,
            "stiffness": rng.uniform(0.5, 1.5, count),
        }

    active = ["p", "stiffness"] if d.chance(0.5) else ["p"]
    title = (
        f"neighbour list, {law}, {axes}-D, {'forces' if scatters else 'energy'}{', negative indices' if wraps else ''}"
    )
    return Drawn(title, [f.function(total)], make, active)


def _law(f: Writer, law: str, r2: Var, stiffness: Expr) -> tuple[Expr, Expr]:
    """The energy of a pair, and the factor of its force."""
    if law == "spring":
        r = f.let("r", sqrt(r2))
        return 0.5 * stiffness * square(r - 1.0), stiffness * (r - 1.0) / r
    if law == "gauss":
        g = f.let("g", exp(-0.5 * r2))
        return stiffness * g, stiffness * g
    if law == "soft":
        return stiffness * log(1.0 + r2), stiffness / (1.0 + r2)
    inverse = f.let("inverse", 1.0 / (r2 + 0.3))
    return stiffness * inverse * inverse, stiffness * inverse * inverse * inverse


def _histogram(d: Draw) -> Drawn:
    """A scatter into a table that is small against what is added."""
    wraps = d.chance(0.3)
    number, bins = d.lengths(20, 100000, 1000000), d.one_of(4, 16, 64, 300, 2000)
    planes = d.one_of(1, 1, 3)
    f = Writer("loss")
    x, index, weight = f.parameter("x", 1), f.parameter("index", 1, "long"), f.parameter("weight", 1)
    expected = f.parameter("expected", 1)
    [count] = f.sizes(x, "n")
    [size] = f.sizes(expected, "bins")
    table = f.let("table", New((size,) if planes == 1 else (size, Num(planes))))
    value = d.one_of(
        lambda x, w: w * x, lambda x, w: w * exp(0.5 * x), lambda x, w: w * x * x, lambda x, w: w * tanh(x)
    )
    with f.loop("i", 0, count) as i:
        b = f.let("b", index[i])
        amount: Expr = f.let("amount", value(x[i], weight[i]))
        for plane in range(planes):
            place = (b,) if planes == 1 else (b, Num(plane))
            f.add(_take(table, *place, wraps=wraps), amount)
            amount = amount * x[i]
    total = f.let("total", 0.0)
    reads = d.chance(0.4)
    with f.loop("b", 0, size) as b:
        cells = [table[b]] if planes == 1 else [table[b, plane] for plane in range(planes)]
        for cell in cells:
            f.add(total, d.one_of(square(cell - expected[b]), expected[b] * log(1.0 + cell * cell), cell * cell))
    if reads:
        with f.loop("i", 0, count) as i:
            place = (index[i],) if planes == 1 else (index[i], Num(0))
            f.add(total, 0.01 * x[i] * _take(table, *place, wraps=wraps))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = min(bins, 5) if size == "small" else bins
        entries = number[size]
        return {
            "x": rng.uniform(0.2, 1.2, entries),
            "index": _indices(rng, entries, count, wraps),
            "weight": rng.uniform(0.5, 1.0, entries) * count / entries,
            "expected": rng.uniform(0.5, 1.0, count),
        }

    active = d.one_of(["x"], ["x", "weight"], ["x", "weight", "expected"])
    title = (
        f"scatter into a table of {bins}{f' × {planes}' if planes > 1 else ''}{', negative indices' if wraps else ''}"
    )
    return Drawn(title, [f.function(total)], make, active)


def _embedding(d: Draw) -> Drawn:
    """Rows of tables by index, and their products: factors of a matrix, or of words."""
    wraps, width = d.chance(0.3), d.integer(2, 24)
    number = d.lengths(12, 10000, 100000)
    kind = d.one_of("squares", "logistic", "distance")
    f = Writer("loss")
    left, right = f.parameter("left", 2), f.parameter("right", 2)
    rows, columns = f.parameter("rows", 1, "long"), f.parameter("columns", 1, "long")
    target = f.parameter("target", 1)
    [count] = f.sizes(target, "n")
    _, m = f.sizes(left, "entries", "m")
    views, a, b = d.chance(0.4), Var("a", 1), Var("b", 1)
    total = f.let("total", 0.0)
    with f.loop("e", 0, count) as e:
        i, j = f.let("i", rows[e]), f.let("j", columns[e])
        if views:
            f.set(a, _take(left, i, wraps=wraps))
            f.set(b, _take(right, j, wraps=wraps))
        s = f.let("s", 0.0)
        with f.loop("k", 0, m) as k:
            x = a[k] if views else _take(left, i, k, wraps=wraps)
            y = b[k] if views else _take(right, j, k, wraps=wraps)
            f.add(s, square(x - y) if kind == "distance" else x * y)
        if kind == "logistic":
            f.add(total, log(1.0 + exp(-target[e] * s)))
        elif kind == "distance":
            f.add(total, square(sqrt(s + 0.1) - target[e]))
        else:
            f.add(total, square(s - target[e]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        entries = number[size]
        sides = max(3, entries // 20), max(3, entries // 30)
        return {
            "left": rng.standard_normal((sides[0], width)) / np.sqrt(width),
            "right": rng.standard_normal((sides[1], width)) / np.sqrt(width),
            "rows": _indices(rng, entries, sides[0], wraps),
            "columns": _indices(rng, entries, sides[1], wraps),
            "target": rng.choice([-1.0, 1.0], entries),
        }

    title = f"rows of two tables, {kind}, width {width}{', negative indices' if wraps else ''}"
    return Drawn(title, [f.function(total)], make, ["left", "right"])


def _mesh(d: Draw) -> Drawn:
    """Triangles: energies, or contributions to the residual at their corners."""
    number = d.lengths(6, 10000, 100000)
    scatters, wraps = d.chance(0.6), d.chance(0.2)
    f = Writer("loss")
    p, u = f.parameter("p", 2), f.parameter("u", 1)
    triangles, conductivity = f.parameter("triangles", 2, "long"), f.parameter("conductivity", 1)
    count, _ = f.sizes(triangles, "n", "corners")
    [nodes] = f.sizes(u, "nodes")
    residual = f.let("residual", New((nodes,)))
    total = f.let("total", 0.0)
    with f.loop("t", 0, count) as t:
        corners = [f.let(name, triangles[t, number]) for number, name in enumerate("abc")]
        x = [f.let(f"x{n}", _take(p, corner, Num(0), wraps=wraps)) for n, corner in enumerate(corners)]
        y = [f.let(f"y{n}", _take(p, corner, Num(1), wraps=wraps)) for n, corner in enumerate(corners)]
        values = [f.let(f"u{n}", _take(u, corner, wraps=wraps)) for n, corner in enumerate(corners)]
        twice = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        area = f.let("area", sqrt(square(twice) + 0.01))
        b = [f.let(f"b{n}", y[(n + 1) % 3] - y[(n + 2) % 3]) for n in range(3)]
        c = [f.let(f"c{n}", x[(n + 2) % 3] - x[(n + 1) % 3]) for n in range(3)]
        gx = f.let("gx", total_of([v * w for v, w in zip(values, b, strict=True)]) / area)
        gy = f.let("gy", total_of([v * w for v, w in zip(values, c, strict=True)]) / area)
        k = f.let("k", conductivity[t] / (1.0 + 0.1 * (gx * gx + gy * gy)))
        if scatters:
            for n, corner in enumerate(corners):
                f.add(_take(residual, corner, wraps=wraps), 0.5 * k * (gx * b[n] + gy * c[n]))
        else:
            f.add(total, 0.25 * k * area * (gx * gx + gy * gy))
    with f.loop("i", 0, nodes) as i:
        f.add(total, square(residual[i]) if scatters else 0.1 * u[i] * u[i])

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        elements, nodes = number[size], max(4, number[size] // 2)
        found = (rng.integers(0, nodes, (elements, 1)) + np.array([0, 1, 2])) % nodes
        return {
            "p": rng.uniform(0.0, 1.0, (nodes, 2)),
            "u": rng.standard_normal(nodes),
            "triangles": np.where(rng.random(found.shape) < 0.3, found - nodes, found) if wraps else found,
            "conductivity": rng.uniform(0.5, 1.5, elements),
        }

    active = d.one_of(["u", "conductivity"], ["p", "u"], ["p", "u", "conductivity"], ["u"])
    title = f"triangles, {'residual' if scatters else 'energy'}{', negative indices' if wraps else ''}"
    return Drawn(title, [f.function(total)], make, active)


def _image(d: Draw) -> Drawn:
    """An image between its pixels, at points that move: registration, particles in a grid."""
    number, side = d.lengths(10, 20000, 200000), d.lengths(6, 32, 256)
    scatters = d.chance(0.4)
    f = Writer("loss")
    image, x, y = f.parameter("image", 2), f.parameter("x", 1), f.parameter("y", 1)
    shift, target = f.parameter("shift", 1), f.parameter("target", 1)
    [count] = f.sizes(x, "count")
    n, m = f.sizes(image, "n", "m")
    grid = f.let("grid", New((n, m))) if scatters else None
    total = f.let("total", 0.0)
    moves = d.one_of(True, False)
    with f.loop("e", 0, count) as e:
        px = f.let("px", x[e] + shift[0] + shift[1] * x[e] + (shift[2] * y[e] if moves else 0.0))
        py = f.let("py", y[e] + shift[3] + (shift[4] * x[e] + shift[5] * y[e] if moves else 0.0))
        i, j = f.let("i", truncate(px)), f.let("j", truncate(py))
        a, b = f.let("a", px - i), f.let("b", py - j)
        weights = [(1.0 - a) * (1.0 - b), a * (1.0 - b), (1.0 - a) * b, a * b]
        places = [(i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1)]
        if grid is not None:
            for weight, place in zip(weights, places, strict=True):
                f.add(grid[place], target[e] * weight)
        else:
            value = f.let("value", total_of([w * image[p] for w, p in zip(weights, places, strict=True)]))
            f.add(total, d.one_of(square(value - target[e]), value * target[e]))
    if grid is not None:
        with f.nest(("i", "j"), (0, 0), (n, m)) as (i, j):
            f.add(total, square(grid[i, j] - image[i, j]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        # Points are a tenth of a pixel away from where they change from one pixel to the next, shifts are smaller.
        def points(extent: int) -> np.ndarray:
            return rng.integers(1, extent - 2, number[size]) + rng.uniform(0.1, 0.9, number[size])

        n, m = side[size], side[size] + 3
        shifts = rng.uniform(-1.0, 1.0, 6) * np.array([0.03, 0.03 / n, 0.03 / m, 0.03, 0.03 / n, 0.03 / m])
        return {
            "image": rng.uniform(0.0, 1.0, (n, m)),
            "x": points(n),
            "y": points(m),
            "shift": shifts,
            "target": rng.uniform(0.0, 1.0, number[size]),
        }

    active = d.one_of(["shift"], ["image", "shift"], ["x", "y"], ["image"], ["image", "x", "y"])
    return Drawn(f"bilinear {'deposit on' if scatters else 'values of'} a grid", [f.function(total)], make, active)
