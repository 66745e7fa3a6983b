"""Routines of LAPACK by symbol: getrf, getrs, gesv, potrf, potrs, trtrs. The formulas are those of `systems`.

The shadow of a factorised matrix holds the cotangent of the factors, so that a factorisation and the solutions with it
may stand apart. Factors of a matrix that is not square have no formula here: NaN if a cotangent asks for them.
"""

from __future__ import annotations

import math
from typing import Final

from irad.ir.values import Value, const_int
from irad.rules.blas.elements import choose
from irad.rules.blas.fortran import Adjoint, Routine, Sizes, Work, matrix
from irad.rules.lapack.matrices import I64, ONE, Matrix, any_nonzero, copy_part, exchange_rows
from irad.rules.lapack.systems import cholesky_kernel, factor_kernel, outer_kernel, solve_kernel
from irad.ruleset.interface import Rule

_SOURCE: Final = "de Hoog, Anderssen, Lukas 2011; Murray 2016, arXiv:1602.07527; Giles 2008"
_INFO: Final = const_int(I64, 0)


def _squares(count: int) -> Work:
    """Working memory for so many matrices of order n."""
    return lambda sizes, _: sizes.build.mul(sizes.build.mul(sizes["n"], sizes["n"]), const_int(I64, count))


# ------------------------------------------------------------------------------------------------ LU


def _getrf(r: Adjoint) -> None:
    k, s, bar = r.k, r.sizes, Matrix(r.bars["a"], r.sizes["lda"])
    square = k.build.icmp("eq", s["m"], s["n"])
    with k.when(square):
        factor_kernel(k, s["n"], r.arrays["new a"], s["lda"], r.arrays["rows ipiv"], bar.data, r.work)
    with r.otherwise(square), k.when(any_nonzero(k, s["m"], s["n"], bar)), k.loop(s["n"]) as j, k.loop(s["m"]) as i:
        k.store(k.number(math.nan), bar, i, j)


def _gesv(r: Adjoint) -> None:
    """As `numba_xgesv`: what leaves the factors for elsewhere comes first."""
    k, s, b_bar = r.k, r.sizes, r.bars["b"]
    n, columns, factors, rows = s["n"], s["nrhs"], r.arrays["new a"], r.arrays["rows ipiv"]
    solve_kernel(k, n, columns, factors, s["lda"], rows, b_bar, s["ldb"])
    with r.active("a") as shadow:
        factor_kernel(k, n, factors, s["lda"], rows, shadow, r.work)
        outer_kernel(k, n, columns, b_bar, s["ldb"], r.arrays["new b"], shadow, s["lda"])


def _getrs(r: Adjoint) -> None:
    """B ← op(A)⁻¹ B =: X, A = P L U: B̄ ← op(A)⁻ᵀ B̄ =: T; of A it is -T Xᵀ, or -X Tᵀ, which goes to the factors."""
    k, s, one = r.k, r.sizes, r.k.number(1.0)
    n, columns, rows, bar = s["n"], s["nrhs"], r.arrays["rows ipiv"], Matrix(r.bars["b"], s["ldb"])
    plain, factors = s.is_plain("trans"), (r.arrays["a"], s["lda"])
    with k.when(any_nonzero(k, n, columns, bar)):
        end = (n, columns, one, *factors, bar.data, bar.leading)
        with k.when(plain):
            r.call("trsm", "l", "u", "t", "n", *end)
            r.call("trsm", "l", "l", "t", "u", *end)
            exchange_rows(k, n, columns, rows, bar, backward=True)
        with r.otherwise(plain):
            exchange_rows(k, n, columns, rows, bar, backward=False)
            r.call("trsm", "l", "l", "n", "u", *end)
            r.call("trsm", "l", "u", "n", "n", *end)
        with r.active("a") as shadow:
            left, right = s.swapped(plain, bar.data, r.arrays["new b"])
            square = k.build.mul(n, n)
            g, factor, product = (Matrix(part, n) for part in k.take_parts(r.work, [square] * 3))
            _outer(r, left, right, g)
            exchange_rows(k, n, n, rows, g, backward=False)
            _add_to_factors(r, g, Matrix(*factors), factor, product, Matrix(shadow, s["lda"]))


