"""Routines of BLAS for matrices, by symbol: gemm, symm, syrk, trmm, trsm.

The adjoints are calls of the same library.
"""

from __future__ import annotations

from typing import Final

from irad.rules.blas.bilinear import GEMM, GEMM_SHAPES, SYMM, SYRK, stored
from irad.rules.blas.triangles import TRMM, TRSM, order
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Sizes
from irad.rules.dense.elements import Scalar, choose, product_or_zero
from irad.rules.dense.kernel import TRUE
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.routine import Routine, fortran_rule
from irad.ruleset.interface import Rule

# ------------------------------------------------------------------------------------------------ general matrices


def _gemm(r: Adjoint) -> None:
    """C ← α op(A) op(B) + β C: Ā += conj(α) C̄ op(B)ᴴ, B̄ += conj(α) op(A)ᴴ C̄, and as the operands are transposed.

    BLAS has no product with a conjugate that is not transposed too; where one is wanted, what it works on is conjugated
    in memory for its time: conj(Ā) += α conj(C̄) B is Ā += conj(α) C̄ conj(B).
    """
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    m, n, inner, a, b, bar = s["m"], s["n"], s["k"], r.matrix("a"), r.matrix("b"), r.bar("c")
    with k.when(bar.counts()):
        with r.active_factor("alpha") as alpha_bar:
            product = r.scratch(m, n)
            r.call("gemm", s["transa"], s["transb"], m, n, inner, one, a, b, k.nothing, product)
            alpha_bar.value = alpha_bar.value + product.inner(bar)
        with r.active("a") as a_bar:
            with k.when(s.is_plain("transa")):
                conjugates = s.is_transposed("transb")
                factor = r.conjugated_unless(conjugates, alpha)
                with r.conjugated(conjugates, bar, a_bar):
                    r.call("gemm", "n", s.flipped("transb"), m, inner, n, factor, bar, b, one, a_bar)
            with k.unless(s.is_plain("transa")), r.conjugated(s.is_transposed("transa"), a_bar):
                r.call("gemm", s["transb"], "c", inner, m, n, alpha, b, bar, one, a_bar)
        with r.active("b") as b_bar:
            with k.when(s.is_plain("transb")):
                conjugates = s.is_transposed("transa")
                factor = r.conjugated_unless(conjugates, alpha)
                with r.conjugated(conjugates, bar, b_bar):
                    r.call("gemm", s.flipped("transa"), "n", inner, n, m, factor, a, bar, one, b_bar)
            with k.unless(s.is_plain("transb")), r.conjugated(s.is_transposed("transb"), b_bar):
                r.call("gemm", "c", s["transa"], n, inner, m, alpha, bar, a, one, b_bar)
    r.end_output(bar, lambda: r.matrix("old c"))


# ------------------------------------------------------------------------------------------------ symmetric matrices


def _symm(r: Adjoint) -> None:
    """C ← α A B + β C, or α B A, A symmetric; an element of the triangle appears in two places."""
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    m, n, a, b, bar = s["m"], s["n"], r.matrix("a"), r.matrix("b"), r.bar("c")
    flags = (s["side"], s["uplo"], m, n)
    with k.when(bar.counts()):
        with r.active_factor("alpha") as alpha_bar:
            product = r.scratch(m, n)
            r.call("symm", *flags, one, a, b, k.nothing, product)
            alpha_bar.value = alpha_bar.value + product.inner(bar)
        with r.active("a") as a_bar:
            square = r.scratch(a_bar.rows, a_bar.rows)
            with k.when(s.is_left()):
                r.call("gemm", "n", "t", m, m, n, alpha, bar, b, k.nothing, square)
            with k.unless(s.is_left()):
                r.call("gemm", "t", "n", n, n, m, alpha, b, bar, k.nothing, square)
            r.add_on_triangle(a_bar, lambda i, j: square[i, j] + choose(k.same(i, j), 0.0, square[j, i]))
        with r.active("b") as b_bar:
            r.call("symm", *flags, alpha, a, bar, one, b_bar)
    r.end_output(bar, lambda: r.matrix("old c"))


