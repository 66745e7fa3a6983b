"""Triangular systems with many right-hand sides, and the row exchanges of a factorisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.values import Value, const_int
from irad.rules.dense.elements import DOUBLES, Scalar
from irad.rules.dense.kernel import I64, NONE, ONE, Kernel
from irad.rules.dense.library import scipy_blas
from irad.rules.dense.matrix import Matrix, Vector

_SMALL: Final = const_int(I64, 16)
"""Order up to which a loop is faster than a call of BLAS."""
TriangularForm: TypeAlias = Literal["upper", "upper_adjoint", "unit_lower", "unit_lower_adjoint"]


# ------------------------------------------------------------------------------------------------ row exchanges


def read_pivots(build: Builder, count: Value, pivots: Value, target: Value) -> None:
    """Stores LAPACK's row numbers, from 1 on, as i64.

    LAPACK's integers have 32 or 64 bits, as the library at hand was built. No row number is 0, so the second word of
    the first two numbers tells which.
    """
    Kernel(build, DOUBLES).outline("read_pivots", _read_pivots, count, pivots, target)


def has_wide_pivots(build: Builder, count: Value, pivots: Value) -> Value:
    """Test that LAPACK's integers have 64 bits; false for a single one."""
    return Kernel(build, DOUBLES).outline("has_wide_pivots", _has_wide_pivots, count, pivots, result=types.I1)


def _has_wide_pivots(k: Kernel, count: Value, pivots: Value) -> Value:
    build = k.build
    several = build.icmp("sgt", count, ONE)
    second = build.load(types.I32, build.gep(types.I32, pivots, [build.zext(several, I64)]))
    return build.and_(several, build.icmp("eq", second, const_int(types.I32, 0)))


def _read_pivots(k: Kernel, count: Value, pivots: Value, target: Value) -> None:
    build = k.build
    step = build.select(_has_wide_pivots(k, count, pivots), const_int(I64, 2), ONE)
    with k.loop(count) as i:
        word = build.load(types.I32, build.gep(types.I32, pivots, [build.mul(i, step)]))
        build.store(build.zext(word, I64), build.gep(I64, target, [i]))


def exchange_rows(a: Matrix, pivots: Value) -> None:
    """Exchanges rows as a factorisation did: `a = Pᵀ a` for A = P L U."""
    a.k.outline("exchange_rows", partial(_exchange_rows, False), a, pivots)


def restore_rows(a: Matrix, pivots: Value) -> None:
    """Takes `exchange_rows` back: `a = P a`."""
    a.k.outline("restore_rows", partial(_exchange_rows, True), a, pivots)


def _exchange_rows(backward: bool, k: Kernel, a: Matrix, pivots: Value) -> None:
    with k.loop(a.columns) as j, k.loop_down(a.rows) if backward else k.loop(a.rows) as i:
        other = k.build.sub(k.build.load(I64, k.build.gep(I64, pivots, [i])), ONE)
        a[i, j], a[other, j] = a[other, j], a[i, j]


# ------------------------------------------------------------------------------------------------ triangular systems


def solve_triangular(form: TriangularForm, factor: Matrix, b: Matrix) -> None:
    """Solves `op(T) x = b` in place of the right-hand sides.

    Args:
        form: "upper" (U x = b), "upper_adjoint" (Uᴴ x = b), "unit_lower" (L x = b, diagonal 1) or "unit_lower_adjoint"
            (Lᴴ x = b).
        factor: only its triangle is read.
        b: the right-hand sides, then the solutions.
    """
    b.k.outline(f"solve_{form}", partial(_solve, form), factor, b)


def solve_triangular_right(form: TriangularForm, factor: Matrix, b: Matrix) -> None:
    """Solves `x op(T) = b` in place, as `solve_triangular`."""
    b.k.outline(f"solve_{form}_right", partial(_solve_right, form), factor, b)


