"""Routines of BLAS for a matrix and vectors, by symbol: gemv, ger, symv, trmv, trsv.

Products are calls of the same library. What goes only into a triangle is a loop.
"""

from __future__ import annotations

from typing import Final

from irad.ir.values import Value, const_int
from irad.rules.blas.bilinear import GEMV, SYMV, gemv_shapes, outer_product_tangent
from irad.rules.blas.triangles import TRMV, TRSV
from irad.rules.dense.adjoint import Adjoint, ArrayShape, MatrixShape, Room, Shapes, VectorShape
from irad.rules.dense.elements import Scalar, choose
from irad.rules.dense.kernel import I1, NONE, TRUE
from irad.rules.dense.matrix import Vector
from irad.rules.dense.routine import Body, Routine, Work, fortran_rule
from irad.ruleset.interface import Rule

# ------------------------------------------------------------------------------------------------ general matrices


def _gemv(r: Adjoint) -> None:
    """For y ← α op(A) x + β y: Ā += conj(α) ȳ xᴴ, x̄ += conj(α) op(A)ᴴ ȳ, and as A is transposed; see `_gemm`.

    With m or n = 0 BLAS leaves y.
    """
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    m, n, a, x, y_bar = s["m"], s["n"], r.matrix("a"), r.vector("x"), r.vector_bar("y")
    bar, plain, transposed = y_bar.line, s.is_plain("trans"), s.is_transposed("trans")
    some = k.build.icmp("sgt", k.smaller(m, n), NONE)
    with k.when(k.build.and_(some, bar.counts())):
        with r.active_factor("alpha") as alpha_bar:
            product = r.scratch_vector(y_bar)
            r.call("gemv", s["trans"], m, n, one, a, x, k.nothing, product)
            alpha_bar.value = alpha_bar.value + product.line.inner(bar)
        with r.active("a") as shadow:
            left, right = s.swapped(plain, y_bar.data, x.data)
            steps = s.swapped(plain, s["incy"], s["incx"])
            factor = r.conjugated_unless(k.build.xor(plain, TRUE), alpha)
            with r.conjugated(transposed, shadow):
                outer = "gerc" if k.element.is_complex else "ger"
                r.call(outer, m, n, factor, left, steps[0], right, steps[1], shadow)
        with r.active_vector("x") as x_bar, r.conjugated(transposed, bar, x_bar.line):
            r.call("gemv", s.flipped("trans"), m, n, r.conjugated_unless(transposed, alpha), a, y_bar, one, x_bar)
        r.end_output(bar, lambda: r.vector("old y").line)


def _ger(*, conjugates: bool) -> Body:
    """For A += α x yᴴ: x̄ += conj(α) Ā y, ȳ += α Āᴴ x. For A += α x yᵀ: x̄ += conj(α) Ā conj(y), ȳ += conj(α) Āᵀ conj(x).

    Of the latter BLAS has the conjugates: conj(x̄) += α conj(Ā) y, conj(ȳ) += α Āᴴ x.
    """
    other = const_int(I1, not conjugates)

    def body(r: Adjoint) -> None:
        k, alpha, one = r.k, r.factors["alpha"], r.k.number(1.0)
        m, n, bar, x, y = r.sizes["m"], r.sizes["n"], r.bar("a"), r.vector("x"), r.vector("y")
        with k.when(bar.counts()):
            with r.active_factor("alpha") as alpha_bar:
                product = r.scratch_vector(x)
                with r.conjugated(other, bar):
                    r.call("gemv", "n", m, n, one, bar, y, k.nothing, product)
                with r.conjugated(other, product.line):
                    alpha_bar.value = alpha_bar.value + x.line.inner(product.line)
            with r.active_vector("x") as x_bar, r.conjugated(other, bar, x_bar.line):
                r.call("gemv", "n", m, n, alpha.conj() if conjugates else alpha, bar, y, one, x_bar)
            with r.active_vector("y") as y_bar, r.conjugated(other, y_bar.line):
                r.call("gemv", "c", m, n, alpha, bar, x, one, y_bar)

    return body


# ------------------------------------------------------------------------------------------------ triangles


def _symv(r: Adjoint) -> None:
    """For y ← α A x + β y, A symmetric: x̄ += α A ȳ; an element of the triangle appears in two places."""
    k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
    a, x, y_bar = r.matrix("a"), r.vector("x"), r.vector_bar("y")
    bar = y_bar.line
    with k.when(bar.counts()):
        with r.active_factor("alpha") as alpha_bar:
            product = r.scratch_vector(y_bar)
            r.call("symv", s["uplo"], s["n"], one, a, x, k.nothing, product)
            alpha_bar.value = alpha_bar.value + product.line.inner(bar)
        with r.active("a") as shadow, r.triangle(s["n"]) as (i, j):
            other = choose(k.same(i, j), 0.0, y_bar[j] * x[i])
            shadow[i, j] = shadow[i, j] + alpha * (y_bar[i] * x[j] + other)
        with r.active_vector("x") as x_bar:
            r.call("symv", s["uplo"], s["n"], alpha, a, y_bar, one, x_bar)
        r.end_output(bar, lambda: r.vector("old y").line)


