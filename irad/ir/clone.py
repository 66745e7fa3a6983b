"""Copies of instructions and of whole function bodies.

A copy has the flags and metadata of its source and remembers it as ``origin``; debug records are dropped, because they
name values of the source function.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final, TypeVar, get_args

from irad.errors import InternalError
from irad.ir.instructions import AnyInstruction, Instruction, Phi
from irad.ir.module import Block, Function
from irad.ir.values import GlobalWrapper, MetadataOperand, Value

_I = TypeVar("_I", bound=Instruction)

# Fields of each shape beyond those of `Instruction`. All hold immutable values except `Phi.blocks`, which is mapped
# again.
_BASE: Final = frozenset(field.name for field in fields(Instruction))
_OWN_FIELDS: Final[dict[type[Instruction], tuple[str, ...]]] = {
    shape: tuple(field.name for field in fields(shape) if field.name not in _BASE) for shape in get_args(AnyInstruction)
}


def clone_instruction(inst: _I, value_map: dict[Value, Value]) -> _I:
    """A detached copy. Operands, targets and incoming blocks that ``value_map`` does not name stay the same."""
    copy = _copy(inst)
    _connect(inst, copy, value_map)
    return copy


def clone_function_body(
    source: Function, target: Function, value_map: dict[Value, Value], suffix: str = ""
) -> dict[Value, Value]:
    """Appends copies of the blocks of ``source`` to ``target``, which may be the same function.

    Args:
        source: a function with a body.
        target: where the copies go, after what it has.
        value_map: at least the parameters of ``source`` that are used; other values to replace, such as globals, may be
            in it too.
        suffix: appended to the names of values and blocks.

    Returns:
        ``value_map``, extended by source block → copy and source instruction → copy.

    Raises:
        InternalError: a used parameter is not in ``value_map``, or the body takes the address of a block.
    """
    for param in source.params:
        if param.users and param not in value_map:
            raise InternalError(f"to copy the body of @{source.name}, its parameter %{param.name} needs a replacement")
    pairs: list[tuple[Instruction, Instruction]] = []
    for block in list(source.blocks):
        twin = target.add_block(f"{block.name}{suffix}" if block.name is not None else None)
        value_map[block] = twin
        _copy_block(block, twin, value_map, pairs)
    if suffix:
        for inst, copy in pairs:
            if inst.name is not None:
                copy.name = inst.name + suffix
    for inst, copy in pairs:
        _connect(inst, copy, value_map)
    return value_map


def _copy_block(
    block: Block, twin: Block, value_map: dict[Value, Value], pairs: list[tuple[Instruction, Instruction]]
) -> None:
    """Fills ``twin`` with copies that are not connected yet."""
    for inst in block.instructions:
        copy = _copy(inst)
        copy.block = twin
        value_map[inst] = copy
        pairs.append((inst, copy))
        twin.instructions.append(copy)


def _copy(inst: _I) -> _I:
    """A copy without operands, targets and incoming blocks, field by field: `__init__` takes twice the time."""
    shape = type(inst)
    copy = object.__new__(shape)
    copy.type = inst.type
    copy.name = inst.name
    copy.users = {}
    copy.operands = []
    copy.metadata = inst.metadata.copy()
    copy.block = None
    copy.origin = inst
    copy.debug_records = ()
    copy.targets = []
    for name in _OWN_FIELDS[shape]:
        setattr(copy, name, getattr(inst, name))
    return copy


def _connect(inst: Instruction, copy: Instruction, value_map: dict[Value, Value]) -> None:
    """Gives a copy its operands, targets and incoming blocks."""
    copy.set_operands([value_map[v] if v in value_map else _outside(v, value_map) for v in inst.operands])
    if inst.targets:
        copy.targets = [_block(target, value_map) for target in inst.targets]
    if isinstance(inst, Phi):
        assert isinstance(copy, Phi)
        copy.blocks = [_block(block, value_map) for block in inst.blocks]


def _block(block: Block, value_map: dict[Value, Value]) -> Block:
    found = value_map.get(block, block)
    assert isinstance(found, Block), f"block %{block.name} is mapped to a {type(found).__name__}"
    return found


def _outside(value: Value, value_map: dict[Value, Value]) -> Value:
    """The replacement of an operand that the map does not name: itself, unless it wraps a mapped value."""
    if isinstance(value, MetadataOperand) and value.value is not None:
        inner = value_map.get(value.value)
        return value if inner is None else MetadataOperand(value.type, value.name, value.text, inner)
    if isinstance(value, GlobalWrapper) and value.block is not None:
        raise InternalError(f"code that takes the address of block %{value.block} cannot be copied")
    return value
