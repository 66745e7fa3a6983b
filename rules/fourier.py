"""Fourier transforms of lines of equal length, the middle one of three axes (`irad/frontend/numba/transforms.py`).

    irad.fft.c2c.c128(data, outer, n, inner, forward, factor)              in place
    irad.fft.r2c.f64(data, result, outer, n, inner, forward, factor)       n real numbers to n // 2 + 1 complex ones
    irad.fft.c2r.f64(data, result, outer, n, inner, forward, factor)       back

All are linear, so tangents are transformed like the numbers, and the adjoints are transforms in the other direction, by
the same library. Half a spectrum stands for a whole one: `c2r` counts all but the first and, of an even number, the
last twice, `r2c` gives them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_int
from irad.records import dataclass
from irad.rules.dense.elements import ElementType, choose
from irad.rules.dense.kernel import I64, NONE, ONE, PTR, TWO, Kernel, values_of
from irad.rules.dense.matrix import Vector
from irad.rules.dense.saved import workspace
from irad.rules.memory import fill
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule, TangentContext

_PRECISIONS: Final = {"f32": types.FLOAT, "f64": types.DOUBLE}
# Numba's functions that return nothing return a pointer.
_WHOLE: Final = types.function_type(PTR, (PTR, I64, I64, I64, I64, types.DOUBLE))
_HALF: Final = types.function_type(PTR, (PTR, PTR, I64, I64, I64, I64, types.DOUBLE))


# ------------------------------------------------------------------------------------------------ complex numbers


def _in_place_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """The conjugate transform of the cotangent."""
    data, *sizes, forward, factor = call.arguments
    if not context.is_active(data):
        return
    build, name = context.builder, call.callee.name or ""
    function = context.declare(name, _WHOLE)
    given = [context.shadow(data), *(context.value(v) for v in sizes)]
    build.call(function, [*given, build.sub(ONE, context.value(forward)), context.value(factor)])


def _in_place_tangent(context: TangentContext, call: CallSite) -> None:
    data, *numbers = call.arguments
    if context.is_active(data):
        function = context.declare(call.callee.name or "", _WHOLE)
        context.after.call(function, [context.shadow(data), *(context.value(v) for v in numbers)])


# ------------------------------------------------------------------------------------------------ real numbers


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of ``n`` numbers, and how they are transformed."""

    outer: Value
    n: Value
    inner: Value
    forward: Value
    factor: Value

    def count(self, build: Builder) -> Value:
        """Numbers in all lines."""
        return build.mul(build.mul(self.outer, self.n), self.inner)

    def halved(self, build: Builder) -> _Lines:
        """Half spectra of the lines."""
        return replace(self, n=build.add(build.sdiv(self.n, TWO), ONE))


def _precision(call: CallSite) -> ElementType:
    return ElementType(_PRECISIONS[(call.callee.name or "").rpartition(".")[2]], False)


def _half_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """Memory for a spectrum and for as many real numbers."""
    data, result, outer, n, inner, *_ = call.arguments
    if not (context.is_active(data) and context.is_active(result)):
        return ()
    build = context.before
    lines = build.mul(context.value(outer), context.value(inner))
    each = build.add(build.mul(context.value(n), TWO), TWO)
    return (workspace(context, _precision(call), build.mul(lines, each)),)


def _half_tangent(context: TangentContext, call: CallSite) -> None:
    data, result, *numbers = call.arguments
    if not context.is_active(result):
        return
    build, given = context.after, [context.value(v) for v in numbers]
    if context.is_active(data):
        function = context.declare(call.callee.name or "", _HALF)
        build.call(function, [context.shadow(data), context.shadow(result), *given])
        return
    lines, k = _Lines(*given), Kernel(build, _precision(call))
    is_real = ".c2r." in (call.callee.name or "")
    count = lines.count(build) if is_real else lines.halved(build).count(build)
    width = const_int(types.I64, types.size_of(k.element.type) * (1 if is_real else 2))
    fill(build, context.shadow(result), build.mul(count, width))


def _half_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    if not saved:
        return
    data, result, *numbers = call.arguments
    k, shadows = Kernel(context.builder, _precision(call)), (context.shadow(data), context.shadow(result))
    operands = (*shadows, _Lines(*(context.value(v) for v in numbers)), context.value(saved[0]))
    if ".c2r." in (call.callee.name or ""):
        k.outline("c2r_adjoint", _from_real, *operands)
    else:
        k.outline("r2c_adjoint", _to_real, *operands)


def _to_real(k: Kernel, shadow: Value, result_bar: Value, lines: _Lines, work: Value) -> None:
    """Of `r2c`: x̄ += c2r(half of ȳ) where it counts twice."""
    half, count = lines.halved(k.build), lines.count(k.build)
    result, spectrum = (Vector(k.complex, data, half.count(k.build)) for data in (result_bar, work))
    line, bar = Vector(k, spectrum.at(spectrum.size), count), Vector(k, shadow, count)
    with k.loop(lines.outer) as o, k.loop(half.n) as j, k.loop(lines.inner) as i:
        place = _place(k, half, o, j, i)
        value = result[place]
        result[place] = k.nothing
        spectrum[place] = choose(_counts_twice(k, lines, j), 0.5 * value, value)
    _transform(k, "c2r", spectrum, line, lines)
    bar.fill(lambda i: bar[i] + line[i])


def _from_real(k: Kernel, shadow: Value, result_bar: Value, lines: _Lines, work: Value) -> None:
    """Of `c2r`: x̄ += r2c(ȳ), twice where it counts twice."""
    half = lines.halved(k.build)
    bar, spectrum = (Vector(k.complex, data, half.count(k.build)) for data in (shadow, work))
    result = Vector(k, result_bar, lines.count(k.build))
    _transform(k, "r2c", result, spectrum, lines)
    result.fill(lambda i: k.nothing)
    with k.loop(lines.outer) as o, k.loop(half.n) as j, k.loop(lines.inner) as i:
        place = _place(k, half, o, j, i)
        value = spectrum[place]
        bar[place] = bar[place] + choose(_counts_twice(k, lines, j), value + value, value)


def _place(k: Kernel, lines: _Lines, o: Value, j: Value, i: Value) -> Value:
    return k.build.add(k.build.mul(k.build.add(k.build.mul(o, lines.n), j), lines.inner), i)


def _counts_twice(k: Kernel, lines: _Lines, j: Value) -> Value:
    build = k.build
    return build.and_(build.icmp("sgt", j, NONE), build.icmp("slt", build.mul(j, TWO), lines.n))


def _transform(k: Kernel, kind: str, data: Vector, result: Vector, lines: _Lines) -> None:
    """In the direction other than that of the primal."""
    function = k.build.module.declare(f"irad.fft.{kind}.{k.element.name}", _HALF)
    backward = replace(lines, forward=k.build.sub(ONE, lines.forward))
    k.build.call(function, [data.data, result.data, *values_of(backward)])


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("irad.fft.c2c.c64", "irad.fft.c2c.c128"),
        Effects(reads=frozenset({0}), writes=frozenset({0}), other=False),
        _in_place_reverse,
        source="linear: the conjugate transform",
        tangent=_in_place_tangent,
        factors=(),
    ),
    CallRule(
        tuple(f"irad.fft.{kind}.{precision}" for kind in ("r2c", "c2r") for precision in _PRECISIONS),
        Effects(reads=frozenset({0}), writes=frozenset({1}), other=False),
        _half_reverse,
        _half_augmented,
        source="linear: the conjugate transform",
        tangent=_half_tangent,
        factors=(),
    ),
)
