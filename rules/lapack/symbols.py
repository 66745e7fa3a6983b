"""Routines of LAPACK by symbol: getrf, getrs, gesv, potrf, potrs, trtrs. The formulas are those of `systems`.

The shadow of a factorised matrix holds the cotangent of the factors, so that a factorisation and the solutions with it
may stand apart. Factors of a matrix that is not square have no formula here: NaN if a cotangent asks for them.
"""

from __future__ import annotations

import math
from typing import Final

from irad.ir.values import const_int
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Sizes
from irad.rules.dense.kernel import I8, I64
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.routine import Routine, fortran_rule
from irad.rules.dense.tangent import Differential, Tangent, room_for_copy, without_diagonal
from irad.rules.dense.triangular import exchange_rows, restore_rows
from irad.rules.lapack.systems import (
    SOLUTION_TANGENT,
    block,
    cholesky,
    cholesky_tangent,
    factorise,
    factorised,
    solve,
    squares,
)
from irad.ruleset.interface import Rule

_INFO: Final = const_int(I64, 0)


# ------------------------------------------------------------------------------------------------ LU


def _getrf(r: Adjoint) -> None:
    k, bar = r.k, r.bar("a")
    square = k.same(bar.rows, bar.columns)
    with k.when(square):
        factorise(r)
    with k.unless(square), k.when(bar.counts()):
        bar.fill(lambda i, j: k.number(math.nan))


def _getrs(r: Adjoint) -> None:
    """B ← op(A)⁻¹ B =: X, A = P L U: B̄ ← op(A)⁻ᵀ B̄ =: T; of A it is -T Xᵀ, or -X Tᵀ, which goes to the factors."""
    k, s, lu, rows, bar, x = r.k, r.sizes, r.matrix("a"), r.arrays["rows ipiv"], r.bar("b"), r.matrix("new b")
    plain, end = s.is_plain("trans"), (s["n"], s["nrhs"], k.number(1.0), lu, bar)
    with k.when(bar.counts()):
        with k.when(plain):
            r.call("trsm", "l", "u", "t", "n", *end)
            r.call("trsm", "l", "l", "t", "u", *end)
            restore_rows(bar, rows)
        with k.unless(plain):
            exchange_rows(bar, rows)
            r.call("trsm", "l", "l", "n", "u", *end)
            r.call("trsm", "l", "u", "n", "n", *end)
        with r.active("a") as a_bar:
            g, factor, product = r.work.matrices
            _set_outer(r, g, bar.or_else(plain, x), x.or_else(plain, bar))
            exchange_rows(g, rows)
            # L̄ gets the strictly lower part of G Uᵀ, Ū the upper part of Lᵀ G.
            factor.set(lu.upper)
            product.set(g @ factor.H)
            with k.loop(g.columns) as j, k.loop(g.rows, k.after(j)) as i:
                a_bar[i, j] = a_bar[i, j] + product[i, j]
            factor.set(lu.unit_lower)
            product.set(factor.H @ g)
            with k.loop(g.columns) as j, k.loop(k.after(j)) as i:
                a_bar[i, j] = a_bar[i, j] + product[i, j]


def _set_outer(r: Adjoint, target: Matrix, left: Matrix, right: Matrix) -> None:
    """`target = -left rightᵀ` for two sets of right-hand sides."""
    sizes = r.sizes["n"], r.sizes["n"], r.sizes["nrhs"]
    r.call("gemm", "n", "t", *sizes, r.k.number(-1.0), left, right, r.k.nothing, target)


def _factorised(r: Tangent) -> None:
    k, tangent = r.k, r.tangent("a")
    square = k.same(tangent.rows, tangent.columns)
    with k.when(square):
        factorised(r)
    with k.unless(square), r.moving("a"):
        tangent.fill(lambda i, j: k.number(math.nan))


def _solved_with_factors(r: Tangent) -> None:
    """Ẋ = A⁻¹ (Ḃ - P (L̇ U + L U̇) X), or Ẋ = A⁻ᵀ (Ḃ - (Uᵀ L̇ᵀ + U̇ᵀ Lᵀ) Pᵀ X)."""
    k, s, lu, rows, x, target = r.k, r.sizes, r.matrix("a"), r.arrays["rows ipiv"], r.matrix("b"), r.tangent("b")
    factor, product, other = r.work.matrices
    plain, end = s.is_plain("trans"), (s["n"], s["nrhs"], k.number(1.0), lu, target)
    with k.when(plain):
        exchange_rows(target, rows)
        with r.moving("a") as tangent:
            factor.set(lu.upper)
            product.set(factor @ x)
            factor.set(tangent.strictly_lower)
            target.add(-(factor @ product))
            factor.set(tangent.upper)
            product.set(factor @ x)
            factor.set(lu.unit_lower)
            target.add(-(factor @ product))
        with r.moving("b"):
            r.call("trsm", "l", "l", "n", "u", *end)
            r.call("trsm", "l", "u", "n", "n", *end)
    with k.unless(plain):
        with r.moving("a") as tangent:
            other.set(x)
            exchange_rows(other, rows)
            factor.set(tangent.strictly_lower)
            product.set(factor.H @ other)
            factor.set(lu.upper)
            target.add(-(factor.H @ product))
            factor.set(lu.unit_lower)
            product.set(factor.H @ other)
            factor.set(tangent.upper)
            target.add(-(factor.H @ product))
        with r.moving("b"):
            r.call("trsm", "l", "u", "t", "n", *end)
            r.call("trsm", "l", "l", "t", "u", *end)
            restore_rows(target, rows)


