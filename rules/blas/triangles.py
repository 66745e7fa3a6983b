"""Tangents of products with triangular matrices, and of triangular systems: trmv, trmm, trsv, trsm.

    X ← α op(A) B        X' = α op(A) B' + α op(A') B + α' op(A) B      before the call
    X ← α op(A)⁻¹ B      X' = op(A)⁻¹ (α B' + α' B - op(A') X)          the part with B before the call, the rest after

Or with A on the right. They are calls of the same library. A diagonal that counts as 1 has no tangent.
"""

from __future__ import annotations

from typing import Final

from irad.ir.values import Value
from irad.rules.dense.adjoint import IsActive, Room, Sizes, VectorShape
from irad.rules.dense.elements import Scalar, choose, product_or_zero
from irad.rules.dense.matrix import Matrix, Vector
from irad.rules.dense.tangent import Differential, Tangent, room_for_copy, without_diagonal

_VECTOR: Final = VectorShape("n", "incx")


def order(sizes: Sizes) -> Value:
    """Order of the symmetric or triangular matrix at a side of an m x n one."""
    return sizes.swapped(sizes.is_left(), sizes["m"], sizes["n"])[0]


# ------------------------------------------------------------------------------------------------ vectors


def _multiply_vector(r: Tangent) -> None:
    x, target = r.vector("x"), r.vector_tangent("x")
    with r.moving_operand("x"):
        _call_for_vector(r, "trmv", r.matrix("a"), target, r.sizes["diag"])
    with r.moving("a") as tangent:
        product = _product_with_vector(r, tangent, x)
        target.fill(lambda i: target[i] + product[i])


def _solve_vector(r: Tangent) -> None:
    target = r.vector_tangent("x")
    with r.moving("a") as tangent:
        product = _product_with_vector(r, tangent, r.vector("x"))
        target.fill(lambda i: target[i] - product[i])
    with r.moving_operand("x"):
        _call_for_vector(r, "trsv", r.matrix("a"), target, r.sizes["diag"])


def _product_with_vector(r: Tangent, tangent: Matrix, x: Vector) -> Vector:
    """`op(A') x`."""
    matrices, vectors = r.work.matrices, r.work.vectors
    product = Vector(r.k, vectors[0].data, x.size, x.step, x.start)
    product.fill(lambda i: x[i])
    _call_for_vector(r, "trmv", without_diagonal(r, tangent, matrices[0]), product, "n")
    return product


def _call_for_vector(r: Tangent, routine: str, a: Matrix, x: Vector, diag: Value | str) -> None:
    r.call(routine, r.sizes["uplo"], r.sizes["trans"], diag, r.sizes["n"], a, x)


# ------------------------------------------------------------------------------------------------ matrices


def _multiply(r: Tangent) -> None:
    alpha, diag, target = r.factors["alpha"], r.sizes["diag"], r.tangent("b")
    with r.moving("b"):
        _call(r, "trmm", diag, alpha, r.matrix("a"), target)
    with r.moving("a") as tangent:
        _add_product(r, "n", alpha, without_diagonal(r, tangent, r.work.matrices[1]))
    with r.moving_factor("alpha") as factor:
        _add_product(r, diag, factor, r.matrix("a"))


def _before_solving(r: Tangent) -> None:
    alpha, b, target = r.factors["alpha"], r.matrix("b"), r.tangent("b")
    target.fill(lambda i, j: choose(alpha.is_zero(), 0.0, product_or_zero(target[i, j], alpha)))
    with r.moving_factor("alpha") as factor:
        target.fill(lambda i, j: target[i, j] + product_or_zero(factor, b[i, j]))


def _solve(r: Tangent) -> None:
    one = r.k.number(1.0)
    with r.moving("a") as tangent, r.k.when(r.matrix("b").counts()):
        _add_product(r, "n", -one, without_diagonal(r, tangent, r.work.matrices[1]))
    with r.moving("b") as target:
        _call(r, "trsm", r.sizes["diag"], one, r.matrix("a"), target)


def _add_product(r: Tangent, diag: Value | str, factor: Scalar, a: Matrix) -> None:
    """`B' += factor op(a) B`."""
    product, target = r.work.matrices[0], r.tangent("b")
    product.set(r.matrix("b"))
    _call(r, "trmm", diag, factor, a, product)
    target.fill(lambda i, j: target[i, j] + product[i, j])


def _call(r: Tangent, routine: str, diag: Value | str, factor: Scalar, a: Matrix, b: Matrix) -> None:
    s = r.sizes
    r.call(routine, s["side"], s["uplo"], s["transa"], diag, s["m"], s["n"], factor, a, b)


# ------------------------------------------------------------------------------------------------ differentials


def _room_for_vector(sizes: Sizes, active: IsActive) -> Room:
    if not active("a"):
        return Room()
    return Room([room_for_copy(sizes, sizes["n"])], [_VECTOR.count(sizes)])


def _room(sizes: Sizes, active: IsActive) -> Room:
    result = (sizes["m"], sizes["n"])
    if active("a"):
        return Room([result, room_for_copy(sizes, order(sizes))])
    return Room([result] if active("alpha") else [])


TRMV: Final = Differential(before=_multiply_vector, work=_room_for_vector)
TRSV: Final = Differential(after=_solve_vector, work=_room_for_vector)
TRMM: Final = Differential(before=_multiply, work=_room)
TRSM: Final = Differential(before=_before_solving, after=_solve, work=_room)
