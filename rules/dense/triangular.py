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
from irad.rules.dense.matrix import Factor, Matrix, Vector

_BLOCK: Final = const_int(I64, 64)
TriangularForm: TypeAlias = Literal["upper", "upper_adjoint", "unit_lower", "unit_lower_adjoint"]


# ------------------------------------------------------------------------------------------------ row exchanges


def read_pivots(build: Builder, count: Value, pivots: Value, target: Value) -> None:
    """Stores LAPACK's row numbers, from 1 on, as i64.

    LAPACK's integers have 32 or 64 bits, as the library at hand was built. No row number is 0, so the second word of
    the first two numbers tells which.
    """
    Kernel(build, DOUBLES).outline("read_pivots", _read_pivots, count, pivots, target)


def _read_pivots(k: Kernel, count: Value, pivots: Value, target: Value) -> None:
    build = k.build
    several = build.icmp("sgt", count, ONE)
    second = build.load(types.I32, build.gep(types.I32, pivots, [build.zext(several, I64)]))
    wide = build.and_(several, build.icmp("eq", second, const_int(types.I32, 0)))
    step = build.select(wide, const_int(I64, 2), ONE)
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
    """Solves in place of the right-hand sides, in blocks: most of the work is products.

    Args:
        form: "upper" (U x = b), "upper_adjoint" (Uᴴ x = b), "unit_lower" (L x = b, diagonal 1) or "unit_lower_adjoint"
            (Lᴴ x = b).
        factor: only its triangle is read.
        b: the right-hand sides, then the solutions.
    """
    b.k.outline(f"solve_{form}", partial(_solve, form), factor, b)


def _solve(form: TriangularForm, k: Kernel, factor: Matrix, b: Matrix) -> None:
    build, size = k.build, b.rows
    blocks = build.sdiv(build.add(size, build.sub(_BLOCK, ONE)), _BLOCK)
    ascending, is_plain = form in ("upper_adjoint", "unit_lower"), form in ("upper", "unit_lower")
    with k.loop(blocks) if ascending else k.loop_down(blocks) as block:
        start = build.mul(block, _BLOCK)
        width = k.smaller(_BLOCK, build.sub(size, start))
        diagonal, solved = factor.part(start, start, width, width), b.part(start, NONE, width, b.columns)
        with k.loop(b.columns) as j:
            _SOLVE[form](diagonal, solved.column(j))
        first = build.add(start, width) if ascending else NONE
        count = build.sub(size, first) if ascending else start
        with k.when(build.icmp("sgt", count, NONE)):
            other = factor.part(first, start, count, width) if is_plain else factor.part(start, first, width, count)
            b.part(first, NONE, count, b.columns).add(-((Factor(other) if is_plain else other.H) @ solved))


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