# ------------------------------------------------------------------------------------------------ Cholesky


def _potrf(r: Adjoint) -> None:
    """A = Uᵀ U; A = L Lᵀ is the same for U = Lᵀ."""
    k, a, bar = r.k, r.matrix("new a"), r.bar("a")
    u, u_bar, square = r.work.matrices
    with r.triangle(a.rows) as (i, j):
        place = k.smaller(i, j), k.larger(i, j)
        u[place], u_bar[place] = a[i, j], bar[i, j]
    cholesky(u, u_bar, square)
    with r.triangle(a.rows) as (i, j):
        bar[i, j] = u_bar[k.smaller(i, j), k.larger(i, j)]


def _potrs(r: Adjoint) -> None:
    """B ← A⁻¹ B =: X: B̄ ← A⁻¹ B̄ =: T; with S = -T Xᵀ - X Tᵀ, Ū is the upper part of U S, L̄ the lower part of S L."""
    k, s, a, bar, upper = r.k, r.sizes, r.matrix("a"), r.bar("b"), r.sizes.is_upper()
    with k.when(bar.counts()):
        r.call("potrs", s["uplo"], s["n"], s["nrhs"], a, bar, _INFO)
        with r.active("a") as a_bar:
            product, factor, both = r.work.matrices
            _set_outer(r, product, bar, r.matrix("new b"))
            both.fill(lambda i, j: product[i, j] + product[j, i])
            factor.clear()
            with r.triangle(a.rows) as (i, j):
                factor[i, j] = a[i, j]
            with k.when(upper):
                product.set(factor @ both)
            with k.unless(upper):
                product.set(both @ factor)
            r.add_on_triangle(a_bar, lambda i, j: product[i, j])


def _cholesky_factor(r: Tangent) -> None:
    k, a = r.k, r.matrix("a")
    u, u_dot, *work = r.work.matrices
    with r.moving("a") as tangent:
        with r.triangle(a.rows) as (i, j):
            place = k.smaller(i, j), k.larger(i, j)
            u[place], u_dot[place] = a[i, j], tangent[i, j]
        cholesky_tangent(u, u_dot, *work)
        with r.triangle(a.rows) as (i, j):
            tangent[i, j] = u_dot[k.smaller(i, j), k.larger(i, j)]


def _solved_with_cholesky(r: Tangent) -> None:
    """Ẋ = A⁻¹ (Ḃ - (U̇ᵀ U + Uᵀ U̇) X), or with L̇ Lᵀ + L L̇ᵀ."""
    k, s, a, target, sizes = r.k, r.sizes, r.matrix("a"), r.tangent("b"), (r.sizes["n"], r.sizes["nrhs"])
    letters = s.swapped(s.is_upper(), const_int(I8, ord("n")), const_int(I8, ord("t")))
    with r.moving("a") as tangent:
        product = r.work.matrices[0]
        for factors in ((a, tangent), (tangent, a)):
            product.set(r.matrix("b"))
            for letter, factor in zip(letters, factors, strict=True):
                r.call("trmm", "l", s["uplo"], letter, "n", *sizes, k.number(1.0), factor, product)
            target.fill(lambda i, j: target[i, j] - product[i, j])
    with r.moving("b"):
        r.call("potrs", s["uplo"], *sizes, a, target, _INFO)


# ------------------------------------------------------------------------------------------------ triangular systems


def _trtrs(r: Adjoint) -> None:
    """B ← op(A)⁻¹ B =: X: B̄ ← op(A)⁻ᵀ B̄, Ā -= B̄ Xᵀ, or its transpose, on the triangle."""
    k, s, bar, x = r.k, r.sizes, r.bar("b"), r.matrix("new b")
    flags = ("l", s["uplo"], s.flipped("trans"), s["diag"], s["n"], s["nrhs"], k.number(1.0))
    with k.when(bar.counts()):
        r.call("trsm", *flags, r.matrix("a"), bar)
        with r.active("a") as a_bar:
            plain, product = s.is_plain("trans"), r.work.matrices[0]
            _set_outer(r, product, bar.or_else(plain, x), x.or_else(plain, bar))
            r.add_on_triangle(a_bar, lambda i, j: product[i, j])