def _syrk(r: Adjoint) -> None:
    """C ← α A Aᵀ + β C, or α Aᵀ A, on a triangle: conj(Ā) += α S A, or α A S, S = conj(C̄ + C̄ᵀ) of the triangle."""
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    n, inner, a, bar, plain = s["n"], s["k"], r.matrix("a"), r.bar("c"), s.is_plain("trans")
    work = r.scratch(n, n)
    with k.when(bar.counts()):
        with r.active_factor("alpha") as alpha_bar:
            r.call("syrk", s["uplo"], s["trans"], n, inner, one, a, k.nothing, work)
            alpha_bar.value = alpha_bar.value + _inner_of_triangles(r, work, bar)
        with r.active("a") as a_bar:
            with r.triangle(n) as (i, j):
                value = bar[i, j].conj()
                work[i, j] = choose(k.same(i, j), value + value, value)
            with r.conjugated(TRUE, a_bar):
                with k.when(plain):
                    r.call("symm", "l", s["uplo"], n, inner, alpha, work, a, one, a_bar)
                with k.unless(plain):
                    r.call("symm", "r", s["uplo"], inner, n, alpha, work, a, one, a_bar)
    with r.active_factor("beta") as beta_bar:
        beta_bar.value = beta_bar.value + _inner_of_triangles(r, r.matrix("old c"), bar)
    with r.triangle(n) as (i, j):
        bar[i, j] = product_or_zero(bar[i, j], r.factors["beta"].conj())


def _inner_of_triangles(r: Adjoint, a: Matrix, b: Matrix) -> Scalar:
    total = r.k.variable()
    with r.triangle(r.sizes["n"]) as (i, j):
        total.accumulate(product_or_zero(b[i, j], a[i, j].conj()))
    return total.value


# ------------------------------------------------------------------------------------------------ triangular matrices


def _trmm(r: Adjoint) -> None:
    """B ← α op(A) B, or α B op(A): Ā += conj(α) B̄ Bᴴ, or its like, on the triangle; B̄ ← conj(α) op(A)ᴴ B̄."""
    k, s, alpha = r.k, r.sizes, r.factors["alpha"]
    m, n, bar = s["m"], s["n"], r.bar("b")
    with k.when(bar.counts()):
        with r.active_factor("alpha") as alpha_bar:
            product = r.scratch(m, n)
            product.set(r.matrix("old b"))
            flags = (s["side"], s["uplo"], s["transa"], s["diag"], m, n)
            r.call("trmm", *flags, k.number(1.0), r.matrix("a"), product)
            alpha_bar.value = alpha_bar.value + product.inner(bar)
        _add_product(r, r.matrix("old b"), choose(s.is_plain("transa"), alpha.conj(), alpha))
        _apply_adjoint(r, "trmm", r.conjugated_unless(s.is_transposed("transa"), alpha))


def _trsm(r: Adjoint) -> None:
    """B ← α op(A)⁻¹ B =: X, or α B op(A)⁻¹: B̄ ← op(A)⁻ᴴ B̄, Ā -= B̄ Xᴴ, or its like, on the triangle; B̄ ← conj(α) B̄."""
    k, bar = r.k, r.bar("b")
    with k.when(bar.counts()):
        _apply_adjoint(r, "trsm", k.number(1.0))
        with r.active_factor("alpha") as alpha_bar:
            alpha_bar.value = alpha_bar.value + r.matrix("old b").inner(bar)
        _add_product(r, r.matrix("new b"), k.number(-1.0))
        bar.scale(r.factors["alpha"].conj())


def _apply_adjoint(r: Adjoint, routine: str, factor: Scalar) -> None:
    """The adjoint of Aᵀ is conj(A), which BLAS does not have: the operand is conjugated meanwhile."""
    s, bar = r.sizes, r.bar("b")
    flags = (s["side"], s["uplo"], s.flipped("transa"), s["diag"], s["m"], s["n"])
    with r.conjugated(s.is_transposed("transa"), bar):
        r.call(routine, *flags, factor, r.matrix("a"), bar)