def _outer(r: Adjoint, left: Value, right: Value, target: Matrix) -> None:
    """`target = -left rightᵀ` for two sets of right-hand sides."""
    s = r.sizes
    n, columns, one = s["n"], s["nrhs"], r.k.number(-1.0)
    r.call("gemm", "n", "t", n, n, columns, one, left, s["ldb"], right, s["ldb"], r.k.nothing, target.data, n)


def _add_to_factors(r: Adjoint, g: Matrix, lu: Matrix, factor: Matrix, product: Matrix, bar: Matrix) -> None:
    """L̄ gets the strictly lower part of G Uᵀ, Ū the upper part of Lᵀ G."""
    k, n = r.k, r.sizes["n"]
    copy_part(k, "upper", n, n, lu, factor)
    k.multiply(n, n, n, ("n", g), ("c", factor), product)
    with k.loop(n) as j, k.loop(n, k.build.add(j, ONE)) as i:
        k.store(k.load(bar, i, j) + k.load(product, i, j), bar, i, j)
    copy_part(k, "unit_lower", n, n, lu, factor)
    k.multiply(n, n, n, ("c", factor), ("n", g), product)
    with k.loop(n) as j, k.loop(k.build.add(j, ONE)) as i:
        k.store(k.load(bar, i, j) + k.load(product, i, j), bar, i, j)


# ------------------------------------------------------------------------------------------------ Cholesky


def _potrf(r: Adjoint) -> None:
    """A = Uᵀ U; A = L Lᵀ is the same for U = Lᵀ."""
    k, n = r.k, r.sizes["n"]
    a, bar, square = Matrix(r.arrays["new a"], r.sizes["lda"]), Matrix(r.bars["a"], r.sizes["lda"]), k.build.mul(n, n)
    factor, shadow, work = k.take_parts(r.work, [square, square, square])
    u, u_bar = Matrix(factor, n), Matrix(shadow, n)
    with r.triangle(n) as (i, j):
        row, column = k.smaller(i, j), k.build.intrinsic("llvm.smax.i64", I64, [i, j])
        k.store(k.load(a, i, j), u, row, column)
        k.store(k.load(bar, i, j), u_bar, row, column)
    cholesky_kernel(k, n, factor, n, shadow, work)
    with r.triangle(n) as (i, j):
        row, column = k.smaller(i, j), k.build.intrinsic("llvm.smax.i64", I64, [i, j])
        k.store(k.load(u_bar, row, column), bar, i, j)


def _potrs(r: Adjoint) -> None:
    """B ← A⁻¹ B =: X: B̄ ← A⁻¹ B̄ =: T; with S = -T Xᵀ - X Tᵀ, Ū is the upper part of U S, L̄ the lower part of S L."""
    k, s = r.k, r.sizes
    n, bar, a, upper = s["n"], Matrix(r.bars["b"], s["ldb"]), (r.arrays["a"], s["lda"]), s.is_upper()
    with k.when(any_nonzero(k, n, s["nrhs"], bar)):
        r.call("potrs", s["uplo"], n, s["nrhs"], *a, bar.data, s["ldb"], _INFO)
        with r.active("a") as shadow:
            parts = k.take_parts(r.work, [k.build.mul(n, n)] * 3)
            product, factor, both = (Matrix(part, n) for part in parts)
            _outer(r, bar.data, r.arrays["new b"], product)
            with k.loop(n) as j, k.loop(n) as i:
                k.store(k.load(product, i, j) + k.load(product, j, i), both, i, j)
                k.store(k.nothing, factor, i, j)
            with r.triangle(n) as (i, j):
                k.store(k.load(Matrix(*a), i, j), factor, i, j)
            with k.when(upper):
                k.multiply(n, n, n, ("n", factor), ("n", both), product)
            with r.otherwise(upper):
                k.multiply(n, n, n, ("n", both), ("n", factor), product)
            target = Matrix(shadow, s["lda"])
            with r.triangle(n) as (i, j):
                k.store(k.load(target, i, j) + k.load(product, i, j), target, i, j)


