"""The gradients of the programs of array expressions agree with central differences, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from bench.array_code import PROGRAMS
from bench.array_code.measure import STAGES, compile_times, measure
from bench.array_code.program import ArrayProgram


def moved(args: tuple, argnum: int, index: tuple[int, ...], step: float) -> tuple:
    changed = list(args)
    changed[argnum] = np.array(args[argnum])
    changed[argnum][index] += step
    if np.ndim(args[argnum]) == 0:
        changed[argnum] = float(changed[argnum])
    return tuple(changed)


def difference(program: ArrayProgram, args: tuple, argnum: int, index: tuple[int, ...]) -> float:
    """Fourth order: what is left of the error is rounding, 1e-16 of the value over the step."""

    def at(step: float) -> float:
        return program.primal(*moved(args, argnum, index, step))

    h = 1e-3
    return (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)


SMALLEST, *LARGER = PROGRAMS  # a minute of compiling, where the machine is busy


@pytest.mark.parametrize(
    "program",
    [SMALLEST, *(pytest.param(each, marks=pytest.mark.slow) for each in LARGER)],
    ids=lambda program: program.name,
)
def test_gradients(program: ArrayProgram):
    args = program.make()
    before = [np.array(arg) for arg in args]
    value, gradients = irad.value_and_grad(program.primal, argnums=program.argnums)(*args)
    assert value == program.primal(*args)
    for arg, kept in zip(args, before, strict=True):
        assert np.array_equal(arg, kept)
    for argnum, gradient in zip(program.argnums, gradients, strict=True):
        assert np.shape(gradient) == np.shape(args[argnum])
        expected = [difference(program, args, argnum, index) for index in np.ndindex(np.shape(args[argnum]))]
        scale = np.max(np.abs(expected))
        assert scale > 0.0
        assert np.ravel(gradient) == pytest.approx(np.array(expected), rel=1e-6, abs=1e-8 * scale)


@njit
def averages(x):
    y = x.copy()
    y[1:-1] = 0.5 * (x[2:] + x[:-2])
    return np.sum(y * y)


def check_stages(times: dict[str, float]) -> None:
    assert set(times) == {"primal", "gradient", *STAGES}
    assert all(each > 0.0 for each in times.values())
    assert sum(times[stage] for stage in STAGES) < times["gradient"]


def test_compile_times_are_split_by_stage():
    check_stages(compile_times(ArrayProgram("averages", "averages", averages, lambda: (np.ones(5),), (0,))))


@pytest.mark.slow
def test_compile_times_in_a_process_of_their_own():
    check_stages(measure(SMALLEST.name))