def _trmv(r: Adjoint) -> None:
    """For x ← op(A) x: Ā += x̄ xᴴ, or its like, on the triangle; x̄ ← op(A)ᴴ x̄."""
    with r.k.when(r.vector_bar("x").line.counts()):
        _add_outer(r, r.vector("old x"), 1.0)
        _apply_adjoint(r, "trmv")


def _trsv(r: Adjoint) -> None:
    """For x ← op(A)⁻¹ x: x̄ ← op(A)⁻ᴴ x̄, then Ā -= x̄ xᴴ, or its like, on the triangle."""
    with r.k.when(r.vector_bar("x").line.counts()):
        _apply_adjoint(r, "trsv")
        _add_outer(r, r.vector("new x"), -1.0)


def _apply_adjoint(r: Adjoint, routine: str) -> None:
    """The adjoint of Aᵀ is conj(A), which BLAS does not have: conj(x̄) ← A conj(x̄)."""
    s, bar = r.sizes, r.vector_bar("x")
    with r.conjugated(s.is_transposed("trans"), bar.line):
        r.call(routine, s["uplo"], s.flipped("trans"), s["diag"], s["n"], r.matrix("a"), bar)


def _add_outer(r: Adjoint, x: Vector, sign: float) -> None:
    """On the triangle Ā += ± x̄ xᴴ, or x x̄ᴴ where A is adjoint, the conjugate of that where it is transposed."""
    s, bar = r.sizes, r.vector_bar("x")
    first, second = s.swapped(s.is_plain("trans"), bar.data, x.data)
    left, right = (Vector(r.k, data, x.size, x.step, x.start) for data in (first, second))
    transposed = s.is_transposed("trans")

    def amount(i: Value, j: Value) -> Scalar:
        share = sign * left[i] * right[j].conj()
        return choose(transposed, share.conj(), share)

    with r.active("a") as shadow:
        r.add_on_triangle(shadow, amount)


# ------------------------------------------------------------------------------------------------ rules

_GER: Final = "m n alpha x incx y incy a lda"
_TRIANGULAR: Final = "uplo trans diag n a lda x incx"
_OPERANDS: Final = gemv_shapes("incx", "incy")
_UPDATE: Final[Shapes] = {"a": _OPERANDS["a"], "x": VectorShape("m", "incx"), "y": VectorShape("n", "incy")}
_TRIANGLE: Final[Shapes] = {
    "a": MatrixShape("n", "n", "lda"),
    "x": VectorShape("n", "incx"),
    "y": VectorShape("n", "incy"),
}
_ONE_VECTOR: Final[Shapes] = {"a": _TRIANGLE["a"], "x": _TRIANGLE["x"]}
_NEEDED: Final = {"a": "x alpha", "x": "a alpha", "old y": "beta"}


def _room(of: ArrayShape) -> Work:
    """For a vector of that shape, if alpha is active."""
    return lambda sizes, active: Room(vectors=[of.count(sizes)] if active("alpha") else [])


def _update(name: str, letters: str, *, conjugates: bool) -> Rule:
    needs, body = {"x": "y alpha", "y": "x alpha"}, _ger(conjugates=conjugates)
    work, tangent = _room(_UPDATE["x"]), outer_product_tangent(name)
    return fortran_rule(Routine(name, _GER, _UPDATE, needs, body, "a", work, tangent=tangent), letters=letters)


RULES: Final[tuple[Rule, ...]] = (
    fortran_rule(
        Routine(
            "gemv",
            "trans m n alpha a lda x incx beta y incy",
            _OPERANDS,
            _NEEDED,
            _gemv,
            "y",
            _room(_OPERANDS["y"]),
            tangent=GEMV,
        ),
        letters="sdcz",
    ),
    _update("ger", "sd", conjugates=True),
    _update("geru", "cz", conjugates=False),
    _update("gerc", "cz", conjugates=True),
    fortran_rule(
        Routine(
            "symv",
            "uplo n alpha a lda x incx beta y incy",
            _TRIANGLE,
            _NEEDED,
            _symv,
            "y",
            _room(_TRIANGLE["y"]),
            tangent=SYMV,
        )
    ),
    fortran_rule(
        Routine("trmv", _TRIANGULAR, _ONE_VECTOR, {"a": "x", "old x": "a"}, _trmv, "x", tangent=TRMV), letters="sdcz"
    ),
    fortran_rule(
        Routine("trsv", _TRIANGULAR, _ONE_VECTOR, {"a": "a x", "new x": "a"}, _trsv, "x", tangent=TRSV), letters="sdcz"
    ),
)