# ------------------------------------------------------------------------------------------------ triangular systems


def _trtrs(r: Adjoint) -> None:
    """B ← op(A)⁻¹ B =: X: B̄ ← op(A)⁻ᵀ B̄, Ā -= B̄ Xᵀ, or its transpose, on the triangle."""
    k, s = r.k, r.sizes
    n, bar = s["n"], Matrix(r.bars["b"], s["ldb"])
    flags = ("l", s["uplo"], s.flipped("trans"), s["diag"], n, s["nrhs"], k.number(1.0))
    with k.when(any_nonzero(k, n, s["nrhs"], bar)):
        r.call("trsm", *flags, r.arrays["a"], s["lda"], bar.data, s["ldb"])
        with r.active("a") as shadow:
            target, product = Matrix(shadow, s["lda"]), Matrix(r.work, n)
            _outer(r, *s.swapped(s.is_plain("trans"), bar.data, r.arrays["new b"]), product)
            with r.triangle(n) as (i, j):
                fixed = k.build.and_(s.is_unit(), k.build.icmp("eq", i, j))
                amount = choose(fixed, k.nothing, k.load(product, i, j))
                k.store(k.load(target, i, j) + amount, target, i, j)


# ------------------------------------------------------------------------------------------------ rules


def _order(sizes: Sizes) -> tuple[Value, Value]:
    return sizes["n"], sizes["n"]


_A: Final = matrix(_order, "lda")
_B: Final = matrix(lambda sizes: (sizes["n"], sizes["nrhs"]), "ldb")
_SYSTEM: Final = {"a": _A, "b": _B}
_GETRS: Final = ("trans", "n", "nrhs", "a", "lda", "ipiv", "b", "ldb", "info")
_GESV: Final = ("n", "nrhs", "a", "lda", "ipiv", "b", "ldb", "info")
_POTRS: Final = ("uplo", "n", "nrhs", "a", "lda", "b", "ldb", "info")
_TRTRS: Final = ("uplo", "trans", "diag", "n", "nrhs", "a", "lda", "b", "ldb", "info")


RULES: Final[tuple[Rule, ...]] = (
    Routine(
        "getrf",
        ("m", "n", "a", "lda", "ipiv", "info"),
        "a",
        {"a": matrix(lambda sizes: (sizes["m"], sizes["n"]), "lda")},
        {"new a": ("a",), "rows ipiv": ("a",)},
        _getrf,
        _squares(3),
        also_written=("ipiv", "info"),
        collection="LAPACK",
    ).rule(_SOURCE),
    Routine(
        "gesv",
        _GESV,
        "b",
        _SYSTEM,
        {"new a": ("a", "b"), "rows ipiv": ("a", "b"), "new b": ("a",)},
        _gesv,
        _squares(3),
        also_written=("a", "ipiv", "info"),
        collection="LAPACK",
    ).rule(_SOURCE),
    Routine(
        "getrs",
        _GETRS,
        "b",
        _SYSTEM,
        {"a": ("a", "b"), "rows ipiv": ("a", "b"), "new b": ("a",)},
        _getrs,
        _squares(3),
        also_written=("info",),
        collection="LAPACK",
    ).rule(_SOURCE),
    Routine(
        "potrf",
        ("uplo", "n", "a", "lda", "info"),
        "a",
        {"a": _A},
        {"new a": ("a",)},
        _potrf,
        _squares(5),
        ("info",),
        collection="LAPACK",
    ).rule(_SOURCE),
    Routine(
        "potrs",
        _POTRS,
        "b",
        _SYSTEM,
        {"a": ("a", "b"), "new b": ("a",)},
        _potrs,
        _squares(3),
        ("info",),
        collection="LAPACK",
    ).rule(_SOURCE),
    Routine(
        "trtrs",
        _TRTRS,
        "b",
        _SYSTEM,
        {"a": ("a", "b"), "new b": ("a",)},
        _trtrs,
        _squares(1),
        ("info",),
        collection="LAPACK",
    ).rule(_SOURCE),
)
