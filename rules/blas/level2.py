"""Routines of BLAS for a matrix and vectors, by symbol: gemv, ger, symv, trmv, trsv.

Products are calls of the same library. What goes into a triangle only is a loop.
"""

from __future__ import annotations

from typing import Final

from irad.ir.values import Value, const_int
from irad.rules.blas.elements import Number, choose
from irad.rules.blas.fortran import I1, Adjoint, Body, Routine, Sizes, matrix, vector
from irad.rules.lapack.matrices import NONE, ONE, Matrix, any_nonzero
from irad.ruleset.interface import Rule


def _size(sizes: Sizes) -> Value:
    return sizes["n"]


def _of_result(sizes: Sizes) -> Value:
    """Elements of op(A) x."""
    return sizes.swapped(sizes.is_plain("trans"), sizes["m"], sizes["n"])[0]


def _of_operand(sizes: Sizes) -> Value:
    return sizes.swapped(sizes.is_plain("trans"), sizes["m"], sizes["n"])[1]


_FULL: Final = matrix(lambda sizes: (sizes["m"], sizes["n"]), "lda")
_SQUARE: Final = matrix(lambda sizes: (sizes["n"], sizes["n"]), "lda")


# ------------------------------------------------------------------------------------------------ general matrices


def _gemv(r: Adjoint) -> None:
    """For y ← α op(A) x + β y: Ā += conj(α) ȳ xᴴ, x̄ += conj(α) op(A)ᴴ ȳ, and as A is transposed; see `_gemm`.

    With m or n = 0 BLAS leaves y.
    """
    k, s, alpha, one, y_bar = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0), r.bars["y"]
    a, x = (r.arrays["a"], s["lda"]), (r.arrays["x"], s["incx"])
    length, bar, y = _of_result(s), r.line(y_bar, "incy"), (y_bar, s["incy"])
    plain, transposed = s.is_plain("trans"), s.is_transposed("trans")
    some = k.build.icmp("sgt", k.smaller(s["m"], s["n"]), NONE)
    with k.when(k.build.and_(some, any_nonzero(k, ONE, length, bar))):
        with r.active("alpha"):
            r.call("gemv", s["trans"], s["m"], s["n"], one, *a, *x, k.nothing, r.work, s["incy"])
            r.add_to_factor("alpha", r.inner(ONE, length, r.line(r.work, "incy"), bar))
        with r.active("a") as shadow:
            left, right = s.swapped(plain, y[0], x[0])
            steps = s.swapped(plain, y[1], x[1])
            factor = r.conjugated_unless(k.build.xor(plain, const_int(I1, 1)), alpha)
            outer = "gerc" if k.element.is_complex else "ger"
            with r.conjugated(transposed, s["m"], s["n"], Matrix(shadow, s["lda"])):
                r.call(outer, s["m"], s["n"], factor, left, steps[0], right, steps[1], shadow, s["lda"])
        with r.active("x") as shadow:
            factor = r.conjugated_unless(transposed, alpha)
            x_bar = r.line(shadow, "incx")
            with r.conjugated(transposed, ONE, length, bar), r.conjugated(transposed, ONE, _of_operand(s), x_bar):
                r.call("gemv", s.flipped("trans"), s["m"], s["n"], factor, *a, *y, one, shadow, s["incx"])
        r.end_output(ONE, length, bar, "y")


