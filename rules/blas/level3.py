"""Routines of BLAS for matrices, by symbol: gemm, symm, syrk, trmm, trsm.

The adjoints are calls of the same library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from irad.ir.values import Value, const_int
from irad.rules.blas.elements import Number, choose
from irad.rules.blas.fortran import I1, Adjoint, Routine, Sizes, matrix
from irad.rules.lapack.matrices import Matrix, any_nonzero, copy_part
from irad.ruleset.interface import Rule


def _stored(flag: str, rows: str, columns: str) -> Callable[[Sizes], tuple[Value, Value]]:
    """A matrix whose op has so many rows and columns."""
    return lambda sizes: sizes.swapped(sizes.is_plain(flag), sizes[rows], sizes[columns])


def _order(sizes: Sizes) -> Value:
    """Of the symmetric or triangular matrix at a side of an m x n one."""
    return sizes.swapped(sizes.is_left(), sizes["m"], sizes["n"])[0]


def _result(sizes: Sizes) -> tuple[Value, Value]:
    return sizes["m"], sizes["n"]


def _area(sizes: Sizes) -> Value:
    return sizes.build.mul(sizes["m"], sizes["n"])


# ------------------------------------------------------------------------------------------------ general matrices


def _gemm(r: Adjoint) -> None:
    """C ← α op(A) op(B) + β C: Ā += conj(α) C̄ op(B)ᴴ, B̄ += conj(α) op(A)ᴴ C̄, and as the operands are transposed.

    BLAS has no product with a conjugate that is not transposed too; where one is wanted, what it works on is conjugated
    in memory for its time: conj(Ā) += α conj(C̄) B is Ā += conj(α) C̄ conj(B).
    """
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    m, n, inner, c = s["m"], s["n"], s["k"], (r.bars["c"], s["ldc"])
    a, b, bar = (r.arrays["a"], s["lda"]), (r.arrays["b"], s["ldb"]), Matrix(*c)
    with k.when(any_nonzero(k, m, n, bar)):
        with r.active("alpha"):
            r.call("gemm", s["transa"], s["transb"], m, n, inner, one, *a, *b, k.nothing, r.work, m)
            r.add_to_factor("alpha", r.inner(m, n, Matrix(r.work, m), bar))
        with r.active("a") as shadow:
            a_bar, end = Matrix(shadow, s["lda"]), (one, shadow, s["lda"])
            with k.when(s.is_plain("transa")):
                conjugates = s.is_transposed("transb")
                factor = r.conjugated_unless(conjugates, alpha)
                with r.conjugated(conjugates, m, n, bar), r.conjugated(conjugates, m, inner, a_bar):
                    r.call("gemm", "n", s.flipped("transb"), m, inner, n, factor, *c, *b, *end)
            with r.otherwise(s.is_plain("transa")), r.conjugated(s.is_transposed("transa"), inner, m, a_bar):
                r.call("gemm", s["transb"], "c", inner, m, n, alpha, *b, *c, *end)
        with r.active("b") as shadow:
            b_bar, end = Matrix(shadow, s["ldb"]), (one, shadow, s["ldb"])
            with k.when(s.is_plain("transb")):
                conjugates = s.is_transposed("transa")
                factor = r.conjugated_unless(conjugates, alpha)
                with r.conjugated(conjugates, m, n, bar), r.conjugated(conjugates, inner, n, b_bar):
                    r.call("gemm", s.flipped("transa"), "n", inner, n, m, factor, *a, *c, *end)
            with r.otherwise(s.is_plain("transb")), r.conjugated(s.is_transposed("transb"), n, inner, b_bar):
                r.call("gemm", "c", s["transa"], n, inner, m, alpha, *c, *a, *end)
    r.end_output(m, n, bar, "c")


# ------------------------------------------------------------------------------------------------ symmetric matrices


def _symm(r: Adjoint) -> None:
    """C ← α A B + β C, or α B A, A symmetric; an element of the triangle appears in two places."""
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    m, n, c, b = s["m"], s["n"], (r.bars["c"], s["ldc"]), (r.arrays["b"], s["ldb"])
    flags, a, bar = (s["side"], s["uplo"], m, n), (r.arrays["a"], s["lda"]), Matrix(*c)
    with k.when(any_nonzero(k, m, n, bar)):
        with r.active("alpha"):
            r.call("symm", *flags, one, *a, *b, k.nothing, r.work, m)
            r.add_to_factor("alpha", r.inner(m, n, Matrix(r.work, m), bar))
        with r.active("a") as shadow:
            target, product = Matrix(shadow, s["lda"]), Matrix(r.work, _order(s))
            with k.when(s.is_left()):
                r.call("gemm", "n", "t", m, m, n, alpha, *c, *b, k.nothing, r.work, m)
            with r.otherwise(s.is_left()):
                r.call("gemm", "t", "n", n, n, m, alpha, *b, *c, k.nothing, r.work, n)
            with r.triangle(_order(s)) as (i, j):
                other = choose(k.build.icmp("eq", i, j), k.nothing, k.load(product, j, i))
                k.store(k.load(target, i, j) + k.load(product, i, j) + other, target, i, j)
        with r.active("b") as shadow:
            r.call("symm", *flags, alpha, *a, *c, one, shadow, s["ldb"])
    r.end_output(m, n, bar, "c")


def _syrk(r: Adjoint) -> None:
    """C ← α A Aᵀ + β C, or α Aᵀ A, on a triangle: conj(Ā) += α S A, or α A S, S = conj(C̄ + C̄ᵀ) of the triangle."""
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    n, inner, bar, work = s["n"], s["k"], Matrix(r.bars["c"], s["ldc"]), Matrix(r.work, s["n"])
    a, plain = (r.arrays["a"], s["lda"]), s.is_plain("trans")
    with k.when(any_nonzero(k, n, n, bar)):
        with r.active("alpha"):
            r.call("syrk", s["uplo"], s["trans"], n, inner, one, *a, k.nothing, r.work, n)
            r.add_to_factor("alpha", _inner_of_triangles(r, work, bar))
        with r.active("a") as shadow:
            with r.triangle(n) as (i, j):
                value = k.load(bar, i, j).conj()
                k.store(choose(k.build.icmp("eq", i, j), value + value, value), work, i, j)
            end = (alpha, r.work, n, *a, one, shadow, s["lda"])
            rows, columns = s.swapped(plain, n, inner)
            with r.conjugated(const_int(I1, 1), rows, columns, Matrix(shadow, s["lda"])):
                with k.when(plain):
                    r.call("symm", "l", s["uplo"], n, inner, *end)
                with r.otherwise(plain):
                    r.call("symm", "r", s["uplo"], inner, n, *end)
    with r.active("beta"):
        r.add_to_factor("beta", _inner_of_triangles(r, Matrix(r.arrays["old c"], s["ldc"]), bar))
    with r.triangle(n) as (i, j):
        k.store(k.product(k.load(bar, i, j), r.factors["beta"].conj()), bar, i, j)


def _inner_of_triangles(r: Adjoint, a: Matrix, b: Matrix) -> Number:
    k, total = r.k, r.k.variable(r.k.nothing)
    with r.triangle(r.sizes["n"]) as (i, j):
        k.add_to(total, k.product(k.load(b, i, j), k.load(a, i, j).conj()))
    return k.read(total)


# ------------------------------------------------------------------------------------------------ triangular matrices


def _trmm(r: Adjoint) -> None:
    """B ← α op(A) B, or α B op(A): Ā += conj(α) B̄ Bᴴ, or its like, on the triangle; B̄ ← conj(α) op(A)ᴴ B̄."""
    k, s, alpha = r.k, r.sizes, r.factors["alpha"]
    m, n, bar = s["m"], s["n"], Matrix(r.bars["b"], s["ldb"])
    with k.when(any_nonzero(k, m, n, bar)):
        with r.active("alpha"):
            copy_part(k, "all", m, n, Matrix(r.arrays["old b"], s["ldb"]), Matrix(r.work, m))
            flags = (s["side"], s["uplo"], s["transa"], s["diag"], m, n)
            r.call("trmm", *flags, k.number(1.0), r.arrays["a"], s["lda"], r.work, m)
            r.add_to_factor("alpha", r.inner(m, n, Matrix(r.work, m), bar))
        _add_product(r, r.arrays["old b"], choose(s.is_plain("transa"), alpha.conj(), alpha))
        _apply_adjoint(r, "trmm", r.conjugated_unless(s.is_transposed("transa"), alpha))


def _trsm(r: Adjoint) -> None:
    """B ← α op(A)⁻¹ B =: X, or α B op(A)⁻¹: B̄ ← op(A)⁻ᴴ B̄, Ā -= B̄ Xᴴ, or its like, on the triangle; B̄ ← conj(α) B̄."""
    k, s = r.k, r.sizes
    m, n, bar = s["m"], s["n"], Matrix(r.bars["b"], s["ldb"])
    with k.when(any_nonzero(k, m, n, bar)):
        _apply_adjoint(r, "trsm", k.number(1.0))
        with r.active("alpha"):
            r.add_to_factor("alpha", r.inner(m, n, Matrix(r.arrays["old b"], s["ldb"]), bar))
        _add_product(r, r.arrays["new b"], k.number(-1.0))
        r.scale(m, n, bar, r.factors["alpha"].conj())


def _apply_adjoint(r: Adjoint, routine: str, factor: Number) -> None:
    """The adjoint of Aᵀ is conj(A), which BLAS does not have: the operand is conjugated meanwhile."""
    s, bar = r.sizes, Matrix(r.bars["b"], r.sizes["ldb"])
    flags = (s["side"], s["uplo"], s.flipped("transa"), s["diag"], s["m"], s["n"])
    with r.conjugated(s.is_transposed("transa"), s["m"], s["n"], bar):
        r.call(routine, *flags, factor, r.arrays["a"], s["lda"], bar.data, s["ldb"])


def _add_product(r: Adjoint, b: Value, factor: Number) -> None:
    """Ā += factor B̄ Bᴴ on the triangle, or Bᴴ B̄ where A is on the right.

    Where A is adjoint, B and B̄ change places; where it is transposed, it is the conjugate of that, factor included.
    """
    k, s = r.k, r.sizes
    m, n, plain = s["m"], s["n"], s.is_plain("transa")
    with r.active("a") as shadow:
        target, product = Matrix(shadow, s["lda"]), Matrix(r.work, _order(s))
        with k.when(s.is_left()):
            left, right = s.swapped(plain, r.bars["b"], b)
            r.call("gemm", "n", "c", m, m, n, factor, left, s["ldb"], right, s["ldb"], k.nothing, r.work, m)
        with r.otherwise(s.is_left()):
            right, left = s.swapped(plain, r.bars["b"], b)
            r.call("gemm", "c", "n", n, n, m, factor, left, s["ldb"], right, s["ldb"], k.nothing, r.work, n)
        with r.triangle(_order(s)) as (i, j):
            fixed = k.build.and_(s.is_unit(), k.build.icmp("eq", i, j))
            value = k.load(product, i, j)
            amount = choose(s.is_transposed("transa"), value.conj(), value)
            k.store(k.load(target, i, j) + choose(fixed, k.nothing, amount), target, i, j)


# ------------------------------------------------------------------------------------------------ rules


def _room(sizes: Sizes, active: Callable[[str], bool]) -> Value | None:
    """For a result, if alpha is active, or a product of the order of the other matrix."""
    build, order = sizes.build, _order(sizes)
    larger = build.intrinsic("llvm.smax.i64", order.type, [_area(sizes), build.mul(order, order)])
    return larger if active("a") or active("alpha") else None


_GEMM: Final = ("transa", "transb", "m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc")
_SYMM: Final = ("side", "uplo", "m", "n", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc")
_SYRK: Final = ("uplo", "trans", "n", "k", "alpha", "a", "lda", "beta", "c", "ldc")
_TRIANGULAR: Final = ("side", "uplo", "transa", "diag", "m", "n", "alpha", "a", "lda", "b", "ldb")
_B: Final = matrix(_result, "ldb")
_C: Final = matrix(_result, "ldc")
_SIDE: Final = matrix(lambda sizes: (_order(sizes), _order(sizes)), "lda")
_NEEDED: Final = {"a": ("b", "alpha"), "b": ("a", "alpha"), "old c": ("beta",)}

RULES: Final[tuple[Rule, ...]] = (
    Routine(
        "gemm",
        _GEMM,
        "c",
        {"a": matrix(_stored("transa", "m", "k"), "lda"), "b": matrix(_stored("transb", "k", "n"), "ldb"), "c": _C},
        _NEEDED,
        _gemm,
        lambda sizes, active: _area(sizes) if active("alpha") else None,
        letters="sdcz",
    ).rule(),
    Routine("symm", _SYMM, "c", {"a": _SIDE, "b": _B, "c": _C}, _NEEDED, _symm, _room).rule(),
    Routine(
        "syrk",
        _SYRK,
        "c",
        {"a": matrix(_stored("trans", "n", "k"), "lda"), "c": matrix(lambda s: (s["n"], s["n"]), "ldc")},
        {"a": ("a", "alpha"), "old c": ("beta",)},
        _syrk,
        lambda sizes, _: sizes.build.mul(sizes["n"], sizes["n"]),
        letters="sdcz",
    ).rule(),
    Routine(
        "trmm",
        _TRIANGULAR,
        "b",
        {"a": _SIDE, "b": _B},
        {"a": ("b", "alpha"), "old b": ("a", "alpha")},
        _trmm,
        _room,
        letters="sdcz",
    ).rule(),
    Routine(
        "trsm",
        _TRIANGULAR,
        "b",
        {"a": _SIDE, "b": _B},
        {"a": ("a", "b", "alpha"), "new b": ("a",), "old b": ("alpha",)},
        _trsm,
        _room,
        letters="sdcz",
    ).rule(),
)