def _solved_triangular(r: Tangent) -> None:
    """Ẋ = op(A)⁻¹ (Ḃ - op(Ȧ) X)."""
    s, target, flags = r.sizes, r.tangent("b"), ("l", r.sizes["uplo"], r.sizes["trans"])
    sizes = s["n"], s["nrhs"], r.k.number(1.0)
    with r.moving("a") as tangent:
        product, copy = r.work.matrices
        product.set(r.matrix("b"))
        r.call("trmm", *flags, "n", *sizes, without_diagonal(r, tangent, copy), product)
        target.fill(lambda i, j: target[i, j] - product[i, j])
    with r.moving("b"):
        r.call("trsm", *flags, s["diag"], *sizes, r.matrix("a"), target)


def _two_and_block(sizes: Sizes, active: IsActive) -> Room:
    return Room([*squares(2)(sizes, active).matrices, *block(sizes, active).matrices])


def _room(sizes: Sizes, active: IsActive) -> Room:
    """A matrix, two sets of right-hand sides."""
    n, sides = sizes["n"], sizes["nrhs"]
    return Room([(n, n), (n, sides), (n, sides)] if active("a") else [])


def _room_for_sides(sizes: Sizes, active: IsActive) -> Room:
    return Room([(sizes["n"], sizes["nrhs"])] if active("a") else [])


def _room_for_triangle(sizes: Sizes, active: IsActive) -> Room:
    sides = _room_for_sides(sizes, active).matrices
    return Room([*sides, room_for_copy(sizes, sizes["n"])] if active("a") else [])


# ------------------------------------------------------------------------------------------------ rules

_FULL: Final = {"a": MatrixShape("m", "n", "lda")}
_SQUARE: Final = {"a": MatrixShape("n", "n", "lda")}
_SYSTEM: Final = {**_SQUARE, "b": MatrixShape("n", "nrhs", "ldb")}
_FACTORS: Final = {"new a": "a", "rows ipiv": "a"}
_GETRS: Final = {"a": "a b", "rows ipiv": "a b", "new b": "a"}
_GESV: Final = {"new a": "a b", "rows ipiv": "a b", "new b": "a"}
_SOLUTION: Final = {"a": "a b", "new b": "a"}


_FACTORISED: Final = Differential(after=_factorised, needs={"rows ipiv": "a"}, work=squares(3))
_WITH_FACTORS: Final = Differential(after=_solved_with_factors, needs={"rows ipiv": "a b"}, work=_room)
_CHOLESKY: Final = Differential(after=_cholesky_factor, work=squares(5))
_WITH_CHOLESKY: Final = Differential(after=_solved_with_cholesky, work=_room_for_sides)
_TRIANGULAR: Final = Differential(after=_solved_triangular, work=_room_for_triangle)


def _rule(routine: Routine, also_written: str = "") -> Rule:
    source = "de Hoog, Anderssen, Lukas 2011; Murray 2016, arXiv:1602.07527; Giles 2008"
    return fortran_rule(routine, collection="LAPACK", also_written=f"{also_written} info", source=source)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        Routine("getrf", "m n a lda ipiv info", _FULL, _FACTORS, _getrf, "a", squares(1), tangent=_FACTORISED), "ipiv"
    ),
    _rule(
        Routine(
            "gesv", "n nrhs a lda ipiv b ldb info", _SYSTEM, _GESV, solve, "b", squares(1), tangent=SOLUTION_TANGENT
        ),
        "a ipiv",
    ),
    _rule(
        Routine(
            "getrs",
            "trans n nrhs a lda ipiv b ldb info",
            _SYSTEM,
            _GETRS,
            _getrs,
            "b",
            squares(3),
            tangent=_WITH_FACTORS,
        )
    ),
    _rule(
        Routine("potrf", "uplo n a lda info", _SQUARE, {"new a": "a"}, _potrf, "a", _two_and_block, tangent=_CHOLESKY)
    ),
    _rule(
        Routine(
            "potrs", "uplo n nrhs a lda b ldb info", _SYSTEM, _SOLUTION, _potrs, "b", squares(3), tangent=_WITH_CHOLESKY
        )
    ),
    _rule(
        Routine(
            "trtrs",
            "uplo trans diag n nrhs a lda b ldb info",
            _SYSTEM,
            _SOLUTION,
            _trtrs,
            "b",
            squares(1),
            tangent=_TRIANGULAR,
        )
    ),
)