def _ger(*, conjugates: bool) -> Body:
    """For A += α x yᴴ: x̄ += conj(α) Ā y, ȳ += α Āᴴ x. For A += α x yᵀ: x̄ += conj(α) Ā conj(y), ȳ += conj(α) Āᵀ conj(x).

    Of the latter BLAS has the conjugates: conj(x̄) += α conj(Ā) y, conj(ȳ) += α Āᴴ x.
    """
    other = const_int(I1, not conjugates)

    def body(r: Adjoint) -> None:
        k, s, alpha, one = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0)
        m, n, bar = s["m"], s["n"], Matrix(r.bars["a"], s["lda"])
        x, y = (r.arrays["x"], s["incx"]), (r.arrays["y"], s["incy"])
        with k.when(any_nonzero(k, m, n, bar)):
            with r.active("alpha"):
                work = r.line(r.work, "incx")
                with r.conjugated(other, m, n, bar):
                    r.call("gemv", "n", m, n, one, *_pair(bar), *y, k.nothing, r.work, s["incx"])
                with r.conjugated(other, ONE, m, work):
                    r.add_to_factor("alpha", r.inner(ONE, m, r.line(x[0], "incx"), work))
            with r.active("x") as shadow:
                x_bar, factor = r.line(shadow, "incx"), alpha.conj() if conjugates else alpha
                with r.conjugated(other, m, n, bar), r.conjugated(other, ONE, m, x_bar):
                    r.call("gemv", "n", m, n, factor, *_pair(bar), *y, one, shadow, s["incx"])
            with r.active("y") as shadow, r.conjugated(other, ONE, n, r.line(shadow, "incy")):
                r.call("gemv", "c", m, n, alpha, *_pair(bar), *x, one, shadow, s["incy"])

    return body


def _pair(a: Matrix) -> tuple[Value, Value]:
    """A matrix as BLAS takes it."""
    return a.data, a.leading


# ------------------------------------------------------------------------------------------------ triangles


def _symv(r: Adjoint) -> None:
    """For y ← α A x + β y, A symmetric: x̄ += α A ȳ; an element of the triangle appears in two places."""
    k, s, alpha, one, y_bar = r.k, r.sizes, r.factors["alpha"], r.k.number(1.0), r.bars["y"]
    n, a, x = s["n"], (r.arrays["a"], s["lda"]), (r.arrays["x"], s["incx"])
    bar = r.line(y_bar, "incy")
    with k.when(any_nonzero(k, ONE, n, bar)):
        with r.active("alpha"):
            r.call("symv", s["uplo"], n, one, *a, *x, k.nothing, r.work, s["incy"])
            r.add_to_factor("alpha", r.inner(ONE, n, r.line(r.work, "incy"), bar))
        with r.active("a") as shadow:
            target = Matrix(shadow, s["lda"])
            with r.triangle(n) as (i, j):
                there = _item(r, y_bar, i, "incy") * _item(r, x[0], j, "incx")
                other = _item(r, y_bar, j, "incy") * _item(r, x[0], i, "incx")
                other = choose(k.build.icmp("eq", i, j), k.nothing, other)
                k.store(k.load(target, i, j) + alpha * (there + other), target, i, j)
        with r.active("x") as shadow:
            r.call("symv", s["uplo"], n, alpha, *a, y_bar, s["incy"], one, shadow, s["incx"])
        r.end_output(ONE, n, bar, "y")


def _trmv(r: Adjoint) -> None:
    """For x ← op(A) x: Ā += x̄ xᴴ, or its like, on the triangle; x̄ ← op(A)ᴴ x̄."""
    s, bar = r.sizes, r.bars["x"]
    with r.k.when(any_nonzero(r.k, ONE, s["n"], r.line(bar, "incx"))):
        _add_outer(r, bar, r.arrays["old x"], r.k.number(1.0))
        _apply_adjoint(r, "trmv")


def _trsv(r: Adjoint) -> None:
    """For x ← op(A)⁻¹ x: x̄ ← op(A)⁻ᴴ x̄, then Ā -= x̄ xᴴ, or its like, on the triangle."""
    s, bar = r.sizes, r.bars["x"]
    with r.k.when(any_nonzero(r.k, ONE, s["n"], r.line(bar, "incx"))):
        _apply_adjoint(r, "trsv")
        _add_outer(r, bar, r.arrays["new x"], r.k.number(-1.0))


