"""Freedom in eigenvectors and singular vectors: rotations among those of equal values, and complex phases.

Vectors of equal values are not a function of the matrix: any rotation of them serves. If cotangents come in for those,
the gradient is NaN (`over_gap`); equal values without cotangents of their vectors are harmless. A complex vector is
one up to a phase, which LAPACK chooses (`settled_phase`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from irad.ir.values import Value
from irad.records import dataclass
from irad.rules.dense.elements import Scalar, choose, product_or_zero, quotient_or_zero
from irad.rules.dense.kernel import TRUE, Cell, Kernel
from irad.rules.dense.matrix import Vector


def over_gap(
    k: Kernel,
    numerator: Scalar,
    gap: Scalar,
    largest: Scalar,
    terms: Sequence[Scalar],
    component: Scalar | None = None,
) -> Scalar:
    """`numerator / gap` of two eigenvalues or singular values.

    A gap that is rounding error in comparison with the ``largest`` value gives NaN: the numerator of a function that
    does not mind how the vectors are turned is 0 there too, and the limit of the quotient is not known. The result is 0
    where all ``terms`` of the numerator are, since then there are no cotangents; without terms NaN.

    With a ``component`` of one of the vectors, the derivative of such a 0 is NaN: how they turn is not known either.
    """
    tied = gap.magnitude() <= (8.0 * k.element.epsilon) * largest
    unknown = functools.reduce(
        Scalar.__add__, (product_or_zero(term, k.number(math.nan)) for term in terms or (k.number(1.0),))
    )
    if component is not None and k.build.module.opaque_guards:
        # LLVM makes a constant of a product with NaN, not of one with infinity
        unknown = unknown + product_or_zero(0.0 * component, k.number(math.inf))
    return choose(tied, unknown, quotient_or_zero(numerator, gap))


@dataclass(frozen=True, slots=True)
class Turn:
    """Slope of a function in the phase of a vector v: `Im(vᴴ v̄)`, and the size of the terms of that sum."""

    k: Kernel
    phase_bar: Cell
    size: Cell

    @classmethod
    def none(cls, k: Kernel) -> Turn:
        """Turn of no components."""
        return cls(k, k.real.variable(), k.real.variable())

    def add(self, count: Value, read: Callable[[Value], tuple[Scalar, Scalar]]) -> None:
        """Adds ``count`` components; ``read``: vᵢ and v̄ᵢ."""
        with self.k.loop(count) as i:
            x, x_bar = read(i)
            self.phase_bar.accumulate((x.conj() * x_bar).imag)
            self.size.accumulate(x.magnitude() * x_bar.magnitude())


def turn_of(k: Kernel, count: Value, read: Callable[[Value], tuple[Scalar, Scalar]]) -> Turn:
    """Turn of a vector; ``read``: vᵢ and v̄ᵢ."""
    turn = Turn.none(k)
    turn.add(count, read)
    return turn


def settled_phase(turn: Turn, anchor: Scalar, known: Value = TRUE) -> Scalar:
    """Contribution of LAPACK's choice of a complex vector's phase: one component, the anchor, is real.

    Where another change would turn the vector by an angle, it is turned back by the anchor's. So i times the result is
    to be taken from the anchor's cotangent. Functions that do not mind the phase have no such turn. Where another has
    one, and the anchor is not known, or too small to tell a phase, the result is NaN.

    Args:
        turn: turn of the vector.
        anchor: the component.
        known: whether LAPACK is known to make it real.
    """
    k, turned = turn.k, turn.phase_bar.value
    telling = anchor.real.magnitude() > k.number(math.sqrt(k.element.epsilon))
    fixed = k.build.and_(known, k.build.and_(anchor.imag.is_zero(), telling))
    angle = choose(fixed, turned / anchor.real, math.nan)
    return choose(turned.magnitude() > (1024.0 * k.element.epsilon) * turn.size.value, angle, 0.0)


def phase_rate(k: Kernel, anchor: Scalar, tangent: Scalar) -> Scalar:
    """Rate at which a vector has to turn for its real component, the anchor, to stay real; NaN if that is not known.

    Args:
        anchor: the component.
        tangent: of the component, of the vector that does not turn.
    """
    telling = anchor.real.magnitude() > k.number(math.sqrt(k.element.epsilon))
    is_real = anchor.imag.magnitude() <= k.number(64.0 * k.element.epsilon)
    rate = -quotient_or_zero(tangent.imag, anchor.real)
    return choose(k.build.and_(telling, is_real), rate, math.nan)


def turn_column(vector: Vector, tangent: Vector, rate: Scalar) -> None:
    """Adds to the tangent of a vector that it turns: `v̇ += i rate v`."""
    tangent.fill(lambda i: tangent[i] + (rate * vector[i]).times_i())
