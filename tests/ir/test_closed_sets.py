"""The unions over which ``match`` statements end in ``assert_never``: a class that they lack would pass mypy unseen."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import get_args

import pytest

import irad.api.grad  # the whole engine, with whatever classes of its own it has
from irad.frontend.values.tree import AnyContent, Content
from irad.ir.instruction_table import TABLE
from irad.ir.instructions import AnyInstruction, Binary, Cast, Instruction
from irad.ir.text.keywords import BINARY_OPCODES, CAST_OPCODES
from irad.ir.types import AnyType, Type
from irad.ir.values import AnyConstant, Constant


def leaves(base: type) -> Iterator[type]:
    """The classes that are derived from one, and that none is derived from."""
    derived = [each for each in base.__subclasses__() if each.__module__.startswith("irad.")]
    if not derived:
        yield base
    for each in derived:
        yield from leaves(each)


@pytest.mark.parametrize(
    ("union", "base"),
    [(AnyInstruction, Instruction), (AnyType, Type), (AnyConstant, Constant), (AnyContent, Content)],
)
def test_a_closed_set_has_every_class(union, base):
    gc.collect()  # a dataclass with slots takes the place of the class as it was written
    assert irad.api.grad
    assert set(get_args(union)) == set(leaves(base))


def test_every_instruction_has_a_row_and_the_table_no_opcode_twice():
    assert {row.shape for row in TABLE} == set(get_args(AnyInstruction))
    opcodes = [(row.shape, opcode) for row in TABLE for opcode in row.opcodes]
    assert len(opcodes) == len(set(opcodes))
    assert {opcode for shape, opcode in opcodes if shape is Binary} == BINARY_OPCODES
    assert {opcode for shape, opcode in opcodes if shape is Cast} == CAST_OPCODES
