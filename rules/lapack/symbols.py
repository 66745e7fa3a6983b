"""Routines of LAPACK by symbol: getrf, getrs, gesv, potrf, potrs, trtrs. The formulas are those of `systems`.

The shadow of a factorised matrix holds the cotangent of the factors, so that a factorisation and the solutions with it
may stand apart. Factors of a matrix that is not square have no formula here: NaN if a cotangent asks for them.
"""

from __future__ import annotations

import math
from typing import Final

from irad.ir.values import const_int
from irad.rules.dense.adjoint import Adjoint, MatrixShape
from irad.rules.dense.kernel import I64
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.routine import Routine, fortran_rule
from irad.rules.dense.triangular import exchange_rows, restore_rows
from irad.rules.lapack.systems import cholesky, factorise, solve, squares
from irad.ruleset.interface import Rule

_INFO: Final = const_int(I64, 0)


# ------------------------------------------------------------------------------------------------ LU


def _getrf(r: Adjoint) -> None:
    k, bar = r.k, r.bar("a")
    square = k.same(bar.rows, bar.columns)
    with k.when(square):
        factorise(r)
    with k.unless(square), k.when(bar.any_nonzero()):
        bar.fill(lambda i, j: k.number(math.nan))


def _getrs(r: Adjoint) -> None:
    """B ← op(A)⁻¹ B =: X, A = P L U: B̄ ← op(A)⁻ᵀ B̄ =: T; of A it is -T Xᵀ, or -X Tᵀ, which goes to the factors."""
    k, s, lu, rows, bar, x = r.k, r.sizes, r.matrix("a"), r.arrays["rows ipiv"], r.bar("b"), r.matrix("new b")
    plain, end = s.is_plain("trans"), (s["n"], s["nrhs"], k.number(1.0), lu, bar)
    with k.when(bar.any_nonzero()):
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


# ------------------------------------------------------------------------------------------------ Cholesky


def _potrf(r: Adjoint) -> None:
    """A = Uᵀ U; A = L Lᵀ is the same for U = Lᵀ."""
    k, a, bar = r.k, r.matrix("new a"), r.bar("a")
    u, u_bar, *work = r.work.matrices
    with r.triangle(a.rows) as (i, j):
        place = k.smaller(i, j), k.larger(i, j)
        u[place], u_bar[place] = a[i, j], bar[i, j]
    cholesky(u, u_bar, *work)
    with r.triangle(a.rows) as (i, j):
        bar[i, j] = u_bar[k.smaller(i, j), k.larger(i, j)]


def _potrs(r: Adjoint) -> None:
    """B ← A⁻¹ B =: X: B̄ ← A⁻¹ B̄ =: T; with S = -T Xᵀ - X Tᵀ, Ū is the upper part of U S, L̄ the lower part of S L."""
    k, s, a, bar, upper = r.k, r.sizes, r.matrix("a"), r.bar("b"), r.sizes.is_upper()
    with k.when(bar.any_nonzero()):
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


# ------------------------------------------------------------------------------------------------ triangular systems


def _trtrs(r: Adjoint) -> None:
    """B ← op(A)⁻¹ B =: X: B̄ ← op(A)⁻ᵀ B̄, Ā -= B̄ Xᵀ, or its transpose, on the triangle."""
    k, s, bar, x = r.k, r.sizes, r.bar("b"), r.matrix("new b")
    flags = ("l", s["uplo"], s.flipped("trans"), s["diag"], s["n"], s["nrhs"], k.number(1.0))
    with k.when(bar.any_nonzero()):
        r.call("trsm", *flags, r.matrix("a"), bar)
        with r.active("a") as a_bar:
            plain, product = s.is_plain("trans"), r.work.matrices[0]
            _set_outer(r, product, bar.or_else(plain, x), x.or_else(plain, bar))
            r.add_on_triangle(a_bar, lambda i, j: product[i, j])


# ------------------------------------------------------------------------------------------------ rules

_FULL: Final = {"a": MatrixShape("m", "n", "lda")}
_SQUARE: Final = {"a": MatrixShape("n", "n", "lda")}
_SYSTEM: Final = {**_SQUARE, "b": MatrixShape("n", "nrhs", "ldb")}
_FACTORS: Final = {"new a": "a", "rows ipiv": "a"}
_GETRS: Final = {"a": "a b", "rows ipiv": "a b", "new b": "a"}
_GESV: Final = {"new a": "a b", "rows ipiv": "a b", "new b": "a"}
_SOLUTION: Final = {"a": "a b", "new b": "a"}


def _rule(routine: Routine, also_written: str = "") -> Rule:
    source = "de Hoog, Anderssen, Lukas 2011; Murray 2016, arXiv:1602.07527; Giles 2008"
    return fortran_rule(routine, collection="LAPACK", also_written=f"{also_written} info", source=source)


RULES: Final[tuple[Rule, ...]] = (
    _rule(Routine("getrf", "m n a lda ipiv info", _FULL, _FACTORS, _getrf, "a", squares(3)), "ipiv"),
    _rule(Routine("gesv", "n nrhs a lda ipiv b ldb info", _SYSTEM, _GESV, solve, "b", squares(3)), "a ipiv"),
    _rule(Routine("getrs", "trans n nrhs a lda ipiv b ldb info", _SYSTEM, _GETRS, _getrs, "b", squares(3))),
    _rule(Routine("potrf", "uplo n a lda info", _SQUARE, {"new a": "a"}, _potrf, "a", squares(5))),
    _rule(Routine("potrs", "uplo n nrhs a lda b ldb info", _SYSTEM, _SOLUTION, _potrs, "b", squares(3))),
    _rule(Routine("trtrs", "uplo trans diag n nrhs a lda b ldb info", _SYSTEM, _SOLUTION, _trtrs, "b", squares(1))),
)
