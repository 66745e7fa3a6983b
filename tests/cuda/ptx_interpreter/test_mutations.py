"""PTX with a fault in it: the interpreter notices each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest

import irad.cuda
from tests.cuda.host.launching import directions, reverse
from tests.cuda.kernels import KERNELS
from tests.cuda.ptx.tools import needs_libdevice
from tests.cuda.ptx_interpreter.both import Recorded, recording

pytestmark = [needs_libdevice, pytest.mark.executor_only("the launches are compared by the tests themselves")]


@cache
def launched(name: str) -> Recorded:
    """The reverse of a test kernel on the executor."""
    launches: list[Recorded] = []
    with irad.cuda.executor(), recording(launches.append):
        reverse(KERNELS[name], directions(KERNELS[name], 2))
    return launches[-1]


def without_atomics(ptx: str) -> Iterator[str]:
    """An atomic addition that became three instructions."""
    for found in re.finditer(r"atom((?:\.global|\.shared)?)\.add\.f64 \t(%\w+), (\[[^]]+\]), (%\w+);", ptx):
        space, result, address, value = found.groups()
        three = (f"ld{space}.b64 {result}, {address}", f"add.f64 {result}, {result}, {value}")
        yield ptx[: found.start()] + "; ".join((*three, f"st{space}.b64 {address}, {result};")) + ptx[found.end() :]


def without(pattern: str, instead: str = "") -> object:
    def mutants(ptx: str) -> Iterator[str]:
        for found in re.finditer(pattern, ptx, re.MULTILINE):
            yield ptx[: found.start()] + found.expand(instead) + ptx[found.end() :]

    return mutants


MUTATIONS = {
    "atomics": without_atomics,
    "barriers": without(r"^\tbar\.sync \t0;$"),
    "conversions of addresses": without(r"cvta\.(?:to\.)?shared\.u64", "mov.b64"),
    "stores": without(r"^\tst\.(?:global|shared)\.b64 .*;$"),
    "negations": without(r"\tneg\.f64 ", "\tmov.b64 "),
    "shuffles": without(r"(shfl\.sync\.bfly\.b32 \t%\w+, %\w+), 16", r"\1, 8"),
    "masks": without(r"(shfl\.sync\.\w+\.b32 \t.*), (?:-1|%r\d+);", r"\1, 1;"),
}
"""What is done to each place, one at a time."""


def noticed(name: str, mutation: str) -> list[bool]:
    """Of each mutant, whether it is noticed."""
    found = []
    right = launched(name)
    for mutant in MUTATIONS[mutation](right.ptx):
        try:
            right.check(mutant)
        except AssertionError:
            found.append(True)
        else:
            found.append(False)
    return found


CAUGHT: Final[dict[tuple[str, str], set[int]]] = {
    ("gather_scatter", "atomics"): set(),
    ("stencil", "barriers"): {0},
    ("scan", "barriers"): {0},
    ("histogram", "barriers"): {0},
    ("scan", "conversions of addresses"): set(),
    ("histogram", "conversions of addresses"): set(),
    ("block_reduction", "conversions of addresses"): set(),
    ("springs", "stores"): set(),
    ("springs", "negations"): set(),
    ("springs", "shuffles"): set(),
    ("gather_scatter", "stores"): set(),
}
"""Of each kernel and mutation the mutants that are right: the first barrier comes after the zeros of shadows in shared
memory, and the primal's next one is enough for them."""
MORE: Final[dict[tuple[str, str], set[int]]] = {
    ("matmul", "barriers"): {0},
    ("nbody", "barriers"): {0},
    ("block_reduction", "barriers"): {0},
    ("elementwise", "atomics"): set(),
    ("matmul", "atomics"): set(),
    ("springs", "atomics"): set(),
    ("springs", "masks"): set(),
    ("stencil", "masks"): set(),
    ("monte_carlo", "atomics"): set(),
    ("monte_carlo", "shuffles"): set(),
    ("monte_carlo", "masks"): set(),
    ("tridiagonal", "negations"): set(),
}


def check(name: str, mutation: str, right: set[int]) -> None:
    found = noticed(name, mutation)
    assert found
    assert {number for number, each in enumerate(found) if not each} == right


@pytest.mark.parametrize(("name", "mutation"), CAUGHT)
def test_each_fault_is_noticed(name: str, mutation: str):
    check(name, mutation, CAUGHT[name, mutation])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mutation"), MORE)
def test_each_fault_of_larger_kernels_is_noticed(name: str, mutation: str):
    check(name, mutation, MORE[name, mutation])
