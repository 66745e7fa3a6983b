"""Derivatives of kernels as text, run on the executor: what `tests/cuda/host` does not see from outside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import cuda, float64

from irad.backend.executor.kernel import load
from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.errors import RaceError
from irad.options import Options
from irad.passes.mode import FORWARD_MODE, reverse_mode
from irad.passes.reverse.sweep import Sweep
from irad.rules.cuda import BLOCK_BARRIER
from irad.ruleset.interface import Inactive
from irad.ruleset.registry import Registry
from tests.cuda.case import Case
from tests.cuda.kernels import CASES, KERNELS
from tests.kernel.launches import SLICE, launch_of

EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SCHEDULES = (IN_ORDER, Schedule("reversed"), Schedule("strided"), Schedule("shuffled", 3))


def is_single(case: Case) -> bool:
    return any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in case.fresh())


def directions(case: Case, seed: int) -> dict[int, Any]:
    """A random tangent for each active argument."""
    rng, found = np.random.default_rng(seed), {}
    for position, argument in enumerate(case.fresh()):
        if position in case.active:
            tangent = rng.normal(size=np.shape(argument))
            found[position] = tangent.astype(argument.dtype) if isinstance(argument, np.ndarray) else float(tangent)
    return found


def moved(case: Case, tangents: dict[int, Any], step: float) -> tuple[Any, ...]:
    return tuple(
        argument + argument.dtype.type(step) * tangents[position]
        if position in tangents and isinstance(argument, np.ndarray)
        else argument + step * tangents[position]
        if position in tangents
        else argument
        for position, argument in enumerate(case.fresh())
    )


def difference(case: Case, tangents: dict[int, Any], step: float) -> dict[int, np.ndarray]:
    """How the outputs change along a direction, by the reference in NumPy."""
    ends = []
    for sign in (1.0, -1.0):
        arguments = moved(case, tangents, sign * step)
        case.reference(*arguments)
        ends.append(arguments)
    return {
        p: (ends[0][p].astype(float) - ends[1][p].astype(float)) / (2 * step) for p in case.outputs if p in case.active
    }


def cotangents(case: Case, seed: int) -> dict[int, Any]:
    """Shadows: random ones of outputs, zeros of everything else."""
    rng, found = np.random.default_rng(seed), {}
    for position, argument in enumerate(case.fresh()):
        if position in case.active:
            shadow = np.zeros(np.shape(argument), getattr(argument, "dtype", np.float64))
            if position in case.outputs:
                shadow[...] = rng.normal(size=shadow.shape)
            found[position] = shadow
    return found


def dot(a: dict[int, Any], b: dict[int, Any]) -> float:
    return float(sum(np.vdot(np.asarray(a[p], float), np.asarray(b[p], float)) for p in a if p in b))


def agrees_with_differences(case: Case):
    launch = launch_of(case)
    tangents, seeds = directions(case, 1), cotangents(case, 2)
    change = difference(case, tangents, 1e-3 if is_single(case) else 1e-6)
    expected = dot({p: seeds[p] for p in change}, change)
    arguments = case.fresh()
    launch.run_derivative(launch.derivative(apart=True), arguments, shadows := {p: s.copy() for p, s in seeds.items()})
    assert dot(shadows, tangents) == pytest.approx(expected, rel=2e-3 if is_single(case) else 2e-6)
    case.check(arguments)


def agrees_with_forward_mode(case: Case):
    launch = launch_of(case)
    tangents, seeds = directions(case, 3), cotangents(case, 4)
    carried = {p: t.copy() if isinstance(t, np.ndarray) else t for p, t in tangents.items()}
    launch.run_derivative(launch.derivative(FORWARD_MODE), case.fresh(), carried)
    shadows = {p: s.copy() for p, s in seeds.items()}
    launch.run_derivative(launch.derivative(), case.fresh(), shadows)
    outputs = {p: carried[p] for p in case.outputs if p in case.active}
    tolerance = 1e-4 if is_single(case) else 1e-11
    assert dot(shadows, tangents) == pytest.approx(dot(outputs, {p: seeds[p] for p in outputs}), rel=tolerance)


def does_not_depend_on_the_order(case: Case):
    launch = launch_of(case)
    made, seeds = launch.derivative(apart=True), cotangents(case, 5)
    found = []
    for schedule in SCHEDULES:
        shadows = {p: s.copy() for p, s in seeds.items()}
        launch.run_derivative(made, case.fresh(), shadows, schedule, races=True)
        found.append(shadows)
    for other in found[1:]:
        for position, shadow in other.items():
            np.testing.assert_allclose(shadow, found[0][position], rtol=1e-4 if is_single(case) else 1e-9, atol=1e-12)


@EVERY_CASE
def test_the_plans_agree(case: Case):
    launch = launch_of(case)
    seeds, found = cotangents(case, 6), []
    for options, apart in ((Options(), True), (Options(), False), (Options(plan="save_all"), False)):
        shadows = {p: s.copy() for p, s in seeds.items()}
        launch.run_derivative(launch.derivative(options=options, apart=apart), case.fresh(), shadows)
        found.append(shadows)
    for other in found[1:]:
        for position, shadow in other.items():
            np.testing.assert_allclose(shadow, found[0][position], rtol=1e-4 if is_single(case) else 1e-9, atol=1e-12)


# --- faults on purpose ------------------------------------------------------------------------------------------------

STENCIL = KERNELS["stencil"]


def run_with_races(case: Case, **options: Any) -> None:
    launch = launch_of(case)
    for schedule in SCHEDULES:
        launch.run_derivative(launch.derivative(**options), case.fresh(), cotangents(case, 7), schedule, races=True)


def test_a_reverse_sweep_without_barriers_is_found():
    silent = Registry.of(Inactive((BLOCK_BARRIER,), "a barrier that the reverse sweep forgets"))
    with pytest.raises(RaceError):
        run_with_races(STENCIL, rules=silent)


def test_additions_that_are_not_atomic_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Sweep, "is_shared", lambda sweep, pointer: False)
    with pytest.raises(RaceError):
        run_with_races(KERNELS["gather_scatter"])


# --- arguments --------------------------------------------------------------------------------------------------------


def scaled(x, a, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.sin(a * x[i])


def scaled_reference(x, a, y):
    y[:] = np.sin(a * x)


SCALED = Case(scaled, scaled_reference, lambda rng: (rng.normal(size=100), 0.7, np.zeros(100)), 4, 32, (2,), (0, 1, 2))


def test_cotangents_of_numbers_are_summed_over_all_threads():
    launch, seeds = launch_of(SCALED), cotangents(SCALED, 8)
    x, a, _ = SCALED.fresh()
    shadows = {p: s.copy() for p, s in seeds.items()}
    shadows[1][...] = 2.0
    launch.run_derivative(launch.derivative(), SCALED.fresh(), shadows, races=True)
    np.testing.assert_allclose(shadows[0], seeds[2] * a * np.cos(a * x), rtol=1e-12)
    assert shadows[1] == pytest.approx(2.0 + np.sum(seeds[2] * x * np.cos(a * x)))
    assert not shadows[2].any()


def test_several_cotangents_beside_one_run():
    launch, seeds = launch_of(STENCIL), [cotangents(STENCIL, seed) for seed in (9, 10)]
    both = launch.derivative(reverse_mode(2))
    beside = {p: [each[p].copy() for each in seeds] for p in seeds[0]}
    flat = launch.flat(STENCIL.fresh())
    order = [p for p in sorted(beside) if isinstance(STENCIL.fresh()[p], np.ndarray)]
    numbers = [p for p in sorted(beside) if p not in order]
    places = [beside[p][lane].ctypes.data for lane in range(2) for p in (*order, *numbers)]
    load(both.module).run((STENCIL.grid, 1, 1), (STENCIL.block, 1, 1), [*flat, *places, 0, 0, 0, 0])
    for lane, seed in enumerate(seeds):
        alone = {p: s.copy() for p, s in seed.items()}
        launch.run_derivative(launch.derivative(), STENCIL.fresh(), alone)
        for p, shadow in alone.items():
            np.testing.assert_allclose(beside[p][lane], shadow, rtol=1e-12)


def rotated(x, y):
    """Dynamic shared memory, whose size the kernel asks for."""
    part = cuda.shared.array(0, float64)
    t, n = cuda.threadIdx.x, cuda.blockDim.x
    part[t] = x[cuda.grid(1)] ** 2
    cuda.syncthreads()
    y[cuda.grid(1)] = part[(t + 1) % n] * part.size


def rotated_reference(x, y):
    y[:] = np.roll(x.reshape(3, 16) ** 2, -1, axis=1).ravel() * 16


ROTATED = Case(rotated, rotated_reference, lambda rng: (rng.normal(size=48), np.zeros(48)), 3, 16, (1,), (0, 1), 128)


def test_dynamic_shared_memory():
    agrees_with_differences(ROTATED)
    agrees_with_forward_mode(ROTATED)
    does_not_depend_on_the_order(ROTATED)


def test_a_tape_that_does_not_fit_is_reported():
    case = KERNELS["nbody"]
    launch = launch_of(case)
    made, seeds = launch.derivative(), cotangents(case, 11)
    assert made.uses_tape
    _, report = launch.run_derivative(made, case.fresh(), {p: s.copy() for p, s in seeds.items()}, size=0)
    assert report[0] > 0
    assert report[1] == 1
    size, enough = 64, {}
    while report[1]:
        size = max(2 * size, int(report[0]))  # a multiple of eight
        enough = {p: s.copy() for p, s in seeds.items()}
        _, report = launch.run_derivative(made, case.fresh(), enough, size=size)
    plenty = {p: s.copy() for p, s in seeds.items()}
    launch.run_derivative(made, case.fresh(), plenty)
    assert report[0] <= size < SLICE
    for p, shadow in plenty.items():
        np.testing.assert_array_equal(enough[p], shadow)


def polynomial(x, c, y):
    """A small table that all threads read."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = c[0] + x[i] * (c[1] + x[i] * c[2])


def polynomial_reference(x, c, y):
    y[:] = c[0] + x * (c[1] + x * c[2])


def test_what_all_threads_read_takes_few_atomic_operations():
    def arguments(rng):
        return (rng.normal(size=256), rng.normal(size=3), np.zeros(256))

    case = Case(polynomial, polynomial_reference, arguments, 4, 64, (2,), (0, 1, 2))
    launch, seeds = launch_of(case), cotangents(case, 12)
    atomics, found = {}, {}
    for plan in ("default", "save_all"):
        shadows = found[plan] = {p: s.copy() for p, s in seeds.items()}
        made = launch.derivative(options=Options(plan=plan), apart=True)
        report, _ = launch.run_derivative(made, case.fresh(), shadows, races=True)
        assert report.accesses is not None
        atomics[plan] = report.accesses.global_atomics
    assert atomics["save_all"] >= 3 * 256
    assert 5 * atomics["default"] <= atomics["save_all"], atomics
    assert atomics["default"] == 3 * 256 // 32  # one for each number and warp
    np.testing.assert_allclose(found["default"][1], found["save_all"][1])
    x = case.fresh()[0]
    np.testing.assert_allclose(found["default"][1], [np.sum(seeds[2] * x**n) for n in range(3)])
