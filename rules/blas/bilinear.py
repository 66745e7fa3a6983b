"""Tangents of `out ← α left · right + β out`: gemv, gemm, symv, symm, ger, and of syrk, whose factors are one matrix.

They are calls of the same library before the call, on the operands and their tangents, and need no memory:

    out' ← α left' · right + α left · right' + α' left · right + β out' + β' out

The first of these takes β, those that follow 1. With β = 0 what the shadow held before is not read, as BLAS does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

from irad.ir.values import Value
from irad.rules.dense.adjoint import MatrixShape, Shapes, Size, VectorShape
from irad.rules.dense.elements import Scalar, choose, product_or_zero
from irad.rules.dense.kernel import NONE, Cell
from irad.rules.dense.matrix import Matrix, Vector, as_matrix
from irad.rules.dense.tangent import Differential, Tangent

Operand: TypeAlias = Matrix | Vector
Multiply: TypeAlias = Callable[[Tangent, Scalar, Operand, Operand, Scalar, Operand], None]
"""Calls the routine itself: (r, factor, left, right, keep, out) emits `out ← factor left · right + keep out`."""


# ------------------------------------------------------------------------------------------------ shapes


def stored(flag: str, rows: str, columns: str, leading: str) -> MatrixShape:
    """Shape of a matrix whose op has ``rows`` rows and ``columns`` columns."""

    def size(which: int) -> Size:
        return lambda sizes: sizes.swapped(sizes.is_plain(flag), sizes[rows], sizes[columns])[which]

    return MatrixShape(size(0), size(1), leading)


def gemv_shapes(step_of_x: str, step_of_y: str) -> Shapes:
    """Shapes of gemv, with the names of the steps."""

    def size(which: int) -> Size:
        return lambda sizes: sizes.swapped(sizes.is_plain("trans"), sizes["m"], sizes["n"])[which]

    return {
        "a": MatrixShape("m", "n", "lda"),
        "x": VectorShape(size(1), step_of_x),
        "y": VectorShape(size(0), step_of_y),
    }


GEMM_SHAPES: Final[Shapes] = {
    "a": stored("transa", "m", "k", "lda"),
    "b": stored("transb", "k", "n", "ldb"),
    "c": MatrixShape("m", "n", "ldc"),
}


# ------------------------------------------------------------------------------------------------ sums


@contextmanager
def _sum(r: Tangent, out: str, places: Callable[[], AbstractContextManager[tuple[Value, Value]]]) -> Iterator[Cell]:
    """Gives what the next product is to multiply its output by; at the end, does that if there was no product."""
    k, keep = r.k, r.k.variable(r.factors["beta"])
    yield keep
    target, old, factor = as_matrix(r.operand_tangent(out)), as_matrix(r.operand(out)), keep.value
    with k.when((factor - 1.0).counts()), places() as place:
        target[place] = choose(factor.is_zero(), 0.0, product_or_zero(target[place], factor))
    with r.moving_factor("beta") as tangent, places() as place:
        target[place] = target[place] + product_or_zero(tangent, old[place])


def _take(keep: Cell) -> Scalar:
    value = keep.value
    keep.value = keep.k.number(1.0)
    return value


# ------------------------------------------------------------------------------------------------ routines


def _product_tangent(left: str, right: str, out: str, multiply: Multiply) -> Differential:
    """The tangent of a product of two operands."""

    def body(r: Tangent) -> None:
        a, b, target = r.operand(left), r.operand(right), r.operand_tangent(out)
        with _sum(r, out, as_matrix(target).each) as keep:
            with r.moving_operand(left) as tangent:
                multiply(r, r.factors["alpha"], tangent, b, _take(keep), target)
            with r.moving_operand(right) as tangent:
                multiply(r, r.factors["alpha"], a, tangent, _take(keep), target)
            with r.moving_factor("alpha") as factor:
                multiply(r, factor, a, b, _take(keep), target)

    return Differential(before=body)


def _gemv(r: Tangent, factor: Scalar, a: Operand, x: Operand, keep: Scalar, y: Operand) -> None:
    s = r.sizes
    r.call("gemv", s["trans"], s["m"], s["n"], factor, a, x, keep, y)


def _gemm(r: Tangent, factor: Scalar, a: Operand, b: Operand, keep: Scalar, c: Operand) -> None:
    s = r.sizes
    r.call("gemm", s["transa"], s["transb"], s["m"], s["n"], s["k"], factor, a, b, keep, c)


def _symv(r: Tangent, factor: Scalar, a: Operand, x: Operand, keep: Scalar, y: Operand) -> None:
    r.call("symv", r.sizes["uplo"], r.sizes["n"], factor, a, x, keep, y)


def _symm(r: Tangent, factor: Scalar, a: Operand, b: Operand, keep: Scalar, c: Operand) -> None:
    s = r.sizes
    r.call("symm", s["side"], s["uplo"], s["m"], s["n"], factor, a, b, keep, c)


def _unless_empty(product: Differential) -> Differential:
    """With m or n = 0 BLAS leaves y."""

    def body(r: Tangent) -> None:
        some = r.k.build.icmp("sgt", r.sizes.smaller("m", "n"), NONE)
        with r.k.when(some):
            assert product.before is not None
            product.before(r)

    return Differential(before=body)


def _syrk(r: Tangent) -> None:
    """On the triangle C' ← α (A' Aᵀ + A A'ᵀ) + α' A Aᵀ + β C' + β' C, or with Aᵀ A."""
    s, a, target = r.sizes, r.matrix("a"), r.tangent("c")
    flags = s["uplo"], s["trans"], s["n"], s["k"]
    with _sum(r, "c", lambda: r.triangle(s["n"])) as keep:
        with r.moving("a") as tangent:
            r.call("syr2k", *flags, r.factors["alpha"], tangent, a, _take(keep), target)
        with r.moving_factor("alpha") as factor:
            r.call("syrk", *flags, factor, a, _take(keep), target)


def outer_product_tangent(routine: str) -> Differential:
    """The tangent of ger and its like: A' += α x' yᵀ + α x y'ᵀ + α' x yᵀ, or with yᴴ."""

    def body(r: Tangent) -> None:
        x, y, alpha = r.vector("x"), r.vector("y"), r.factors["alpha"]

        def add(factor: Scalar, left: Operand, right: Operand) -> None:
            r.call(routine, r.sizes["m"], r.sizes["n"], factor, left, right, r.tangent("a"))

        with r.moving_operand("x") as tangent:
            add(alpha, tangent, y)
        with r.moving_operand("y") as tangent:
            add(alpha, x, tangent)
        with r.moving_factor("alpha") as factor:
            add(factor, x, y)

    return Differential(before=body)


GEMV: Final = _unless_empty(_product_tangent("a", "x", "y", _gemv))
GEMM: Final = _product_tangent("a", "b", "c", _gemm)
SYMV: Final = _product_tangent("a", "x", "y", _symv)
SYMM: Final = _product_tangent("a", "b", "c", _symm)
SYRK: Final = Differential(before=_syrk)
