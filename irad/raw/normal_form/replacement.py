"""Helpers of the steps of the normal form: replacing instructions by others, and the elements of vectors."""

from __future__ import annotations

from collections.abc import Iterable

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import ExtractElement, InsertElement, Instruction, replace_uses
from irad.ir.module import Block, Function
from irad.ir.types import Type, VectorType
from irad.ir.values import Poison, Value, const_int
from irad.passes.augmented.allocation_failure import split_before


def instead_of(inst: Instruction) -> Builder:
    """A builder in front of an instruction, whose line and origin the new ones get."""
    return on_behalf_of(inst, Builder.before(inst))


def on_behalf_of(inst: Instruction, build: Builder) -> Builder:
    """A builder elsewhere, for the same purpose."""
    build.origin, build.metadata = inst, kept_metadata(inst, "dbg")
    return build


def kept_metadata(inst: Instruction, *kinds: str) -> dict[str, str]:
    """Some of an instruction's metadata."""
    return {kind: node for kind, node in inst.metadata.items() if kind in kinds}


def replace(inst: Instruction, value: Value) -> None:
    """Puts a value in the place of an instruction."""
    replace_uses(inst, value)
    inst.erase()


def function_of(inst: Instruction) -> Function:
    """The function that an instruction is in."""
    assert inst.block is not None
    assert inst.block.function is not None
    return inst.block.function


def branch_before(inst: Instruction) -> tuple[Function, Block, Block]:
    """Splits a block: its function, what precedes the instruction and has no terminator now, and the rest."""
    before = inst.block
    assert before is not None
    return function_of(inst), before, split_before(inst)


def element_of(build: Builder, vector: Value, index: int) -> Value:
    """An element of a vector."""
    assert isinstance(vector.type, VectorType)
    part = ExtractElement(vector.type.element, operands=[vector, const_int(types.I64, index)])
    build.insert(part)
    return part


def vector_of(build: Builder, kind: Type, elements: Iterable[Value]) -> Value:
    """A vector of such elements."""
    made: Value = Poison(kind)
    for index, element in enumerate(elements):
        step = InsertElement(kind, operands=[made, element, const_int(types.I64, index)])
        build.insert(step)
        made = step
    return made
