"""Tangents of the routines of BLAS by symbol: against differences of the routines, and against their adjoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

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
    COMPLEX_CALLS,
    FIRST,
    NOTHING_TO_DO,
    ONLY_COMPLEX,
    PARAMETERS,
    RESULT_BAR,
    VECTORS,
    Arrays,
    Call,
    _blas_is_known,
    result_kind,
    reverse,
    run,
    symbol_of,
)

__all__ = ["_blas_is_known"]
OUTPUTS = {
    "axpy": "y",
    "scal": "x",
    "copy": "y",
    "swap": "x y",
    "gemv": "y",
    "ger": "a",
    "geru": "a",
    "gerc": "a",
    "symv": "y",
    "trmv": "x",
    "trsv": "x",
    "gemm": "c",
    "symm": "c",
    "syrk": "c",
    "trmm": "b",
    "trsm": "b",
    "getrf": "a",
    "gesv": "a b",
    "getrs": "b",
    "potrf": "a",
    "potrs": "b",
    "trtrs": "b",
}
"""The arrays that a routine writes; the others return a number."""


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


def patterns(call: Call, kind: str) -> Iterator[list[str]]:
    """Which operands are active: all choices with the arrays that the routine writes."""
    outputs = OUTPUTS.get(call.routine, "").split()
    others = [name for name in floats_of(call, kind) if name not in outputs]
    for count in range(0 if outputs else 1, len(others) + 1):
        for chosen in combinations(others, count):
            yield [*chosen, *outputs]


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


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_letter(call: Call):
    kind = kind_of(call)
    check_differences(call, kind, floats_of(call, kind))
    check_adjoint(call, kind, floats_of(call, kind))


@pytest.mark.parametrize("call", [*COMPLEX_CALLS, *(c for c in FIRST if c.routine in VECTORS)], ids=str)
def test_complex_numbers(call: Call):
    check_differences(call, "z", floats_of(call, "z"))
    check_adjoint(call, "z", floats_of(call, "z"))


@pytest.mark.parametrize("call", [*FIRST, *COMPLEX_CALLS[::5]], ids=str)
def test_single_precision(call: Call):
    kind = "c" if call in COMPLEX_CALLS or call.routine in ONLY_COMPLEX else "s"
    check_differences(call, kind, floats_of(call, kind))


@pytest.mark.parametrize("call", FIRST, ids=str)
def test_every_pattern_of_constant_operands(call: Call):
    for active in patterns(call, kind_of(call)):
        check_differences(call, kind_of(call), active)
        check_adjoint(call, kind_of(call), active)


@pytest.mark.parametrize("call", NOTHING_TO_DO, ids=str)
def test_nothing_to_do(call: Call):
    check_differences(call, kind_of(call), floats_of(call, kind_of(call)))


@pytest.mark.parametrize("routine", ["dot", "dotc", "ger", "gemm"])
def test_operands_that_are_one_array(routine: str):
    kind = "z" if routine == "dotc" else "d"
    a, b = ("a", "b") if routine == "gemm" else ("x", "y")
    given = {"transa": "n", "transb": "t", "m": 3, "n": 3, "k": 3} if routine == "gemm" else {"m": 3, "n": 3}
    call = Call(routine, given)
    arrays, shadows = call.arrays(kind), directions(call, kind, floats_of(call, kind))
    twice, tangents = (
        {n: x.copy(order="F") for n, x in arrays.items()},
        {n: x.copy(order="F") for n, x in shadows.items()},
    )
    arrays[b], shadows[b] = arrays[a], shadows[a]
    twice[b], tangents[b] = arrays[a].copy(order="F"), shadows[a].copy(order="F")
    symbol = symbol_of(kind, routine)
    assert pushed(symbol, routine, arrays, shadows) == pushed(symbol, routine, twice, tangents)
    for name, shadow in shadows.items():
        np.testing.assert_array_equal(shadow, tangents[name], err_msg=name)


WITH_BETA = [call for call in FIRST if "beta" in PARAMETERS[call.routine]]


@pytest.mark.parametrize("call", WITH_BETA, ids=str)
@pytest.mark.parametrize("active", ["", "a", "b", "x", "alpha", "all"])
def test_what_is_overwritten_is_not_read(call: Call, active: str):
    """With beta = 0 BLAS does not read the output, and the tangent neither it nor the tangent of it."""
    output = OUTPUTS[call.routine]
    arrays = call.arrays("d")
    names = [n for n in floats_of(call, "d") if n in (active, output) or (active == "all" and n != "beta")]
    arrays["beta"][:] = 0.0
    found = {}
    for filled in (0.0, np.nan):
        shadows = directions(call, "d", names)
        given = {name: array.copy(order="F") for name, array in arrays.items()}
        given[output][...] = shadows[output][...] = filled
        pushed(symbol_of("d", call.routine), call.routine, given, shadows)
        found[filled] = shadows[output]
    is_number = np.isfinite(found[np.nan])
    assert is_number.any()
    np.testing.assert_array_equal(found[np.nan][is_number], found[0.0][is_number])
    assert (found[0.0][~is_number] == 0.0).all()  # beyond what the call counts


@pytest.mark.parametrize("call", [c for c in FIRST if "alpha" in PARAMETERS[c.routine]], ids=str)
def test_alpha_is_zero(call: Call):
    def with_zero(self: Call, kind: str) -> Arrays:
        return {n: np.zeros_like(a) if n == "alpha" else a for n, a in Call.arrays(self, kind).items()}

    zero = type("CallWithZero", (Call,), {"arrays": with_zero})(call.routine, call.given)
    for active in patterns(call, kind_of(call)):
        check_differences(zero, kind_of(call), active)
        check_adjoint(zero, kind_of(call), active)


@pytest.mark.parametrize("call", FIRST, ids=str)
def test_zero_tangents_stay_zero_beside_infinities(call: Call):
    kind = kind_of(call)
    arrays = call.arrays(kind)
    for name in set("axyb") & set(arrays):
        arrays[name][...] = np.inf
    shadows = {name: np.zeros_like(arrays[name]) for name in floats_of(call, kind)}
    assert pushed(symbol_of(kind, call.routine), call.routine, arrays, shadows) == 0.0
    assert not any(shadow.any() for shadow in shadows.values())


def test_where_a_zero_partial_wins():
    call = Call("dot", {"n": 3})
    for zero_wins in (False, True):
        arrays = call.arrays("d")
        arrays["y"][0] = 0.0
        shadows = {"x": np.ones_like(arrays["x"])}
        shadows["x"][0] = np.inf
        result = pushed(symbol_of("d", "dot"), "dot", arrays, shadows, zero_wins)
        assert np.isfinite(result) == zero_wins


def test_a_vector_without_a_tangent_is_swapped_for_zeros():
    call = next(call for call in FIRST if call.routine == "swap")
    for name in "xy":
        shadows = {name: np.ones(14)}
        pushed(symbol_of("d", "swap"), "swap", call.arrays("d"), shadows)
        assert shadows[name].sum() == 14 - 3
