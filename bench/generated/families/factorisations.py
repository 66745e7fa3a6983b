"""Elimination and factorisation in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.case import Size
from bench.generated.draw import Draw, Drawn, Inputs, lengths
from bench.generated.tree import Copy, Expr, Function, New, Select, Size as Length, Var, exp, log, sqrt, square
from bench.generated.writer import Writer


def draw(d: Draw) -> Drawn:
    """A program of the family."""
    return d.one_of(_dense, _dense, _dense, _tridiagonal, _banded, _orthogonal, _triangular)(d)


def _loss(d: Draw) -> Callable[[Expr], Expr]:
    """Cost of an entry of the result."""
    return d.one_of(
        square,
        lambda x: log(1.0 + x * x),
        lambda x: sqrt(1.0 + x * x),
        lambda x: exp(-0.5 * x * x),
        lambda x: x * x * x - x,
        lambda x: x / (1.0 + x * x),
    )


def _dense(d: Draw) -> Drawn:
    """A factorisation of a dense matrix, given or made by a kernel, in the function or in one that is called."""
    kind = d.one_of("cholesky left", "cholesky right", "cholesky rows", "lu", "lu rows", "ldl", "gauss-jordan")
    side, called, makes = d.lengths(5, 60, 200), d.chance(0.4), d.chance(0.4)
    solves = d.chance(0.6) and kind != "gauss-jordan"
    symmetric = kind.startswith(("cholesky", "ldl"))
    f = Writer("loss")
    given = f.parameter("points" if makes else "matrix", 2)
    b, parameters = f.parameter("b", 1), f.parameter("parameters", 1)
    [n] = f.sizes(b, "n")
    if makes:
        a = f.let("a", New((n, n)))
        _fill_by_kernel(d, f, a, given, parameters, symmetric)
    else:
        a = f.let("a", Copy(given))
    x = f.let("x", Copy(b))
    helpers: list[Function] = []
    if called:
        helpers = [_factor_function(kind)]
        f.do(helpers[0](a, x))
    else:
        _FACTORS[kind](f, a, x, n)
    total = f.let("total", 0.0)
    cost = d.one_of(lambda i: 0.5 * b[i] * x[i], lambda i: _loss(d)(x[i]))
    if solves:
        _solve(f, kind, a, x, n)
        with f.loop("i", 0, n) as i:
            f.add(total, cost(i))
    with f.loop("i", 0, n) as i:
        f.add(total, log(a[i, i]) if kind != "gauss-jordan" else cost(i))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = side[size]
        noise = rng.standard_normal((count, count)) / np.sqrt(count)
        matrix = 0.4 * (noise @ noise.T) + np.eye(count) if symmetric else 0.3 * noise + 1.5 * np.eye(count)
        first = rng.uniform(0.0, 2.0, (count, 3)) if makes else matrix
        values = {"b": rng.standard_normal(count), "parameters": rng.uniform(0.8, 1.2, 3)}
        return {given.name: first} | values

    active = [given.name, *(["parameters"] if makes else []), *(["b"] if solves and d.chance(0.5) else [])]
    extras = {"with solution": solves, "of a kernel": makes, "in a function": called}
    title = " ".join([kind, *(extra for extra, has in extras.items() if has)])
    return Drawn(title, [*helpers, f.function(total)], make, active)


def _fill_by_kernel(d: Draw, f: Writer, a: Var, points: Var, parameters: Var, symmetric: bool) -> None:
    n, axes = Length(a), Length(points, 1)
    half = symmetric and d.chance(0.5)
    with f.loop("i", 0, n) as i:
        with f.loop("j", 0, i + 1 if half else n) as j:
            r2 = f.let("r2", 0.0)
            with f.loop("k", 0, axes) as k:
                f.add(r2, square(points[i, k] - points[j, k]))
            value = f.let("value", parameters[0] * exp(-0.5 * r2 / parameters[1]))
            if not symmetric:
                f.set(value, 0.3 + 0.1 * points[j, 0], "*")
            f.set(a[i, j], value)
            if half:
                f.set(a[j, i], value)
        f.add(a[i, i], (1.0 if symmetric else 4.0) + parameters[2])


def _factor_function(kind: str) -> Function:
    f = Writer("factorise")
    a, x = f.parameter("a", 2), f.parameter("x", 1)
    [n] = f.sizes(x, "n")
    _FACTORS[kind](f, a, x, n)
    return f.function()


def _cholesky_left(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("j", 0, n) as j:
        s = f.let("s", a[j, j])
        with f.loop("k", 0, j) as k:
            f.set(s, a[j, k] * a[j, k], "-")
        pivot = f.let("pivot", sqrt(s))
        f.set(a[j, j], pivot)
        with f.loop("i", j + 1, n) as i:
            f.set(s, a[i, j])
            with f.loop("k", 0, j) as k:
                f.set(s, a[i, k] * a[j, k], "-")
            f.set(a[i, j], s / pivot)


def _cholesky_right(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("k", 0, n) as k:
        f.set(a[k, k], sqrt(a[k, k]))
        with f.loop("i", k + 1, n) as i:
            f.set(a[i, k], a[k, k], "/")
        with f.loop("j", k + 1, n) as j, f.loop("i", j, n) as i:
            f.set(a[i, j], a[i, k] * a[j, k], "-")


def _cholesky_rows(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("i", 0, n) as i, f.loop("j", 0, i + 1) as j:
        s = f.let("s", a[i, j])
        with f.loop("k", 0, j) as k:
            f.set(s, a[i, k] * a[j, k], "-")
        with f.when(i > j):
            f.set(a[i, j], s / a[j, j])
        with f.otherwise():
            f.set(a[i, i], sqrt(s))


def _lu(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("k", 0, n) as k, f.loop("i", k + 1, n) as i:
        f.set(a[i, k], a[k, k], "/")
        with f.loop("j", k + 1, n) as j:
            f.set(a[i, j], a[i, k] * a[k, j], "-")


def _lu_rows(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("i", 0, n) as i:
        with f.loop("j", 0, i) as j:
            s = f.let("s", a[i, j])
            with f.loop("k", 0, j) as k:
                f.set(s, a[i, k] * a[k, j], "-")
            f.set(a[i, j], s / a[j, j])
        with f.loop("j", i, n) as j:
            s = f.let("s", a[i, j])
            with f.loop("k", 0, i) as k:
                f.set(s, a[i, k] * a[k, j], "-")
            f.set(a[i, j], s)


def _ldl(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("j", 0, n) as j:
        with f.loop("k", 0, j) as k:
            f.set(a[j, j], a[j, k] * a[j, k] * a[k, k], "-")
        with f.loop("i", j + 1, n) as i:
            with f.loop("k", 0, j) as k:
                f.set(a[i, j], a[i, k] * a[j, k] * a[k, k], "-")
            f.set(a[i, j], a[j, j], "/")


def _gauss_jordan(f: Writer, a: Var, x: Var, n: Var) -> None:
    with f.loop("k", 0, n) as k:
        inverse = f.let("inverse", 1.0 / a[k, k])
        with f.loop("j", k, n) as j:
            f.set(a[k, j], inverse, "*")
        f.set(x[k], inverse, "*")
        for start, stop in ((0, k), (k + 1, n)):
            with f.loop("i", start, stop) as i:
                factor = f.let("factor", a[i, k])
                with f.loop("j", k, n) as j:
                    f.set(a[i, j], factor * a[k, j], "-")
                f.set(x[i], factor * x[k], "-")


_FACTORS: dict[str, Callable[[Writer, Var, Var, Var], None]] = {
    "cholesky left": _cholesky_left,
    "cholesky right": _cholesky_right,
    "cholesky rows": _cholesky_rows,
    "lu": _lu,
    "lu rows": _lu_rows,
    "ldl": _ldl,
    "gauss-jordan": _gauss_jordan,
}


def _solve(f: Writer, kind: str, a: Var, x: Var, n: Var) -> None:
    """Forward and back substitution."""
    has_unit = not kind.startswith("cholesky")
    with f.loop("i", 0, n) as i:
        with f.loop("j", 0, i) as j:
            f.set(x[i], a[i, j] * x[j], "-")
        if not has_unit:
            f.set(x[i], a[i, i], "/")
    if kind == "ldl":
        with f.loop("i", 0, n) as i:
            f.set(x[i], a[i, i], "/")
    with f.loop("i", n - 1, -1, -1) as i:
        with f.loop("j", i + 1, n) as j:
            f.set(x[i], (a[i, j] if kind.startswith("lu") else a[j, i]) * x[j], "-")
        if kind != "ldl":
            f.set(x[i], a[i, i], "/")


def _tridiagonal(d: Draw) -> Drawn:
    """Elimination of a tridiagonal system, in steps of an implicit scheme perhaps; of many right-hand sides perhaps."""
    count, steps = d.lengths(6, 5000, 60000), lengths(2, d.one_of(2, 2, 5))
    copies, periodic = d.chance(0.5), d.chance(0.3)
    f = Writer("loss")
    lower, diagonal, upper = f.parameter("lower", 1), f.parameter("diagonal", 1), f.parameter("upper", 1)
    right, repeats = f.parameter("right", 1), f.parameter("steps", 0, "long")
    [n] = f.sizes(diagonal, "n")
    x = f.let("x", Copy(right))
    work = f.let("work", New((n,)))
    with f.loop("step", 0, repeats):
        if copies:
            f.set(work, Copy(diagonal))
            with f.loop("i", 1, n) as i:
                factor = f.let("factor", lower[i] / work[i - 1])
                f.set(work[i], factor * upper[i - 1], "-")
                f.set(x[i], factor * x[i - 1], "-")
            f.set(x[n - 1], work[n - 1], "/")
            with f.loop("i", n - 2, -1, -1) as i:
                f.set(x[i], (x[i] - upper[i] * x[i + 1]) / work[i])
        else:
            f.set(work[0], upper[0] / diagonal[0])
            f.set(x[0], x[0] / diagonal[0])
            with f.loop("i", 1, n) as i:
                pivot = f.let("pivot", 1.0 / (diagonal[i] - lower[i] * work[i - 1]))
                f.set(work[i], upper[i] * pivot)
                f.set(x[i], (x[i] - lower[i] * x[i - 1]) * pivot)
            with f.loop("i", n - 2, -1, -1) as i:
                f.set(x[i], work[i] * x[i + 1], "-")
        if periodic:
            f.add(x[0], 0.1 * x[n - 1])
    total, cost = f.let("total", 0.0), _loss(d)
    with f.loop("i", 0, n) as i:
        f.add(total, cost(x[i]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        n = count[size]
        return {
            "lower": rng.uniform(-0.5, -0.1, n),
            "diagonal": rng.uniform(1.5, 2.0, n),
            "upper": rng.uniform(-0.5, -0.1, n),
            "right": rng.standard_normal(n),
            "steps": steps[size],
        }

    active = d.one_of(["lower", "diagonal", "upper", "right"], ["diagonal"], ["right"], ["diagonal", "right"])
    return Drawn(f"tridiagonal{', a copy of the diagonal' if copies else ''}", [f.function(total)], make, active)


def _banded(d: Draw) -> Drawn:
    """Cholesky of a matrix in bands, stored by diagonals."""
    count, width = d.lengths(8, 2000, 20000), d.integer(2, 12)
    f = Writer("loss")
    bands, b = f.parameter("bands", 2), f.parameter("b", 1)
    n, m = f.sizes(bands, "n", "m")
    a, x = f.let("a", Copy(bands)), f.let("x", Copy(b))
    with f.loop("j", 0, n) as j:
        f.set(a[j, 0], sqrt(a[j, 0]))
        stop = f.let("stop", _lesser(m, n - j))
        with f.loop("k", 1, stop) as k:
            f.set(a[j, k], a[j, 0], "/")
        with f.loop("k", 1, stop) as k, f.loop("l", k, stop) as other:
            f.set(a[j + k, other - k], a[j, k] * a[j, other], "-")
        f.set(x[j], a[j, 0], "/")
        with f.loop("k", 1, stop) as k:
            f.set(x[j + k], a[j, k] * x[j], "-")
    total, cost = f.let("total", 0.0), _loss(d)
    with f.loop("i", 0, n) as i:
        f.add(total, log(a[i, 0]) + 0.5 * cost(x[i]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        m = 3 if size == "small" else width
        found = rng.uniform(-0.5, 0.5, (count[size], m)) / m
        found[:, 0] = rng.uniform(1.5, 2.0, count[size])
        return {"bands": found, "b": rng.standard_normal(count[size])}

    return Drawn(f"Cholesky of {width} bands", [f.function(total)], make, d.one_of(["bands", "b"], ["bands"]))


def _lesser(a: Expr, b: Expr) -> Expr:
    return Select(a < b, a, b)


def _orthogonal(d: Draw) -> Drawn:
    """Orthogonal columns by Gram and Schmidt, or reflections by Householder, in place."""
    rows, columns, householder = d.lengths(6, 100, 400), d.lengths(3, 16, 60), d.chance(0.5)
    f = Writer("loss")
    matrix, b = f.parameter("matrix", 2), f.parameter("b", 1)
    n, m = f.sizes(matrix, "n", "m")
    a, x = f.let("a", Copy(matrix)), f.let("x", Copy(b))
    total, cost, by_product = f.let("total", 0.0), _loss(d), d.chance(0.5)
    with f.loop("k", 0, m) as k:
        s = f.let("s", 0.0)
        with f.loop("i", k if householder else 0, n) as i:
            f.add(s, a[i, k] * a[i, k])
        norm = f.let("norm", sqrt(s))
        f.add(total, log(norm))
        if householder:
            f.add(a[k, k], norm)
            scale = f.let("scale", 1.0 / (norm * a[k, k]))
            with f.loop("j", k + 1, m) as j:
                _reflect(f, a, k, n, scale, lambda i, j=j: a[i, j])
            _reflect(f, a, k, n, scale, lambda i: x[i])
        else:
            if by_product:
                f.let("scale", 1.0 / norm)
            with f.loop("i", 0, n) as i:
                f.set(a[i, k], Var("scale") if by_product else norm, "*" if by_product else "/")
            with f.loop("j", k + 1, m) as j:
                f.set(s, 0.0)
                with f.loop("i", 0, n) as i:
                    f.add(s, a[i, k] * a[i, j])
                with f.loop("i", 0, n) as i:
                    f.set(a[i, j], s * a[i, k], "-")
    with f.loop("k", 0, m) as k:
        f.add(total, cost(x[k]) if householder else cost(a[k, k] * x[k]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        shape = rows[size], columns[size]
        matrix = rng.standard_normal(shape) + 3.0 * np.eye(*shape)
        return {"matrix": matrix, "b": rng.standard_normal(rows[size])}

    return Drawn(
        "Householder" if householder else "Gram-Schmidt",
        [f.function(total)],
        make,
        d.one_of(["matrix", "b"], ["matrix"]),
    )


def _reflect(f: Writer, a: Var, k: Var, n: Var, scale: Var, column: Callable[[Var], Expr]) -> None:
    """Takes a column to its mirror image."""
    s = f.let("dot", 0.0)
    with f.loop("i", k, n) as i:
        f.add(s, a[i, k] * column(i))
    f.set(s, scale, "*")
    with f.loop("i", k, n) as i:
        f.set(column(i), s * a[i, k], "-")


def _triangular(d: Draw) -> Drawn:
    """Substitution with a lower triangle, for several right-hand sides."""
    side, columns = d.lengths(5, 100, 400), d.lengths(2, 1, 16)
    by_columns = d.chance(0.5)
    f = Writer("loss")
    triangle, right = f.parameter("triangle", 2), f.parameter("right", 2)
    n, m = f.sizes(right, "n", "m")
    x = f.let("x", Copy(right))
    if by_columns:
        with f.loop("j", 0, n) as j:
            with f.loop("c", 0, m) as c:
                f.set(x[j, c], triangle[j, j], "/")
            with f.loop("i", j + 1, n) as i, f.loop("c", 0, m) as c:
                f.set(x[i, c], triangle[i, j] * x[j, c], "-")
    else:
        with f.loop("c", 0, m) as c, f.loop("i", 0, n) as i:
            s = f.let("s", x[i, c])
            with f.loop("j", 0, i) as j:
                f.set(s, triangle[i, j] * x[j, c], "-")
            f.set(x[i, c], s / triangle[i, i])
    total, cost = f.let("total", 0.0), _loss(d)
    with f.nest(("i", "c"), (0, 0), (n, m)) as (i, c):
        f.add(total, cost(x[i, c]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        n = side[size]
        matrix = np.tril(rng.standard_normal((n, n))) / n
        return {"triangle": matrix + 1.5 * np.eye(n), "right": rng.standard_normal((n, columns[size]))}

    active = d.one_of(["triangle", "right"], ["triangle"], ["right"])
    return Drawn(f"substitution by {'columns' if by_columns else 'rows'}", [f.function(total)], make, active)
