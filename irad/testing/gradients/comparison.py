"""One gradient against the truth: each partial derivative of small arguments, random directions of large ones.

A direction is a random combination of all partial derivatives with Gaussian coefficients, so an error of any form shows
in it unless chance makes it small: an error of norm e in one direction is below e/10 with probability 0.08. Where a
direction shows an error, halving the argument finds the float that has most of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan
from typing import Any, Final

import numpy as np

from irad.data.floats import Vector, name_of_float, read_floats
from irad.testing.gradients.reference import DECIDED_OF_TERMS, Reference, sizes_of
from irad.testing.gradients.report import ArgumentReport, Verdict
from irad.testing.gradients.slope import EPSILON, GradientNearby, Shape, Slope

_SAFETY: Final = 10.0  # times its estimated error that a reference may be off
_ROUNDING: Final = 100.0  # times the noise of the function's values that rounding in a derivative may be
_RTOL: Final = 1e-9
_RTOL_EXACT: Final = 1e-11  # where complex steps are the truth
_RTOL_SINGLE: Final = 2e-4
_DECIDED: Final = 1e-2  # parts of the largest derivative: a reference that is worse decides nothing
_NOTHING: Final = 4e-15  # parts of the function's value: a derivative that is rounding
_NOTHING_SINGLE: Final = 1e-6
_FLAT: Final = 1e3  # times the noise of the function's values that wide difference quotients of a constant are
_ESCAPES: Final = 0.08  # probability that a Gaussian number is below 0.1


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances for equality; None for what the precision of the argument and the reference allow."""

    rtol: float | None = None
    atol: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """One comparison, of the derivative along a direction.

    Attributes:
        label: of the float or direction.
        size: what divides the numbers to make them partial derivatives.
        got: irad's.
        slope: the truth.
        allowed: how far they may be apart.
        direction: for each float of the argument.
        rounding: the noise of irad's derivative close by; 0 if that was not measured.
        is_direction: of all floats together, not of one.
    """

    label: str
    size: float
    got: float
    slope: Slope
    allowed: float
    direction: Vector
    rounding: float = 0.0
    is_direction: bool = False

    @property
    def expected(self) -> float:
        """The number that irad's is compared with: at a kink the nearest between both sides."""
        if self.slope.shape is not Shape.KINK:
            return self.slope.value
        low, high = sorted((self.slope.left, self.slope.right))
        return min(max(self.got, low), high)

    @property
    def ratio(self) -> float:
        """The difference as a multiple of what is allowed; NaN where the truth is not known."""
        if self.slope.shape in (Shape.ROUGH, Shape.UNDEFINED):
            return nan
        if not isfinite(self.got):
            return inf
        return (
            abs(self.got - self.expected) / self.allowed if self.allowed else (inf if self.got != self.expected else 0)
        )

    @property
    def is_of_conventions(self) -> bool:
        """True if it is what operations' conventions may add up to at a clear kink, without being between both sides.

        Each convention takes one side of its operation, the other, or neither: ``max(x, 0) - 2 * max(-x, 0)`` has the
        slopes 2 and 1, and gets 0 where both maxima count as constant.
        """
        slope = self.slope
        ends = (0.0, slope.left, slope.right, slope.left + slope.right)
        near = min(ends) - self.allowed <= self.got <= max(ends) + self.allowed
        return slope.is_clear_kink and (near or isnan(self.got))

    @property
    def may_be_rounding(self) -> bool:
        """True if irad's derivative differs from the truth by no more than from what it is itself close by."""
        return abs(self.got - self.expected) <= self.allowed + _ROUNDING * self.rounding

    @property
    def is_exact_by_terms(self) -> bool:
        """True if what is allowed is little compared with the terms that add up to the derivative."""
        return self.allowed <= DECIDED_OF_TERMS * self.slope.terms


