"""Splits instructions that merge or move whole aggregates into instructions for their leaves.

Input   a function in normal form.
Output  none; the function is rewritten. No phi, select, freeze, load or store has an aggregate type any more.
Why     LLVM merges whole array descriptors (`{ ptr, ptr, i64, i64, ptr, … }`) where branches give different arrays.
        Split, the pointer to the data has a shadow like any other pointer, and is not confused with the other
        pointers beside it.

    %a = phi {ptr, i64} [ %x, %l ], [ %y, %r ]        %a.0 = phi ptr [ x.0, %l ], [ y.0, %r ]
    %p = extractvalue {ptr, i64} %a, 0                (uses of %p use %a.0)
    store {ptr, i64} %a, ptr %q                       store ptr %a.0, ptr %q; store i64 %a.1, ptr (%q + 8)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from irad.ir.builder import Builder
from irad.ir.instructions import ExtractValue, Freeze, InsertValue, Instruction, Load, Phi, Select, Store, replace_uses
from irad.ir.module import Block, Function
from irad.ir.types import ArrayType, NamedStructType, StructType, Type, element_types, field_offsets, size_of
from irad.ir.values import ConstantAggregate, ConstantZero, Poison, Undef, Value, zero

Path = tuple[int, ...]


def split_aggregates(function: Function) -> None:
    """Splits all phis and selects of aggregates."""
    moved = [i for i in function.instructions() if _moves_aggregate(i)]
    for inst in moved:
        match inst:
            case Phi():
                _split_phi(inst)
            case Select():
                _split_select(inst)
            case Freeze():
                _split_freeze(inst)
            case Load():
                _split_load(inst)
            case Store():
                _split_store(inst)
            case _:
                pass
    if moved:
        _fold_extracts(function)


def _moves_aggregate(inst: Instruction) -> bool:
    if isinstance(inst, Store):
        return _is_aggregate(inst.operands[0].type)
    return isinstance(inst, Phi | Select | Freeze | Load) and _is_aggregate(inst.type)


def _is_aggregate(type_: Type) -> bool:
    return isinstance(type_, StructType | NamedStructType | ArrayType)


def leaves(type_: Type, path: Path = ()) -> Iterator[tuple[Path, Type]]:
    """Paths and types of the scalars of an aggregate."""
    if not _is_aggregate(type_):
        yield path, type_
        return
    for index, element in enumerate(element_types(type_)):
        yield from leaves(element, (*path, index))


def _split_phi(phi: Phi) -> None:
    build = Builder.before(phi)
    parts: dict[Path, Value] = {}
    for path, type_ in leaves(phi.type):
        part = build.phi(type_, name=phi.name)
        given: dict[Block, Value] = {}
        for value, block in phi.incoming():
            if block not in given:  # one value for all edges of a switch
                given[block] = Builder.before(block.terminator).extract_value(value, path)
            part.add_incoming(given[block], block)
        parts[path] = part
    assert phi.block is not None
    _replace(phi, parts, Builder.at_start(phi.block))


def _split_select(select: Select) -> None:
    build = Builder.before(select)
    condition, a, b = select.operands
    parts: dict[Path, Value] = {}
    for path, _ in leaves(select.type):
        x, y = build.extract_value(a, path), build.extract_value(b, path)
        parts[path] = build.select(condition, x, y, name=select.name)
    _replace(select, parts, build)


def _split_freeze(freeze: Freeze) -> None:
    build = Builder.before(freeze)
    (whole,) = freeze.operands
    parts: dict[Path, Value] = {path: build.freeze(build.extract_value(whole, path)) for path, _ in leaves(freeze.type)}
    _replace(freeze, parts, build)


def _split_load(load: Load) -> None:
    build = Builder.before(load)
    build.metadata = load.metadata
    pointer = load.operands[0]
    parts: dict[Path, Value] = {}
    for path, type_ in leaves(load.type):
        offset = _offset(load.type, path)
        parts[path] = build.load(type_, build.byte_offset(pointer, offset), align=_align(load.align, offset))
    _replace(load, parts, build)


def _split_store(store: Store) -> None:
    build = Builder.before(store)
    build.metadata = store.metadata
    value, pointer = store.operands
    for path, _ in leaves(value.type):
        offset = _offset(value.type, path)
        part = build.extract_value(value, path)
        build.store(part, build.byte_offset(pointer, offset), align=_align(store.align, offset))
    store.erase()


def _offset(type_: Type, path: Path) -> int:
    """Byte offset of a leaf."""
    total = 0
    for index in path:
        if isinstance(type_, ArrayType):
            total += index * size_of(type_.element)
        else:
            total += field_offsets(type_)[index]
        type_ = element_types(type_)[index]
    return total


def _align(whole: int | None, offset: int) -> int:
    """The largest alignment that a place in a value of known alignment surely has."""
    return gcd(whole or 1, offset) if offset else whole or 1


def _replace(whole: Instruction, parts: dict[Path, Value], build: Builder) -> None:
    """Reassembles the parts; instructions that take them apart are folded later."""
    packed: Value = Poison(whole.type)
    for path, part in parts.items():
        packed = build.insert_value(packed, part, path)
    replace_uses(whole, packed)
    whole.erase()


def _fold_extracts(function: Function) -> None:
    """Takes leaves from where they were put in, and drops the packing that is no longer needed."""
    changed = True
    while changed:
        changed = False
        for inst in list(function.instructions()):
            if isinstance(inst, ExtractValue):
                known = _put_in(inst.operands[0], inst.indices, inst.type)
                if known is not None:
                    replace_uses(inst, known)
                    inst.erase()
                    changed = True
            elif isinstance(inst, InsertValue) and not inst.users:
                inst.erase()
                changed = True


def _put_in(aggregate: Value, path: Path, type_: Type) -> Value | None:
    """Value that a chain of insertvalue put at a path, a leaf of that type; None when it does not say."""
    while isinstance(aggregate, InsertValue):
        inserted, at = aggregate.operands[1], aggregate.indices
        if at == path:
            return inserted
        if path[: len(at)] == at:
            return _put_in(inserted, path[len(at) :], type_)
        if at[: len(path)] == path:
            return None
        aggregate = aggregate.operands[0]
    match aggregate:
        case ExtractValue():
            return _put_in(aggregate.operands[0], aggregate.indices + path, type_)
        case Poison() | Undef():
            return type(aggregate)(type_)
        case ConstantZero():
            return zero(type_)
        case ConstantAggregate():
            part = aggregate.elements[path[0]]
            return _put_in(part, path[1:], type_) if len(path) > 1 else part
        case _:
            return None
