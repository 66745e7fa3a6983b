"""Reductions over pairs: energies, kernels, densities, with distances by loops, by names or by rows."""

from __future__ import annotations

import numpy as np

from bench.case import Size
from bench.generated.draw import Draw, Drawn, Inputs, total_of
from bench.generated.tree import (
    Expr,
    Function,
    New,
    Select,
    Size as Length,
    Sum,
    Var,
    exp,
    log,
    sqrt,
    square,
    tanh,
)
from bench.generated.writer import Writer


def draw(d: Draw) -> Drawn:
    """A program of the family."""
    axes = d.integer(1, 6)
    style = d.one_of("loop", "named", "rows", "called")
    pairs, reduction = d.one_of("half", "all", "two sets"), d.one_of("total", "total", "by particle", "log density")
    kernel, has_cutoff = d.one_of("gauss", "coulomb", "lennard-jones", "matern", "cauchy", "tanh"), d.chance(0.3)
    has_scales, has_box = d.chance(0.4), d.chance(0.25) and style in ("loop", "named")
    if reduction == "log density":
        kernel, has_cutoff = d.one_of("gauss", "cauchy"), False
    f = Writer("loss")
    x = f.parameter("x", 2)
    y = f.parameter("y", 2) if pairs == "two sets" else x
    weight, scales = f.parameter("weight", 1), f.parameter("scales", 1)
    n, m = f.sizes(x, "n", "axes")
    others = Length(y) if pairs == "two sets" else n
    distance = _distance_function(has_scales) if style == "called" else None
    each = f.let("each", New((n,))) if reduction == "by particle" else None
    total = f.let("total", 0.0)
    with f.loop("i", 0, n) as i:
        if reduction == "log density":
            f.let("density", 0.05)
        with f.loop("j", i + 1 if pairs == "half" else 0, others) as j:
            r2 = _square(f, style, distance, x, y, (i, j), (axes, m), scales if has_scales else None, has_box)
            amount = weight[i] * weight[j] * _kernel(f, kernel, r2) if pairs != "two sets" else _kernel(f, kernel, r2)
            if has_cutoff:
                with f.when(r2 < 2.0):
                    _gather(f, reduction, each, (i, j), amount, pairs)
            else:
                _gather(f, reduction, each, (i, j), amount, pairs)
        if reduction == "log density":
            f.add(total, log(Var("density")))
    if each is not None:
        with f.loop("i", 0, n) as i:
            f.add(total, d.one_of(square(each[i]), sqrt(1.0 + each[i] * each[i]), each[i] * weight[i]))
    number = d.lengths(5, 300, 1000)

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = number[size]
        found = {
            "x": rng.uniform(0.0, 2.0, (count, axes)),
            "weight": rng.uniform(0.5, 1.0, count + 2),
            "scales": rng.uniform(0.5, 1.5, axes),
        }
        if pairs == "two sets":
            found["y"] = rng.uniform(0.0, 2.0, (count + 2, axes))
        order = [parameter.name for parameter in loss.parameters]
        return {name: found[name] for name in order}

    functions = [*([distance] if distance else []), f.function(total)]
    loss = functions[-1]
    possible = ["x", *(["scales"] if has_scales else []), *(["weight"] if pairs != "two sets" else ["y"])]
    title = f"{kernel}, {axes}-D by {style}, {pairs}, {reduction}"
    title += f"{', cut off' if has_cutoff else ''}{', box' if has_box else ''}"
    return Drawn(title, functions, make, possible if d.chance(0.5) else ["x"])


def _gather(f: Writer, reduction: str, each: Var | None, places: tuple[Var, Var], amount: Expr, pairs: str) -> None:
    """Adds what a pair contributes to where it belongs."""
    if each is None:
        f.add(Var("density" if reduction == "log density" else "total"), amount)
        return
    value = f.let("value", amount)
    f.add(each[places[0]], value)
    if pairs == "half":
        f.add(each[places[1]], value)


def _square(
    f: Writer,
    style: str,
    distance: Function | None,
    x: Var,
    y: Var,
    places: tuple[Var, Var],
    axes: tuple[int, Var],
    scales: Var | None,
    has_box: bool,
) -> Var:
    """The square of a distance, with lengths along the axes perhaps, and in a periodic box."""
    i, j = places

    def gap(axis: Expr | int) -> Expr:
        value = x[i, axis] - y[j, axis]
        if has_box:  # the nearest image
            value = f.let("gap", value)
            value = Select(value > 1.1, value - 2.2, Select(value < -1.1, value + 2.2, value))
        return value if scales is None else value / scales[axis]

    if distance is not None:
        return f.let("r2", distance(x[i], y[j], scales) if scales is not None else distance(x[i], y[j]))
    if style == "rows":
        apart = f.let("apart", x[i] - y[j] if scales is None else (x[i] - y[j]) / scales)
        return f.let("r2", Sum(apart * apart))
    if style == "named":
        gaps = [f.let(f"d{axis}", gap(axis)) for axis in range(axes[0])]
        return f.let("r2", total_of([each * each for each in gaps]))
    r2 = f.let("r2", 0.0)
    with f.loop("a", 0, axes[1]) as a:
        each = f.let("d", gap(a))
        f.add(r2, each * each)
    return r2


def _distance_function(has_scales: bool) -> Function:
    f = Writer("squared_distance")
    a, b = f.parameter("a", 1), f.parameter("b", 1)
    scales = f.parameter("scales", 1) if has_scales else None
    [n] = f.sizes(a, "n")
    total = f.let("total", 0.0)
    with f.loop("k", 0, n) as k:
        gap = a[k] - b[k] if scales is None else (a[k] - b[k]) / scales[k]
        f.add(total, square(gap))
    return f.function(total)


def _kernel(f: Writer, kind: str, r2: Var) -> Expr:
    """A smooth function of the square of the distance."""
    if kind == "gauss":
        return exp(-0.5 * r2)
    if kind == "coulomb":
        return 1.0 / sqrt(r2 + 0.01)
    if kind == "lennard-jones":
        inverse = f.let("inverse", 1.0 / (r2 + 0.4))
        sixth = f.let("sixth", inverse * inverse * inverse)
        return 4.0 * (sixth * sixth - sixth)
    if kind == "matern":
        r = f.let("r", sqrt(3.0 * r2 + 1e-6))
        return (1.0 + r) * exp(-r)
    return 1.0 / (1.0 + r2) if kind == "cauchy" else tanh(1.0 - r2)
