"""Fourier transforms of lines of equal length, the middle one of three axes (`irad/frontend/numba/transforms.py`).

    irad.fft.c2c.c128(data, outer, n, inner, forward, factor)              in place
    irad.fft.r2c.f64(data, result, outer, n, inner, forward, factor)       n real numbers to n // 2 + 1 complex ones
    irad.fft.c2r.f64(data, result, outer, n, inner, forward, factor)       back

All are linear, so the adjoints are transforms in the other direction, by the same library. Half a spectrum stands for a
whole one: `c2r` counts all but the first and, of an even number, the last twice, `r2c` gives them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_int
from irad.rules.blas.elements import Element, choose
from irad.rules.lapack.matrices import I64, NONE, ONE, PTR, Kernel, kernel
from irad.rules.lapack.parts import workspace
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_PRECISIONS: Final = {"f32": types.FLOAT, "f64": types.DOUBLE}
_TWO: Final = const_int(I64, 2)
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


# ------------------------------------------------------------------------------------------------ real numbers


def _precision(call: CallSite) -> Element:
    return Element(_PRECISIONS[(call.callee.name or "").rpartition(".")[2]], False)


def _half_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """Memory for a spectrum and for as many real numbers."""
    data, result, outer, n, inner, *_ = call.arguments
    if not (context.is_active(data) and context.is_active(result)):
        return ()
    build, element = context.before, _precision(call)
    lines = build.mul(context.value(outer), context.value(inner))
    each = build.add(build.mul(context.value(n), const_int(I64, 2)), _TWO)
    return (workspace(context, element, build.mul(lines, each)),)


def _half_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    if not saved:
        return
    data, result, *numbers = call.arguments
    name = call.callee.name or ""
    to_real = ".c2r." in name
    body = _from_real_kernel if to_real else _to_real_kernel
    parameters = (PTR, PTR, I64, I64, I64, I64, types.DOUBLE, PTR)
    function = kernel(
        context.builder.module, "c2r_adjoint" if to_real else "r2c_adjoint", _precision(call), parameters, body
    )
    shadows = [context.shadow(data), context.shadow(result)]
    context.builder.call(function, [*shadows, *(context.value(v) for v in numbers), context.value(saved[0])])


def _to_real_kernel(
    k: Kernel,
    shadow: Value,
    result_bar: Value,
    outer: Value,
    n: Value,
    inner: Value,
    forward: Value,
    factor: Value,
    work: Value,
) -> None:
    """Of `r2c`: x̄ += c2r(half of ȳ) where it counts twice."""
    c, build, half = _complex(k), k.build, _spectrum(k, n)
    spectrum, line = work, build.gep(c.element.type, work, [build.mul(build.mul(outer, half), inner)])
    with k.loop(outer) as o, k.loop(half) as j, k.loop(inner) as i:
        place = _place(k, o, half, j, inner, i)
        value = c.item(result_bar, place)
        c.put(c.nothing, result_bar, place)
        c.put(choose(_counts_twice(k, n, j), k.number(0.5) * value, value), spectrum, place)
    _transform(k, "c2r", spectrum, line, outer, n, inner, forward, factor)
    with k.loop(build.mul(build.mul(outer, n), inner)) as i:
        k.put(k.item(shadow, i) + k.item(line, i), shadow, i)


def _from_real_kernel(
    k: Kernel,
    shadow: Value,
    result_bar: Value,
    outer: Value,
    n: Value,
    inner: Value,
    forward: Value,
    factor: Value,
    work: Value,
) -> None:
    """Of `c2r`: x̄ += r2c(ȳ), twice where it counts twice."""
    c, build, half = _complex(k), k.build, _spectrum(k, n)
    spectrum = work
    _transform(k, "r2c", result_bar, spectrum, outer, n, inner, forward, factor)
    with k.loop(build.mul(build.mul(outer, n), inner)) as i:
        k.put(k.nothing, result_bar, i)
    with k.loop(outer) as o, k.loop(half) as j, k.loop(inner) as i:
        place = _place(k, o, half, j, inner, i)
        value = c.item(spectrum, place)
        c.put(c.item(shadow, place) + choose(_counts_twice(k, n, j), value + value, value), shadow, place)


def _complex(k: Kernel) -> Kernel:
    return Kernel(k.build, Element(k.element.scalar, True))


def _spectrum(k: Kernel, n: Value) -> Value:
    """Numbers in half a spectrum."""
    return k.build.add(k.build.sdiv(n, _TWO), ONE)


def _place(k: Kernel, o: Value, length: Value, j: Value, inner: Value, i: Value) -> Value:
    return k.build.add(k.build.mul(k.build.add(k.build.mul(o, length), j), inner), i)


def _counts_twice(k: Kernel, n: Value, j: Value) -> Value:
    build = k.build
    return build.and_(build.icmp("sgt", j, NONE), build.icmp("slt", build.mul(j, _TWO), n))


def _transform(
    k: Kernel,
    kind: str,
    data: Value,
    result: Value,
    outer: Value,
    n: Value,
    inner: Value,
    forward: Value,
    factor: Value,
) -> None:
    """In the direction other than that of the primal."""
    function = k.build.module.declare(f"irad.fft.{kind}.{k.element.name}", _HALF)
    k.build.call(function, [data, result, outer, n, inner, k.build.sub(ONE, forward), factor])


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("irad.fft.c2c.c64", "irad.fft.c2c.c128"),
        Effects(reads=frozenset({0}), writes=frozenset({0}), other=False),
        _in_place_reverse,
        source="linear: the conjugate transform",
    ),
    CallRule(
        tuple(f"irad.fft.{kind}.{precision}" for kind in ("r2c", "c2r") for precision in _PRECISIONS),
        Effects(reads=frozenset({0}), writes=frozenset({1}), other=False),
        _half_reverse,
        _half_augmented,
        source="linear: the conjugate transform",
    ),
)