class Comparison:
    """The comparison of one argument's gradient at one point.

    Args:
        reference: the truth.
        position: of the argument.
        name: of the parameter.
        got: the gradient, float by float.
        tolerances: what counts as equal.
        nearby: the gradient at points close by.
    """

    def __init__(
        self,
        reference: Reference,
        position: int,
        name: str,
        got: Vector,
        tolerances: Tolerances,
        nearby: GradientNearby,
    ) -> None:
        self._reference, self._position, self._name, self._got = reference, position, name, got
        self._nearby = nearby
        self._value = reference.objective.values[position]
        self._sizes = sizes_of(read_floats(self._value))
        self._tolerances, self._single = tolerances, reference.single
        self._epsilon = float(np.finfo(np.float32 if self._single else np.float64).eps)

    def partials(self, tick: Callable[[], None]) -> ArgumentReport:
        """Every partial derivative."""
        probes = [self._by_leaf(leaf, tick) for leaf in range(self._got.size)]
        return self._report(probes)

    def directions(self, count: int, generator: np.random.Generator, tick: Callable[[], None]) -> ArgumentReport:
        """Random directions; where one shows an error, the float that has most of it."""
        unfit = np.flatnonzero(~np.isfinite(self._got))
        if unfit.size:
            return self._report([self._by_leaf(int(unfit[0]), tick)])
        probes = []
        for number in range(count):
            direction = self._sizes * generator.standard_normal(self._got.size)
            direction = self._reference.inwards(self._position, direction)
            probe = self._along(direction, f"random direction {number + 1}")
            tick()
            if not probe.ratio <= 1.0:
                probe = self._carefully(probe)
            probes.append(probe)
            if not probe.ratio <= 1.0:
                probes.append(self._by_leaf(self._culprit(direction, probe), tick))
                break
        return self._report(probes, self._confidence(probes))

    def _by_leaf(self, leaf: int, tick: Callable[[], None]) -> Probe:
        size = float(self._sizes[leaf])
        tick()
        label = name_of_float(self._value, leaf, self._name)
        direction = np.zeros(self._got.size)
        direction[leaf] = size
        slope = self._reference.along(self._position, direction)
        return Probe(label, size, float(self._got[leaf]) * size, slope, self._allowed(slope, size), direction)

    def _along(self, direction: Vector, label: str) -> Probe:
        slope = self._reference.along(self._position, direction)
        allowed = self._allowed(slope, float(np.linalg.norm(direction)))
        return Probe(label, 1.0, float(self._got @ direction), slope, allowed, direction, is_direction=True)

    def _carefully(self, probe: Probe) -> Probe:
        """A probe compared again, with the rounding of terms that cancel, in the truth and in irad's derivative."""
        slope = self._reference.along(self._position, probe.direction, careful=True)
        rounding = self._nearby.noise(self._position, probe.direction)
        if slope.from_values or self._single:  # differences do not tell how large the terms are
            slope = replace(slope, terms=max(slope.terms, rounding / self._epsilon))
        found = replace(probe, slope=slope, rounding=rounding)
        found = replace(found, allowed=self._allowed(slope, float(np.linalg.norm(probe.direction))))
        if slope.shape is Shape.ROUGH and (found.is_exact_by_terms or self._is_flat(slope)):
            return replace(found, slope=replace(slope, shape=Shape.SMOOTH))
        return found

    def _allowed(self, slope: Slope, length: float) -> float:
        rtol = self._tolerances.rtol
        if rtol is None:
            rtol = _RTOL_SINGLE if self._single else _RTOL if slope.from_values else _RTOL_EXACT
        magnitude = max(abs(slope.left), abs(slope.right)) if slope.shape is Shape.KINK else abs(slope.value)
        tolerance = rtol * magnitude + self._tolerances.atol * length
        if self._single:
            tolerance += _ROUNDING * self._epsilon * slope.terms
        elif not slope.from_values:
            tolerance += _RTOL_EXACT * slope.terms  # each term is as exact as a sum without cancellation
        return tolerance + _SAFETY * slope.error + _ROUNDING * self._reference.rounding

    def _culprit(self, direction: Vector, whole: Probe) -> int:
        """The float with most of an error: halves, down to one; the other half has what is missing to the whole."""
        candidates = np.flatnonzero(direction)
        excess = whole.got - whole.expected
        while candidates.size > 1:
            half = candidates[: candidates.size // 2]
            part = np.zeros_like(direction)
            part[half] = direction[half]
            probe = self._along(part, "")
            own = probe.got - probe.expected
            takes_first = abs(own) >= abs(excess - own) if isfinite(whole.ratio) else not isfinite(probe.ratio)
            candidates = half if takes_first else candidates[candidates.size // 2 :]
            excess = own if takes_first else excess - own
        return int(candidates[0])

    def _report(self, probes: list[Probe], confidence: str = "") -> ArgumentReport:
        if not probes:
            return self._empty()
        largest = max((max(abs(p.got), abs(p.slope.value)) for p in probes if isfinite(p.got)), default=0.0)
        judged = [(*self._judge(probe, largest), probe) for probe in probes]
        for number, (verdict, _, probe) in enumerate(judged):
            if verdict is not Verdict.RIGHT:
                careful = self._carefully(probe)
                judged[number] = *self._judge(careful, largest), careful
        probes = [probe for _, _, probe in judged]
        verdict, reason, worst = max(
            judged, key=lambda each: (each[0].weight, not each[2].is_direction, _rank(each[2]))
        )
        known = [p.allowed for p in probes if isfinite(p.allowed)]
        scale = max(largest, *(p.slope.terms for p in probes))
        return ArgumentReport(
            position=self._position,
            name=self._name,
            kind=kind_of(self._value),
            size=self._got.size,
            checked=len(probes),
            method=self._reference.method,
            verdict=verdict,
            ratio=worst.ratio,
            accuracy=max(known, default=inf) / scale if scale else 0.0,
            worst=worst.label,
            got=worst.got / worst.size,
            expected=worst.expected / worst.size,
            allowed=worst.allowed / worst.size,
            reason=reason,
            kinks=tuple(p.label for p in probes if p.slope.shape is Shape.KINK),
            confidence=confidence,
        )

    def _judge(self, probe: Probe, largest: float) -> tuple[Verdict, str]:
        match probe.slope.shape:
            case Shape.UNDEFINED:
                return Verdict.UNDECIDED, "the function's value is infinite or NaN here"
            case Shape.ROUGH:
                return Verdict.UNDECIDED, (
                    f"finite differences by {probe.label} do not converge at any step: a jump, a vertical tangent, "
                    "noise, or the end of the domain"
                )
            case Shape.SMOOTH | Shape.KINK:
                pass
        if not probe.ratio <= 1.0 and probe.is_of_conventions:
            left, right, got = (x / probe.size for x in (probe.slope.left, probe.slope.right, probe.got))
            return Verdict.UNDECIDED, (
                f"the function is not differentiable there: its slope is {left:.6g} on one side and {right:.6g} on the "
                f"other, and irad returns {got:.6g}, which the conventions of its operations at kinks add up to"
            )
        if not isfinite(probe.got):
            return Verdict.WRONG, f"it is {probe.got}, where the function has a derivative"
        if probe.ratio > 1.0:
            return (Verdict.UNDECIDED, _rounding_words(probe)) if probe.may_be_rounding else (Verdict.WRONG, "")
        coarse = not probe.is_exact_by_terms and probe.allowed > _DECIDED * max(largest, probe.slope.steepest)
        if coarse and not self._is_nothing(probe):
            return Verdict.UNDECIDED, (
                f"finite differences by {probe.label} tell too little: of the derivative times the size of the number, "
                f"{probe.got:.1e}, they are exact to {probe.allowed:.1e}; the function's values are rough or large"
            )
        return Verdict.RIGHT, ""

    def _is_nothing(self, probe: Probe) -> bool:
        """True if a derivative is zero, as far as the size of the function's value allows to tell."""
        part = _NOTHING_SINGLE if self._single else _NOTHING
        size = max(self._reference.magnitude, self._reference.noise / EPSILON)
        return abs(probe.slope.value) <= probe.allowed and abs(probe.got) <= part * size

    def _is_flat(self, slope: Slope) -> bool:
        """True if no more than rounding is seen of the function along a line, as of a sum whose terms cancel."""
        return isfinite(slope.error) and slope.steepest <= _FLAT * self._reference.noise

    def _confidence(self, probes: list[Probe]) -> str:
        scale = float(np.linalg.norm(self._got * self._sizes))
        seen = max((p.allowed for p in probes if isfinite(p.allowed)), default=inf)
        part = 10 * seen / scale if scale else inf
        return (
            f"{len(probes)} random directions: an error of {part:.0e} of the gradient or more (as vectors) goes unseen "
            f"with probability {_ESCAPES ** len(probes):.0e}"
        )

    def _empty(self) -> ArgumentReport:
        return ArgumentReport(
            self._position, self._name, kind_of(self._value), 0, 0, "nothing to vary", Verdict.RIGHT, 0, 0, "", 0, 0, 0
        )


def _rank(probe: Probe) -> float:
    return probe.ratio if isfinite(probe.ratio) else inf


def _rounding_words(probe: Probe) -> str:
    got, expected, allowed, rounding = (
        x / probe.size for x in (probe.got, probe.expected, probe.allowed, probe.rounding)
    )
    return (
        f"rounding decides there: irad returns {got:.12g}, expected is {expected:.12g} ± {allowed:.1e}, and irad's "
        f"derivative varies by {rounding:.1e} between points that agree to nine digits: terms cancel, or a formula is "
        "not stable"
    )


def kind_of(value: Any) -> str:
    """A value's type, as a reader of a table wants it."""
    if isinstance(value, np.ndarray):
        shape = ", ".join(map(str, value.shape))
        dtype = "record" if value.dtype.names else value.dtype
        return f"{dtype}[{shape}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(kind_of, value))})" if len(value) < 4 else f"tuple of {len(value)}"
    return type(value).__name__
