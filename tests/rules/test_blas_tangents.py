"""Tangents of the routines of BLAS by symbol: against differences of the routines, and against their adjoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Module
from irad.ir.values import Value
from irad.ir.verifier import verify
from tests.rules.test_blas import DTYPE, Sweep, execute, random_array, rule_of
from tests.rules.test_blas_symbols import (
    CALLS,
    ONLY_COMPLEX,
    RESULT_BAR,
    Arrays,
    Call,
    _blas_is_known,
    result_kind,
    reverse,
    run,
    symbol_of,
)

__all__ = ["_blas_is_known"]


@dataclass
class TangentSweep(Sweep):
    """The context of a tangent: the one that the reverse sweep has, and the tangent of the result."""

    call: CallSite | None = None
    result_tangent: Value | None = None

    def is_active(self, value: Value) -> bool:
        return value is self.call or super().is_active(value)

    def set_tangent(self, amount: Value) -> None:
        self.result_tangent = amount


def pushed(symbol: str, routine: str, arrays: Arrays, shadows: Mapping[str, np.ndarray], zero_wins: bool = False):
    """Calls a routine with its tangent, which changes the shadows; returns the tangent of what it returns."""
    module, names = Module(), list(arrays)
    function = module.define("run", types.function_type(types.VOID, [types.PTR] * (2 * len(names) + 1)))
    builder = Builder(function.add_block("entry"))
    *given, out = function.params
    pointers = dict(zip(names, given, strict=False))
    kind = result_kind(symbol.rsplit(".", 1)[1][len(routine) * -1 - 1], routine)
    scalar = types.FLOAT if kind in ("s", "c") else types.DOUBLE
    returned = types.VOID if kind is None else types.struct_type([scalar] * 2) if kind in ("c", "z") else scalar
    callee = module.declare(symbol, types.function_type(returned, [types.PTR] * len(names)))
    call = builder.call(callee, list(pointers.values()))
    shadowed = {pointers[n]: s for n, s in zip(names, given[len(names) :], strict=True) if n in shadows}
    sweep = TangentSweep(shadowed, False, Builder.before(call), Builder(function.entry), zero_wins=zero_wins, call=call)
    rule = rule_of(symbol)
    assert rule.tangent is not None
    rule.tangent(sweep, call)
    if sweep.result_tangent is not None:
        sweep.after.store(sweep.result_tangent, out)
    sweep.after.ret()
    verify(module)
    result = np.zeros(1, DTYPE[kind or "d"])
    execute(module, [*arrays.values(), *(shadows.get(name) for name in names), result])
    return result[0]


def floats_of(call: Call, kind: str) -> list[str]:
    return [name for name, array in call.arrays(kind).items() if array.dtype == DTYPE[kind]]


def written_by(call: Call, kind: str) -> list[str]:
    """The arrays that a routine changes: those that must have a shadow where another operand has one."""
    before, after = call.arrays(kind), call.arrays(kind)
    run(call.routine, kind, after)
    return [name for name in floats_of(call, kind) if before[name].tobytes() != after[name].tobytes()]


def directions(call: Call, kind: str, active: list[str]) -> Arrays:
    before = call.arrays(kind)
    return {n: np.array(random_array(kind, *before[n].shape, seed=40 + i), order="F") for i, n in enumerate(active)}


def check_differences(call: Call, kind: str, active: list[str]) -> None:
    double = {"s": "d", "c": "z"}.get(kind, kind)
    before = call.arrays(kind)
    shadows = directions(call, kind, active)
    initial = {name: shadow.copy() for name, shadow in shadows.items()}

    def moved(step: float) -> tuple[Arrays, complex]:
        arrays = {n: a.astype(DTYPE[double]) if a.dtype == DTYPE[kind] else a.copy() for n, a in before.items()}
        arrays = {n: np.asfortranarray(a + step * initial[n] if n in initial else a) for n, a in arrays.items()}
        return arrays, run(call.routine, double, arrays)

    (above, top), (below, bottom) = moved(1e-5), moved(-1e-5)
    arrays = {name: array.copy(order="F") for name, array in before.items()}
    result = pushed(symbol_of(kind, call.routine), call.routine, arrays, shadows)
    tolerance = 1e-8 if kind == double else 1e-4
    for name in active:
        expected = (above[name] - below[name]) / 2e-5
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(shadows[name], expected, atol=scale * tolerance, rtol=0, err_msg=name)
    expected = (top - bottom) / 2e-5
    assert abs(result - expected) <= tolerance * max(1.0, abs(expected))


def check_adjoint(call: Call, kind: str, active: list[str]) -> None:
    """⟨ct, J·dx⟩ = ⟨Jᵀ·ct, dx⟩."""
    symbol, routine = symbol_of(kind, call.routine), call.routine
    initial, seeds = directions(call, kind, active), directions(call, kind, list(reversed(active)))
    tangents = {name: array.copy(order="F") for name, array in initial.items()}
    cotangents = {name: array.copy(order="F") for name, array in seeds.items()}
    result = pushed(symbol, routine, {n: a.copy(order="F") for n, a in call.arrays(kind).items()}, tangents)
    reverse(symbol, routine, {n: a.copy(order="F") for n, a in call.arrays(kind).items()}, cotangents)
    bar = RESULT_BAR[result_kind(kind, routine) or "d"]
    left = sum(np.vdot(seeds[n], tangents[n]).real for n in active) + (np.conj(bar) * result).real
    terms = [np.vdot(cotangents[n], initial[n]).real for n in active]
    size = sum(float(np.abs(cotangents[n]).ravel() @ np.abs(initial[n]).ravel()) for n in active)
    assert abs(left - sum(terms)) <= 1e-12 * max(1.0, size)


def kind_of(call: Call) -> str:
    return "z" if call.routine in ONLY_COMPLEX else "d"


WITH_TANGENT = [call for call in CALLS if rule_of(symbol_of(kind_of(call), call.routine)).tangent is not None]


@pytest.mark.parametrize("call", WITH_TANGENT, ids=str)
def test_every_letter(call: Call):
    kind = kind_of(call)
    check_differences(call, kind, floats_of(call, kind))
    check_adjoint(call, kind, floats_of(call, kind))
