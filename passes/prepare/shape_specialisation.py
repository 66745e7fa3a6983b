"""Shapes that the code suggests, or that a call has: a function gets a second version for arrays that have them.

Input   the functions of a module, inlined and simplified, with marked dimensions; short lengths in a call.
Output  whether any has two versions now.
Method  Where Python cuts `row[3:6]` off at the end of an array, its length is compared with 6: arrays are probably at
        least as long. Where rows are found by their number, and their elements only at 0, 1 and 2, a row has probably
        three, also if other loops take them one after the other, from the first; and so has an array that the function
        makes (the state of a differential equation, whose right-hand side knows what each number is). Where a loop puts
        an array of six in the place of one that the caller gave, that had probably six, too. A length in a call
        probably recurs in the next one if it bounds innermost loops within others, but never an outermost loop around
        others: the number of points or samples varies, that of their axes does not. If that happens in a loop, one
        branch at the head of the function tests this, and jumps to a copy in which LLVM knows it: slices have the
        length that they say, arrays that are made a known size, loops over them a known number of iterations, and
        addresses a known stride.
Limit   functions of a moderate size: both versions are differentiated.

    for k in range(n): p = points[k] - camera[3:6]
    →  if camera.size >= 6: for k … (three numbers)   else: for k … (as it was)
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Final

from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow, remove_unreachable_blocks
from irad.ir.clone import clone_function_body
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.folding import signed
from irad.ir.instructions import (
    Alloca,
    Binary,
    Call,
    Cast,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Select,
    Store,
    replace_uses,
)
from irad.ir.loops import LoopNest, loop_nest
from irad.ir.module import Block, Function, Module
from irad.ir.trip_count import constant_offset, trip_count
from irad.ir.types import I64, LABEL, size_of
from irad.ir.values import ConstantInt, Parameter, Value, const_int
from irad.ir.worklist import Worklist
from irad.passes.convention import ReferenceCounts
from irad.passes.prepare.local_arrays import BULK, allocated_by
from irad.passes.subscripts.dimensions import DIMENSION

_LONGEST: Final = 64
_LONGEST_ROW: Final = 8
_MOST_LENGTHS: Final = 4
_MOST_OBSERVED: Final = 8
_MOST_INSTRUCTIONS: Final = 2000


class _Place(enum.Enum):
    """Kind of index, where that is not a constant."""

    IN_TURN = "one after the other, from the first"
    UNKNOWN = "any"


_NONE: Final[Mapping[int, int]] = MappingProxyType({})


def separate_usual_shapes(
    module: Module, host: ReferenceCounts, lengths: Mapping[str, Mapping[int, int]] = MappingProxyType({})
) -> bool:
    """Gives functions for which shapes are probable a second version; whether there were any.

    Args:
        module: changed in place.
        host: functions that allocate.
        lengths: by function the lengths that parameters have in a call, by their numbers.
    """
    changed = [_separate(each, host, lengths.get(str(each.name), _NONE)) for each in module.defined_functions()]
    return any(changed)


def _separate(function: Function, host: ReferenceCounts, lengths: Mapping[int, int]) -> bool:
    remove_unreachable_blocks(function)
    cfg = control_flow(function)
    dom = dominators(cfg)
    nest = loop_nest(cfg, dom)
    rows = {param: size for param in function.params if (size := _row_length(param, nest)) is not None}
    rows |= _vector_lengths(function, nest, host)
    rows |= _state_lengths(function, nest)
    slices = {param: least for param, least in _slice_lengths(function, nest).items() if param not in rows}
    if len(rows) + len(slices) > _MOST_LENGTHS:
        rows, slices = {}, {}
    known = {function.params[number]: length for number, length in lengths.items()}
    inner = _inner_lengths(known, nest, cfg, dom) if known else ()
    observed = {param: length for param, length in known.items() if param in inner}
    # The code only suggests a length; this call has one.
    rows |= {param: known.get(param, length) for param, length in rows.items()} | observed
    size = sum(len(block.instructions) for block in function.blocks)
    # Both versions are differentiated, so a large function would take twice as long to compile.
    if not rows | slices or len(observed) > _MOST_OBSERVED or size > _MOST_INSTRUCTIONS:
        return False
    rows |= _copied_lengths(function, rows, host)
    first = function.entry
    copies: dict[Value, Value] = {param: param for param in function.params}
    clone_function_body(function, function, copies, ".other")
    other, head = copies[first], Block(LABEL, None, [], function)
    assert isinstance(other, Block)
    for inst in [inst for block in copies if isinstance(block, Block) for inst in block.instructions]:
        for index, operand in enumerate(inst.operands):
            if isinstance(operand, Parameter) and operand in rows:
                inst.set_operand(index, const_int(I64, rows[operand]))
    # Only one of the versions runs, so a slot for each would double the frame for nothing.
    for slot in [inst for inst in first.instructions if isinstance(inst, Alloca)]:
        _share(slot, copies[slot], head)
    function.blocks.insert(0, head)
    build = Builder(head)
    tests = [build.icmp("eq", param, const_int(I64, size)) for param, size in rows.items()]
    # A slice such as row[3:6] is cut off only by shorter arrays, so longer ones take this version, too.
    tests += [build.icmp("sge", param, const_int(I64, least)) for param, least in slices.items()]
    build.cond_br(reduce(build.and_, tests), first, other)
    return True


def _share(slot: Alloca, copy: Value, head: Block) -> None:
    """Has both versions use one slot of the stack, which the head of the function makes."""
    assert isinstance(copy, Alloca)
    assert slot.block is not None
    replace_uses(copy, slot)
    copy.erase()
    slot.block.instructions.remove(slot)
    head.append(slot)


# --- lengths in a call ------------------------------------------------------------------------------------------------


def _inner_lengths(known: Collection[Value], nest: LoopNest, cfg: ControlFlow, dom: DominatorTree) -> set[Value]:
    """The lengths that bound an innermost loop within another one, but never an outermost loop around others."""
    inner, outer = set[Value](), set[Value]()
    for loop in nest.loops:
        count = trip_count(loop, cfg, dom)
        ends = set(_sources(count.start, count.bound)).intersection(known) if count else set()
        if loop.depth == 1 and loop.children:
            outer |= ends
        elif loop.depth > 1 and not loop.children:
            inner |= ends
    return inner - outer


def _sources(*numbers: Value) -> Iterator[Value]:
    """Values that some numbers may be, give or take a constant."""
    found = Worklist(numbers)
    for value in found:
        yield value
        match value:
            case Phi() | Cast():
                found.add(*value.operands)
            case Select():
                found.add(*value.operands[1:])
            case Binary(opcode="add" | "sub", operands=[a, ConstantInt()]):
                found.add(a)
            case Call() if value.callee.name == DIMENSION:
                found.add(value.arguments[0])
            case _:
                pass


# --- states -----------------------------------------------------------------------------------------------------------


def _state_lengths(function: Function, nest: LoopNest) -> dict[Parameter, int]:
    """The sizes of arrays in whose place a loop puts arrays that it makes, of a size that is known."""
    found: dict[Parameter, int] = {}
    for phi in function.instructions():
        if isinstance(phi, Phi) and phi.type is I64 and _is_in_loop(phi, nest):
            match _first_values(phi):
                case [Parameter() as size, ConstantInt() as length] if 1 < length.value <= _LONGEST:
                    found[size] = length.value
                case _:
                    pass
    return found


def _copied_lengths(function: Function, rows: dict[Parameter, int], host: ReferenceCounts) -> dict[Parameter, int]:
    """The numbers of arguments by which an array of a suggested size is copied.

    Its bytes are a product: of its size and the bytes of an element, or of the number of all elements of an argument
    and the bytes of one, which the host passes in this order.
    """
    found: dict[Parameter, int] = {}
    for call in function.instructions():
        if not (isinstance(call, Call) and _is_bulk_copy(call)):
            continue
        match allocated_by(call.arguments[0], host), call.arguments[2]:
            case (
                Call(operands=[Binary(opcode="shl", operands=[Parameter() as size, ConstantInt(value=shift)]), *_]),
                Binary(opcode="mul", operands=[Parameter() as a, Parameter() as b]),
            ) if size in rows and 0 <= shift <= 4:
                if size in (a, b):
                    found[b if a is size else a] = 1 << shift
                else:
                    count, item = sorted((a, b), key=function.params.index)
                    found |= {count: rows[size], item: 1 << shift}
            case _:
                pass
    return {number: value for number, value in found.items() if number not in rows}


def _first_values(phi: Phi) -> list[Value]:
    """The values that a phi gets by other phis or without, parameters first."""
    values = Worklist[Value]([phi])
    for value in values:
        if isinstance(value, Phi):
            values.add(*value.operands)
    found = [value for value in values.seen if not isinstance(value, Phi)]
    return sorted(found, key=lambda each: not isinstance(each, Parameter))


# --- slices -----------------------------------------------------------------------------------------------------------


def _slice_lengths(function: Function, nest: LoopNest) -> dict[Parameter, int]:
    """The numbers that loops compare with constants, and from where on all comparisons have the same outcome."""
    found: dict[Parameter, int] = {}
    for test in function.instructions():
        least, param = _least(test), test.operands[0] if test.operands else None
        if least is not None and isinstance(param, Parameter) and _is_asked_in_loop(test, nest):
            found[param] = max(least, found.get(param, 0))
    return {param: least for param, least in found.items() if least > 1}


def _least(test: Instruction) -> int | None:
    match test:
        case ICmp(predicate="slt", operands=[Parameter(), ConstantInt() as bound]) if bound.type is I64:
            least = signed(bound)
        case ICmp(predicate="sgt", operands=[Parameter(), ConstantInt() as bound]) if bound.type is I64:
            least = signed(bound) + 1
        case _:
            return None
    return least if 0 < least <= _LONGEST else None


def _is_asked_in_loop(test: Instruction, nest: LoopNest) -> bool:
    return any(user.block is not None and nest.loop_of(user.block) is not None for user in test.users)


# --- rows -------------------------------------------------------------------------------------------------------------


def _row_length(size: Parameter, nest: LoopNest) -> int | None:
    """Number of elements of a row by the accesses of loops; None if it may be any number."""
    marks = [user for user in size.users if isinstance(user, Call) and user.callee.name == DIMENSION]
    rows = [row for mark in marks for row in mark.users]
    if size.type is not I64 or not any(_is_asked_in_loop(row, nest) for row in rows):
        return None
    places = {place for row in rows for place in _places_in(row)}
    # If the size only finds rows, no loop runs along one, and elements between the named ones are never used.
    return _length(places, may_skip=len(marks) == len(size.users) and _Place.IN_TURN not in places)


def _length(places: set[int | _Place], *, may_skip: bool = False) -> int | None:
    """Number of elements by those that are accessed; not all of them have to be if ``may_skip``."""
    known = {place for place in places if isinstance(place, int)}
    if _Place.UNKNOWN in places or not known or min(known) < 0 or not 1 < max(known) + 1 <= _LONGEST_ROW:
        return None
    return max(known) + 1 if may_skip or len(known) == max(known) + 1 else None


def _places_in(row: Instruction, size: int = 0) -> Iterator[int | _Place]:
    """The elements that are accessed of a row.

    Args:
        row: where it begins: its number, multiplied by the length of rows; or that length in bytes.
        size: bytes of an element, where the row begins at a number of bytes.
    """
    match row:
        case Binary(opcode="shl", operands=[_, ConstantInt(value=shift)]) if 0 <= shift <= 3 and not size:
            for each in row.users:
                yield from _places_in(each, 1 << shift)
        case Binary(opcode="mul"):
            for user in row.users:
                yield from _places_behind(user, row, size)
        case _:
            yield _Place.UNKNOWN


def _places_behind(user: Instruction, row: Binary, size: int) -> Iterator[int | _Place]:
    match user:
        case GetElementPtr(operands=[_, index], source_type=element) if index is row:
            for each in user.users:
                yield _place(each, user, size or size_of(element))
        case Binary(opcode="add", operands=[a, b]) if _is_in_turn(b if a is row else a):
            yield _Place.IN_TURN
        case _:
            yield _Place.UNKNOWN


def _place(user: Instruction, address: Instruction, size: int) -> int | _Place:
    """The element after an address that is accessed; a part of known length may be cleared or copied."""
    if _accesses(user, address):
        return 0
    if isinstance(user, Call) and _is_bulk(user):
        return _Place.IN_TURN
    if not isinstance(user, GetElementPtr) or not all(_accesses(each, user) for each in user.users):
        return _Place.UNKNOWN
    offset = constant_offset(user)
    if offset is not None:
        return offset // size
    return _Place.IN_TURN if _is_in_turn(user.operands[-1]) else _Place.UNKNOWN


def _is_bulk_copy(call: Call) -> bool:
    return str(call.callee.name).startswith(BULK[1:])


def _is_bulk(call: Call) -> bool:
    """True if a number of bytes that is known is cleared or copied."""
    return str(call.callee.name).startswith(BULK) and isinstance(call.arguments[-2], ConstantInt)


def _accesses(inst: Instruction, address: Instruction) -> bool:
    return isinstance(inst, Load) or (isinstance(inst, Store) and inst.operands[1] is address)


# --- arrays that the function makes -----------------------------------------------------------------------------------


def _vector_lengths(function: Function, nest: LoopNest, host: ReferenceCounts) -> dict[Parameter, int]:
    """The sizes of arrays of whose elements loops take the first few by constants, and all others in turn."""
    places: dict[Parameter, set[int | _Place]] = {}
    for call in function.instructions():
        if isinstance(call, Call) and call.callee.name in host.plain:
            match call.arguments[0]:
                case Binary(opcode="shl", operands=[Parameter() as size, ConstantInt(value=shift)]):
                    places.setdefault(size, set()).update(_places_of(call, 1 << shift, nest, host))
                case _:
                    pass
    return {size: length for size, found in places.items() if (length := _length(found)) is not None}


def _places_of(call: Call, size: int, nest: LoopNest, host: ReferenceCounts) -> Iterator[int | _Place]:
    """The elements, of ``size`` bytes, of an allocated array that are accessed in loops; others may pass it on."""
    for field in call.users:
        for data in field.users if isinstance(field, GetElementPtr) and constant_offset(field) == host.data else ():
            for user in data.users:
                if isinstance(user, GetElementPtr) or _accesses(user, data):
                    place = _place(user, data, size)
                    if not isinstance(place, int) or any(_is_in_loop(each, nest) for each in (user, *user.users)):
                        yield place


def _is_in_loop(inst: Instruction, nest: LoopNest) -> bool:
    return inst.block is not None and nest.loop_of(inst.block) is not None


def _is_in_turn(index: Value) -> bool:
    """True if a loop counts an index from zero, or an index that is zero if an array is broadcast."""
    match index:
        case Phi():
            return any(map(_is_zero, index.operands))
        case Select(operands=[_, *arms]):
            return all(_is_zero(arm) or (isinstance(arm, Phi) and _is_in_turn(arm)) for arm in arms)
        case _:
            return False


def _is_zero(value: Value) -> bool:
    return isinstance(value, ConstantInt) and value.value == 0