def _apply_adjoint(r: Adjoint, routine: str) -> None:
    """The adjoint of Aᵀ is conj(A), which BLAS does not have: conj(x̄) ← A conj(x̄)."""
    s, bar = r.sizes, r.bars["x"]
    flags = [s["uplo"], s.flipped("trans"), s["diag"]]
    with r.conjugated(s.is_transposed("trans"), ONE, s["n"], r.line(bar, "incx")):
        r.call(routine, *flags, s["n"], r.arrays["a"], s["lda"], bar, s["incx"])


def _add_outer(r: Adjoint, bar: Value, x: Value, sign: Number) -> None:
    """On the triangle Ā += ± x̄ xᴴ, or x x̄ᴴ where A is adjoint, the conjugate of that where it is transposed."""
    k, s = r.k, r.sizes
    left, right = s.swapped(s.is_plain("trans"), bar, x)
    with r.active("a") as shadow, r.triangle(s["n"]) as (i, j):
        target = Matrix(shadow, s["lda"])
        fixed = k.build.and_(s.is_unit(), k.build.icmp("eq", i, j))
        amount = sign * _item(r, left, i, "incx") * _item(r, right, j, "incx").conj()
        amount = choose(s.is_transposed("trans"), amount.conj(), amount)
        k.store(k.load(target, i, j) + choose(fixed, k.nothing, amount), target, i, j)


def _item(r: Adjoint, pointer: Value, i: Value, step: str) -> Number:
    return r.k.item(pointer, r.index(i, step))


# ------------------------------------------------------------------------------------------------ rules

_GEMV: Final = ("trans", "m", "n", "alpha", "a", "lda", "x", "incx", "beta", "y", "incy")
_GER: Final = ("m", "n", "alpha", "x", "incx", "y", "incy", "a", "lda")
_SYMV: Final = ("uplo", "n", "alpha", "a", "lda", "x", "incx", "beta", "y", "incy")
_TRIANGULAR: Final = ("uplo", "trans", "diag", "n", "a", "lda", "x", "incx")
_OPERANDS: Final = {"a": _FULL, "x": vector(_of_operand, "incx"), "y": vector(_of_result, "incy")}
_UPDATE: Final = {"a": _FULL, "x": vector(lambda sizes: sizes["m"], "incx"), "y": vector(_size, "incy")}
_TRIANGLE: Final = {"a": _SQUARE, "x": vector(_size, "incx"), "y": vector(_size, "incy")}
_NEEDED: Final = {"a": ("x", "alpha"), "x": ("a", "alpha"), "old y": ("beta",)}


def _update(name: str, letters: str, *, conjugates: bool) -> Rule:
    return Routine(
        name,
        _GER,
        "a",
        _UPDATE,
        {"x": ("y", "alpha"), "y": ("x", "alpha")},
        _ger(conjugates=conjugates),
        lambda sizes, active: _UPDATE["x"](sizes) if active("alpha") else None,
        letters=letters,
    ).rule()


RULES: Final[tuple[Rule, ...]] = (
    Routine(
        "gemv",
        _GEMV,
        "y",
        _OPERANDS,
        _NEEDED,
        _gemv,
        lambda sizes, active: _OPERANDS["y"](sizes) if active("alpha") else None,
        letters="sdcz",
    ).rule(),
    _update("ger", "sd", conjugates=True),
    _update("geru", "cz", conjugates=False),
    _update("gerc", "cz", conjugates=True),
    Routine(
        "symv",
        _SYMV,
        "y",
        _TRIANGLE,
        _NEEDED,
        _symv,
        lambda sizes, active: _TRIANGLE["y"](sizes) if active("alpha") else None,
    ).rule(),
    Routine("trmv", _TRIANGULAR, "x", _TRIANGLE, {"a": ("x",), "old x": ("a",)}, _trmv, letters="sdcz").rule(),
    Routine("trsv", _TRIANGULAR, "x", _TRIANGLE, {"a": ("a", "x"), "new x": ("a",)}, _trsv, letters="sdcz").rule(),
)
