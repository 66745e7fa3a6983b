"""Vector routines of BLAS by symbol: dot, nrm2, asum, axpy, scal, copy, swap, with steps of either sign.

Their derivatives are loops: a call would not be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from irad.ir.values import Value
from irad.rules.dense.adjoint import Adjoint, Operands, VectorShape
from irad.rules.dense.elements import Scalar, product_or_zero
from irad.rules.dense.kernel import NONE
from irad.rules.dense.matrix import Vector
from irad.rules.dense.routine import Body, Routine, fortran_rule
from irad.rules.dense.tangent import Differential, Tangent
from irad.ruleset.interface import Rule


def _dot(*, conjugates: bool) -> Body:
    """For s = Σ x y: x̄ += s̄ conj(y), ȳ += s̄ conj(x). For s = Σ conj(x) y: x̄ += conj(s̄) y, ȳ += s̄ x."""

    def body(r: Adjoint) -> None:
        bar = _result_bar(r)
        for name, other, swaps in (("x", "y", conjugates), ("y", "x", False)):
            given, share = r.vector(other), bar.conj() if swaps else bar
            with r.k.when(bar.counts()), r.active_vector(name) as shadow, r.k.loop(shadow.size) as i:
                shadow[i] = shadow[i] + share * (given[i] if conjugates else given[i].conj())

    return body


def _dot_tangent(*, conjugates: bool) -> Differential:
    return Differential(after=lambda r: inner_product_tangent(r, Scalar.conj if conjugates else lambda x: x))


def inner_product_tangent(r: Tangent, turned: Callable[[Scalar], Scalar]) -> Scalar:
    """Σ turned(x') y + turned(x) y' of s = Σ turned(x) y."""
    total, x, y = r.k.variable(), r.vector("x"), r.vector("y")
    with r.active_vector("x") as tangent, r.k.loop(x.size) as i:
        total.accumulate(r.scaled(turned(tangent[i]), y[i]))
    with r.active_vector("y") as tangent, r.k.loop(y.size) as i:
        total.accumulate(r.scaled(tangent[i], turned(x[i])))
    return total.value


def _norm(r: Adjoint) -> None:
    """x̄ += r̄ x / r, 0 at the origin."""
    bar = _result_bar(r)
    with r.k.when(bar.counts()), r.active_vector("x") as shadow, _normalised(r.vector("x")) as unit:
        shadow.fill(lambda i: shadow[i] + bar * unit(i))


def _norm_tangent(r: Tangent) -> Scalar:
    """The real part of Σ conj(x) x' / r, 0 at the origin."""
    total = r.k.real.variable()
    with r.active_vector("x") as tangent, _normalised(r.vector("x")) as unit, r.k.loop(tangent.size) as i:
        total.accumulate(r.scaled(tangent[i], unit(i).conj()).real)
    return total.value


@contextmanager
def _normalised(x: Vector) -> Iterator[Callable[[Value], Scalar]]:
    """Emits what is done unless a vector is 0 throughout; gives the elements over the norm."""
    k, scale = x.k, x.largest()
    with k.when(scale.is_nonzero()):
        total = k.real.variable()
        with k.loop(x.size) as i:
            total.accumulate((x[i] / scale).square())
        root = total.value.root()
        yield lambda i: (x[i] / scale) / root


def _absolute_sum(r: Adjoint) -> None:
    """x̄ += r̄ sign(x), of real and imaginary parts; a step that is not positive gives 0."""
    bar, x = _result_bar(r), r.vector("x")
    with r.k.when(r.k.build.and_(_ascends(r), bar.counts())), r.active_vector("x") as shadow:
        shadow.fill(lambda i: shadow[i] + bar * x[i].sign())


def _absolute_sum_tangent(r: Tangent) -> Scalar:
    """Σ sign(x) x' of real and imaginary parts."""
    total, x = r.k.real.variable(), r.vector("x")
    with r.k.when(_ascends(r)), r.active_vector("x") as tangent, r.k.loop(x.size) as i:
        signs = x[i].sign()
        total.accumulate(r.scaled(tangent[i].real, signs.real) + r.scaled(tangent[i].imag, signs.imag))
    return total.value


def _add_scaled(r: Adjoint) -> None:
    """For y += α x: x̄ += conj(α) ȳ, ᾱ += xᴴ ȳ."""
    x, y_bar = r.vector("x"), r.vector_bar("y")
    _add_to_alpha(r, x, y_bar)
    with r.active_vector("x") as shadow:
        shadow.fill(lambda i: shadow[i] + product_or_zero(y_bar[i], r.factors["alpha"].conj()))


def _add_scaled_tangent(r: Tangent) -> None:
    """`y' += α x' + α' x`."""
    target, x = r.vector_tangent("y"), r.vector("x")
    with r.active_vector("x") as tangent:
        target.fill(lambda i: target[i] + r.scaled(tangent[i], r.factors["alpha"]))
    with r.moving_factor("alpha") as factor:
        target.fill(lambda i: target[i] + r.scaled(factor, x[i]))


def _scale(r: Adjoint) -> None:
    """For x ← α x: ᾱ += xᴴ x̄, x̄ ← conj(α) x̄. Nothing happens where the step is not positive."""
    bar = r.vector_bar("x")
    with r.k.when(_ascends(r)):
        _add_to_alpha(r, r.vector("old x"), bar)
        bar.fill(lambda i: product_or_zero(bar[i], r.factors["alpha"].conj()))


def _scale_tangent(r: Tangent) -> None:
    """`x' ← α x' + α' x`."""
    target, x = r.vector_tangent("x"), r.vector("x")
    with r.k.when(_ascends(r)):
        target.fill(lambda i: r.scaled(target[i], r.factors["alpha"]))
        with r.moving_factor("alpha") as factor:
            target.fill(lambda i: target[i] + r.scaled(factor, x[i]))


def _copy(r: Adjoint) -> None:
    """For y ← x: x̄ += ȳ, ȳ ← 0."""
    y_bar = r.vector_bar("y")
    with r.k.loop(y_bar.size) as i:
        taken = y_bar[i]
        y_bar[i] = r.k.nothing
        with r.active_vector("x") as shadow:
            shadow[i] = shadow[i] + taken


def _copy_tangent(r: Tangent) -> None:
    """`y' ← x'`."""
    target = r.vector_tangent("y")
    with r.k.unless(r.is_active("x")):
        target.fill(lambda i: r.k.nothing)
    with r.active_vector("x") as tangent:
        target.fill(lambda i: tangent[i])


def _swap(r: Adjoint) -> None:
    """For x ⇄ y: so the cotangents."""
    x_bar, y_bar = r.vector_bar("x"), r.vector_bar("y")
    with r.k.loop(x_bar.size) as i:
        x_bar[i], y_bar[i] = y_bar[i], x_bar[i]


def _swap_tangent(r: Tangent) -> None:
    """`x' ⇄ y'`; a vector without a tangent takes zeros."""
    k = r.k
    for name, other in ("x", "y"), ("y", "x"):
        with r.active_vector(name) as tangent, k.unless(r.is_active(other)):
            tangent.fill(lambda i: k.nothing)
    with r.active_vector("x") as x, r.active_vector("y") as y, k.loop(x.size) as i:
        x[i], y[i] = y[i], x[i]


def _result_bar(r: Adjoint) -> Scalar:
    assert r.result_bar is not None
    return r.result_bar


def _ascends(r: Operands) -> Value:
    return r.k.build.icmp("sgt", r.sizes["incx"], NONE)


def _add_to_alpha(r: Adjoint, x: Vector, bar: Vector) -> None:
    with r.active_factor("alpha") as alpha_bar:
        alpha_bar.value = alpha_bar.value + bar.sum(lambda i: product_or_zero(bar[i], x[i].conj()))


def _product(name: str, letters: str, *, conjugates: bool) -> Rule:
    adjoint, tangent = _dot(conjugates=conjugates), _dot_tangent(conjugates=conjugates)
    return fortran_rule(Routine(name, _TWO, _BOTH, _OTHER, adjoint, tangent=tangent), letters=letters)


_TWO: Final = "n x incx y incy"
_X: Final = {"x": VectorShape("n", "incx")}
_BOTH: Final = {"x": VectorShape("n", "incx"), "y": VectorShape("n", "incy")}
_OTHER: Final = {"x": "y", "y": "x"}
_REAL_RESULT: Final = ("s", "d", "sc", "dz")

RULES: Final[tuple[Rule, ...]] = (
    _product("dot", "sd", conjugates=False),
    _product("dotu", "cz", conjugates=False),
    _product("dotc", "cz", conjugates=True),
    fortran_rule(
        Routine("nrm2", "n x incx", _X, {"x": "x"}, _norm, tangent=Differential(after=_norm_tangent)),
        letters=_REAL_RESULT,
    ),
    fortran_rule(
        Routine("asum", "n x incx", _X, {"x": "x"}, _absolute_sum, tangent=Differential(after=_absolute_sum_tangent)),
        letters=_REAL_RESULT,
    ),
    fortran_rule(
        Routine(
            "axpy",
            "n alpha x incx y incy",
            _BOTH,
            {"x": "alpha"},
            _add_scaled,
            "y",
            tangent=Differential(_add_scaled_tangent),
        ),
        letters="sdcz",
    ),
    fortran_rule(
        Routine("scal", "n alpha x incx", _X, {"old x": "alpha"}, _scale, "x", tangent=Differential(_scale_tangent)),
        letters="sdcz",
    ),
    fortran_rule(Routine("copy", _TWO, _BOTH, {}, _copy, "y", tangent=Differential(_copy_tangent)), letters="sdcz"),
    fortran_rule(
        Routine("swap", _TWO, _BOTH, {}, _swap, "y", tangent=Differential(_swap_tangent, also_written="x")),
        letters="sdcz",
        also_written="x",
    ),
)