def _add_product(r: Adjoint, b: Matrix, factor: Scalar) -> None:
    """Ā += factor B̄ Bᴴ on the triangle, or Bᴴ B̄ where A is on the right.

    Where A is adjoint, B and B̄ change places; where it is transposed, it is the conjugate of that, factor included.
    """
    k, s = r.k, r.sizes
    plain, transposed = s.is_plain("transa"), s.is_transposed("transa")
    with r.active("a") as a_bar:
        product = r.scratch(a_bar.rows, a_bar.rows)
        first, second = r.bar("b").or_else(plain, b), b.or_else(plain, r.bar("b"))
        with k.when(s.is_left()):
            r.call("gemm", "n", "c", s["m"], s["m"], s["n"], factor, first, second, k.nothing, product)
        with k.unless(s.is_left()):
            r.call("gemm", "c", "n", s["n"], s["n"], s["m"], factor, second, first, k.nothing, product)
        r.add_on_triangle(a_bar, lambda i, j: choose(transposed, product[i, j].conj(), product[i, j]))


# ------------------------------------------------------------------------------------------------ rules


def _product_room(sizes: Sizes, active: IsActive) -> Room:
    """For a result, if alpha is active."""
    return Room([(sizes["m"], sizes["n"])] if active("alpha") else [])


def _room(sizes: Sizes, active: IsActive) -> Room:
    """For a result, if alpha is active, or a product of the order of the other matrix."""
    if not (active("a") or active("alpha")):
        return Room()
    build, side = sizes.build, order(sizes)
    area = build.mul(sizes["m"], sizes["n"])
    return Room(vectors=[build.intrinsic("llvm.smax.i64", side.type, [area, build.mul(side, side)])])


_SYMM: Final = "side uplo m n alpha a lda b ldb beta c ldc"
_SYRK: Final = "uplo trans n k alpha a lda beta c ldc"
_TRIANGULAR: Final = "side uplo transa diag m n alpha a lda b ldb"
_C: Final = GEMM_SHAPES["c"]
_SIDE: Final = {"a": MatrixShape(order, order, "lda"), "b": MatrixShape("m", "n", "ldb")}
_UPDATED: Final = {"a": stored("trans", "n", "k", "lda"), "c": MatrixShape("n", "n", "ldc")}
_NEEDED: Final = {"a": "b alpha", "b": "a alpha", "old c": "beta"}
_TRMM: Final = {"a": "b alpha", "old b": "a alpha"}
_TRSM: Final = {"a": "a b alpha", "new b": "a", "old b": "alpha"}

RULES: Final[tuple[Rule, ...]] = (
    fortran_rule(
        Routine(
            "gemm",
            "transa transb m n k alpha a lda b ldb beta c ldc",
            GEMM_SHAPES,
            _NEEDED,
            _gemm,
            "c",
            _product_room,
            tangent=GEMM,
        ),
        letters="sdcz",
    ),
    fortran_rule(Routine("symm", _SYMM, {**_SIDE, "c": _C}, _NEEDED, _symm, "c", _room, tangent=SYMM)),
    fortran_rule(
        Routine(
            "syrk",
            _SYRK,
            _UPDATED,
            {"a": "a alpha", "old c": "beta"},
            _syrk,
            "c",
            lambda sizes, _: Room([(sizes["n"], sizes["n"])]),
            tangent=SYRK,
        ),
        letters="sdcz",
    ),
    fortran_rule(Routine("trmm", _TRIANGULAR, _SIDE, _TRMM, _trmm, "b", _room, tangent=TRMM), letters="sdcz"),
    fortran_rule(Routine("trsm", _TRIANGULAR, _SIDE, _TRSM, _trsm, "b", _room, tangent=TRSM), letters="sdcz"),
)