def multiply_triangular(form: TriangularForm, factor: Matrix, b: Matrix) -> None:
    """Computes `op(T) b` in place, as `solve_triangular`."""
    _call("trmm", "l", form, factor, b)


def multiply_triangular_right(form: TriangularForm, factor: Matrix, b: Matrix) -> None:
    """Computes `b op(T)` in place, as `solve_triangular`."""
    _call("trmm", "r", form, factor, b)


def _solve(form: TriangularForm, k: Kernel, factor: Matrix, b: Matrix) -> None:
    build = k.build
    by_loops = build.or_(_is_small(factor), k.same(b.columns, ONE))
    with k.when(by_loops), k.loop(b.columns) as j:
        _SOLVE[form](factor, b.column(j))
    with k.unless(by_loops):
        _call("trsm", "l", form, factor, b)


def _solve_right(form: TriangularForm, k: Kernel, factor: Matrix, b: Matrix) -> None:
    small = _is_small(factor)
    with k.when(small), k.loop(b.rows) as i:
        row = Vector(k, b.at(i, NONE), b.columns, b.leading)
        # x op(T) = b is op(T)ᴴ xᴴ = bᴴ
        if k.element.is_complex:
            row.fill(lambda j: row[j].conj())
        _SOLVE[_ADJOINT[form]](factor, row)
        if k.element.is_complex:
            row.fill(lambda j: row[j].conj())
    with k.unless(small):
        _call("trsm", "r", form, factor, b)


def _is_small(factor: Matrix) -> Value:
    return factor.k.build.icmp("sle", factor.rows, _SMALL)


def _call(routine: str, side: str, form: TriangularForm, factor: Matrix, b: Matrix) -> None:
    """Calls BLAS, which SciPy exports; Numba has no entry points to these routines."""
    k = b.k
    is_upper, is_adjoint = form.startswith("upper"), form.endswith("adjoint")
    trans = ("c" if k.element.is_complex else "t") if is_adjoint else "n"
    letters = side, "u" if is_upper else "l", trans, "n" if is_upper else "u"
    scipy_blas(k.element).call(k, routine, *letters, b.rows, b.columns, k.number(1.0), factor, b)


def _solve_upper(factor: Matrix, x: Vector) -> None:
    k = x.k
    with k.loop_down(x.size) as i:
        value = x[i] / factor[i, i]
        x[i] = value
        with k.loop(i) as row:
            x[row] = x[row] - value * factor[row, i]


def _solve_upper_adjoint(factor: Matrix, x: Vector) -> None:
    with x.k.loop(x.size) as i:
        x[i] = (x[i] - _inner_product(NONE, i, factor.column(i), x)) / factor[i, i].conj()


def _solve_unit_lower(factor: Matrix, x: Vector) -> None:
    k = x.k
    with k.loop(x.size) as i:
        value = x[i]
        with k.loop(x.size, k.after(i)) as row:
            x[row] = x[row] - value * factor[row, i]


def _solve_unit_lower_adjoint(factor: Matrix, x: Vector) -> None:
    with x.k.loop_down(x.size) as i:
        x[i] = x[i] - _inner_product(x.k.after(i), x.size, factor.column(i), x)


_ADJOINT: Final[dict[TriangularForm, TriangularForm]] = {
    "upper": "upper_adjoint",
    "upper_adjoint": "upper",
    "unit_lower": "unit_lower_adjoint",
    "unit_lower_adjoint": "unit_lower",
}
_SOLVE: Final[dict[TriangularForm, Callable[[Matrix, Vector], None]]] = {
    "upper": _solve_upper,
    "upper_adjoint": _solve_upper_adjoint,
    "unit_lower": _solve_unit_lower,
    "unit_lower_adjoint": _solve_unit_lower_adjoint,
}


def _inner_product(start: Value, end: Value, x: Vector, y: Vector) -> Scalar:
    """`xᴴ y`, of some elements."""
    total = x.k.variable()
    with x.k.loop(end, start) as i:
        total.accumulate(x[i].conj() * y[i])
    return total.value
