"""Random programs: value, memory afterwards, gradients of both plans, tangents; against complex steps and each other.

The seeds are the same in every run. ``IRAD_RANDOM_PROGRAMS=2000`` tests as many, ``IRAD_RANDOM_PROGRAMS=1500:2000``
those seeds only; a failure prints a reduced program. With every eighth seed a program is made that is compiled with
fastmath and decides things by numbers next to a jump.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from tests.tools.check_program import check_decisions, check_lanes, check_program
from tests.tools.complex_step import differentiate
from tests.tools.random_decisions import DECIDED
from tests.tools.random_programs import Program, random_program
from tests.tools.reduce_program import reduce_program

FIRST, _, END = f"0:{os.environ.get('IRAD_RANDOM_PROGRAMS', '25')}".rpartition(":")
SEEDS = range(int(FIRST.rpartition(":")[2]), int(END))


def examine(program: Program, check: Callable[[Program], None], attempts: Iterator[int]) -> None:
    """Checks a program; a failure is given with a smaller program that fails alike."""
    try:
        check(program)
    except Exception as error:
        error.add_note(f"\n{reduce_program(program, lambda p: failure(p, check), next(attempts, 0))}")
        raise


def failure(program: Program, check: Callable[[Program], None]) -> str | None:
    """The kind of failure: the class of the exception, and what an assertion says up to its figures."""
    try:
        check(program)
    except AssertionError as error:
        return f"assertion: {kind_of(str(error))}"
    except Exception as error:
        return type(error).__name__
    return None


def kind_of(message: str) -> str:
    """What a message of a check is about."""
    kinds = ("gradient with", "differ by", "tangent", "value", "memory afterwards", "complex steps")
    return next((kind for kind in kinds if kind in message), message)


@pytest.fixture(scope="module")
def attempts() -> Iterator[int]:
    """How many programs a reduction may try: it takes minutes, so the first failure is reduced and others are not."""
    return iter((120,))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int, attempts: Iterator[int]):
    examine(random_program(seed), partial(check_program, forward=seed % 8 == 2), attempts)


@pytest.mark.parametrize("seed", SEEDS[5::40])
def test_random_program_in_several_directions(seed: int, attempts: Iterator[int]):
    examine(random_program(seed), check_lanes, attempts)


@pytest.mark.parametrize("seed", SEEDS[::8])
def test_random_program_with_fastmath(seed: int, attempts: Iterator[int]):
    examine(random_program(seed, decides=True), partial(check_decisions, forward=seed % 16 == 0), attempts)


def test_what_a_program_decided_is_replayed():
    """The reference goes by the log: with another log it is the derivative of another run."""
    source = f"{DECIDED}\n\ndef program(a, log):\n    return a[decided(log, int(a[0] / 0.1)) % 4] * 2.0\n"
    arguments = (((0, ""),), ((1, ""),))
    for decided in (2, 3):
        bases = (np.array([0.3, 0.5, 0.7, 0.9]), np.array([0, decided]))
        value, derivatives = differentiate(Program(0, source, bases, arguments, 1), np.ones(1))
        assert value == 2.0 * bases[0][decided]
        np.testing.assert_array_equal(derivatives[0], 2.0 * np.eye(4)[decided])


def test_same_seed_same_program():
    assert str(random_program(7)) == str(random_program(7))
    assert str(random_program(7)) != str(random_program(8))


def test_reduction_of_loops():
    """Candidates that are not programs (a break outside of loops) or that do not end are passed over."""
    loop = "while True:\n        if a > 1.0:\n            break\n        a += 1.0"
    source = f"def program(a):\n    {loop}\n    return a * 2.0\n"
    program = Program(0, source, (0.5,), (((0, ""),),))
    reduced = reduce_program(program, lambda p: "it" if "break" in p.source else None)
    assert "while" in reduced.source


def test_reduction_keeps_the_failure_only():
    program = next(p for p in map(random_program, range(100)) if "tanh" in p.source and p.source.count("\n") > 20)
    reduced = reduce_program(program, lambda p: "it" if "tanh" in p.source else None)
    assert "tanh" in reduced.source
    assert reduced.source.count("\n") < 12
