"""Vector routines of BLAS by symbol: dot, nrm2, asum, axpy, scal, copy, swap, with steps of either sign.

Their adjoints are loops: a call would not be faster.
"""

from __future__ import annotations

from typing import Final

from irad.rules.blas.fortran import Adjoint, Body, Routine, vector
from irad.rules.lapack.matrices import NONE
from irad.ruleset.interface import Rule

_X: Final = vector(lambda sizes: sizes["n"], "incx")
_Y: Final = vector(lambda sizes: sizes["n"], "incy")


def _dot(*, conjugates: bool) -> Body:
    """For s = Σ x y: x̄ += s̄ conj(y), ȳ += s̄ conj(x). For s = Σ conj(x) y: x̄ += conj(s̄) y, ȳ += s̄ x."""

    def body(r: Adjoint) -> None:
        k, bar = r.k, r.result_bar
        assert bar is not None
        both = (("x", "incx", "y", "incy", conjugates), ("y", "incy", "x", "incx", False))
        for name, step, other, other_step, swaps in both:
            with k.when(bar.is_nonzero()), r.active(name) as shadow, k.loop(r.sizes["n"]) as i:
                place = r.index(i, step)
                value = k.item(r.arrays[other], r.index(i, other_step))
                share = (bar.conj() if swaps else bar) * (value if conjugates else value.conj())
                k.put(k.item(shadow, place) + share, shadow, place)

    return body


def _norm(r: Adjoint) -> None:
    """x̄ += r̄ x / r, 0 at the origin."""
    k, bar = r.k, r.result_bar
    assert bar is not None
    with k.when(bar.is_nonzero()), r.active("x") as shadow:
        norm = k.real.variable(k.nothing)
        largest = k.real.variable(k.nothing)
        with k.loop(r.sizes["n"]) as i:
            size = k.item(r.arrays["x"], r.index(i, "incx")).magnitude()
            k.real.write(k.real.read(largest).maximum(size), largest)
        scale = k.real.read(largest)
        with k.when(scale.is_nonzero()):
            with k.loop(r.sizes["n"]) as i:
                k.real.add_to(norm, (k.item(r.arrays["x"], r.index(i, "incx")) / scale).square())
            root = k.real.read(norm).root()
            with k.loop(r.sizes["n"]) as i:
                place = r.index(i, "incx")
                share = (k.item(r.arrays["x"], place) / scale) / root
                k.put(k.item(shadow, place) + bar * share, shadow, place)


def _absolute_sum(r: Adjoint) -> None:
    """x̄ += r̄ sign(x), of real and imaginary parts; a step that is not positive gives 0."""
    k, bar = r.k, r.result_bar
    assert bar is not None
    positive = k.build.icmp("sgt", r.sizes["incx"], NONE)
    with k.when(k.build.and_(positive, bar.is_nonzero())), r.active("x") as shadow, k.loop(r.sizes["n"]) as i:
        place = r.index(i, "incx")
        value = k.item(r.arrays["x"], place)
        k.put(k.item(shadow, place) + bar * value.sign(), shadow, place)


def _add_scaled(r: Adjoint) -> None:
    """For y += α x: x̄ += conj(α) ȳ, ᾱ += xᴴ ȳ."""
    k, y_bar = r.k, r.bars["y"]
    total = k.variable(k.nothing)
    with r.active("alpha"):
        with k.loop(r.sizes["n"]) as i:
            x = k.item(r.arrays["x"], r.index(i, "incx"))
            k.add_to(total, k.product(k.item(y_bar, r.index(i, "incy")), x.conj()))
        r.add_to_factor("alpha", k.read(total))
    with r.active("x") as shadow, k.loop(r.sizes["n"]) as i:
        place, bar = r.index(i, "incx"), k.item(y_bar, r.index(i, "incy"))
        share = k.product(bar, r.factors["alpha"].conj())
        k.put(k.item(shadow, place) + share, shadow, place)


def _scale(r: Adjoint) -> None:
    """For x ← α x: ᾱ += xᴴ x̄, x̄ ← conj(α) x̄. Nothing happens where the step is not positive."""
    k, bar = r.k, r.bars["x"]
    total = k.variable(k.nothing)
    with k.when(k.build.icmp("sgt", r.sizes["incx"], NONE)):
        with r.active("alpha"):
            with k.loop(r.sizes["n"]) as i:
                place = r.index(i, "incx")
                k.add_to(total, k.product(k.item(bar, place), k.item(r.arrays["old x"], place).conj()))
            r.add_to_factor("alpha", k.read(total))
        with k.loop(r.sizes["n"]) as i:
            place = r.index(i, "incx")
            k.put(k.product(k.item(bar, place), r.factors["alpha"].conj()), bar, place)


def _copy(r: Adjoint) -> None:
    """For y ← x: x̄ += ȳ, ȳ ← 0."""
    k, y_bar = r.k, r.bars["y"]
    with k.loop(r.sizes["n"]) as i:
        source = r.index(i, "incy")
        taken = k.item(y_bar, source)
        k.put(k.nothing, y_bar, source)
        with r.active("x") as shadow:
            place = r.index(i, "incx")
            k.put(k.item(shadow, place) + taken, shadow, place)


def _swap(r: Adjoint) -> None:
    """For x ⇄ y: so the cotangents."""
    k, x_bar, y_bar = r.k, r.bars["x"], r.bars["y"]
    with k.loop(r.sizes["n"]) as i:
        at_x, at_y = r.index(i, "incx"), r.index(i, "incy")
        x, y = k.item(x_bar, at_x), k.item(y_bar, at_y)
        k.put(y, x_bar, at_x)
        k.put(x, y_bar, at_y)


_TWO: Final = ("n", "x", "incx", "y", "incy")
_ONE: Final = ("n", "x", "incx")
_BOTH: Final = {"x": _X, "y": _Y}
_OTHER: Final = {"x": ("y",), "y": ("x",)}
_REAL_RESULT: Final = ("s", "d", "sc", "dz")

RULES: Final[tuple[Rule, ...]] = (
    Routine("dot", _TWO, None, _BOTH, _OTHER, _dot(conjugates=False)).rule(),
    Routine("dotu", _TWO, None, _BOTH, _OTHER, _dot(conjugates=False), letters="cz").rule(),
    Routine("dotc", _TWO, None, _BOTH, _OTHER, _dot(conjugates=True), letters="cz").rule(),
    Routine("nrm2", _ONE, None, {"x": _X}, {"x": ("x",)}, _norm, letters=_REAL_RESULT).rule(),
    Routine("asum", _ONE, None, {"x": _X}, {"x": ("x",)}, _absolute_sum, letters=_REAL_RESULT).rule(),
    Routine(
        "axpy", ("n", "alpha", "x", "incx", "y", "incy"), "y", _BOTH, {"x": ("alpha",)}, _add_scaled, letters="sdcz"
    ).rule(),
    Routine("scal", ("n", "alpha", "x", "incx"), "x", {"x": _X}, {"old x": ("alpha",)}, _scale, letters="sdcz").rule(),
    Routine("copy", _TWO, "y", _BOTH, {}, _copy, letters="sdcz").rule(),
    Routine("swap", _TWO, "y", _BOTH, {}, _swap, also_written=("x",), letters="sdcz").rule(),
)
