"""Shapes that the code suggests: a function gets a second version for arrays that have them.

Input   the functions of a module, inlined and simplified, with marked dimensions.
Output  whether any has two versions now.
Method  Where Python cuts `row[3:6]` off at the end of an array, its length is compared with 6: arrays are probably at
        least as long. Where rows are found by their number, and their elements only at 0, 1 and 2, a row has probably
        three. If that happens in a loop, one branch at the head of the function asks, and leads to a copy in which LLVM
        knows it: slices have the length that they say, arrays that are made of them a known size, loops over them a
        known number of iterations, and addresses a known stride.
Limit   functions of a moderate size: both versions are differentiated.

    for k in range(n): p = points[k] - camera[3:6]
    →  if camera.size >= 6: for k … (three numbers)   else: for k … (as it was)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, remove_unreachable_blocks
from irad.ir.clone import clone_function_body
from irad.ir.dominance import dominators
from irad.ir.folding import signed
from irad.ir.instructions import Alloca, Binary, Call, GetElementPtr, ICmp, Instruction, Load, Store, replace_uses
from irad.ir.loops import LoopNest, loop_nest
from irad.ir.module import Block, Function, Module
from irad.ir.trip_count import constant_offset
from irad.ir.types import I64, LABEL, FloatType, size_of
from irad.ir.values import ConstantInt, Parameter, Value, const_int
from irad.passes.prepare.dimensions import DIMENSION

_LONGEST: Final = 64
_LONGEST_ROW: Final = 8
_MOST_LENGTHS: Final = 4
_MOST_INSTRUCTIONS: Final = 2000


def separate_usual_shapes(module: Module) -> bool:
    """Gives functions whose code suggests shapes a second version; whether there were any."""
    changed = [_separate(function) for function in module.defined_functions()]
    return any(changed)


def _separate(function: Function) -> bool:
    remove_unreachable_blocks(function)
    cfg = control_flow(function)
    nest = loop_nest(cfg, dominators(cfg))
    rows = {param: size for param in function.params if (size := _row_length(param, nest)) is not None}
    slices = {param: least for param, least in _slice_lengths(function, nest).items() if param not in rows}
    size = sum(len(block.instructions) for block in function.blocks)
    if not 0 < len(rows) + len(slices) <= _MOST_LENGTHS or size > _MOST_INSTRUCTIONS:
        return False
    first = function.entry
    copies: dict[Value, Value] = {param: param for param in function.params}
    clone_function_body(function, function, copies, ".other")
    other, head = copies[first], Block(LABEL, None, [], function)
    assert isinstance(other, Block)
    for inst in [inst for block in copies if isinstance(block, Block) for inst in block.instructions]:
        for index, operand in enumerate(inst.operands):
            if isinstance(operand, Parameter) and operand in rows:
                inst.set_operand(index, const_int(I64, rows[operand]))
    for slot in [inst for inst in first.instructions if isinstance(inst, Alloca)]:
        _share(slot, copies[slot], head)
    function.blocks.insert(0, head)
    build = Builder(head)
    tests = [build.icmp("eq", param, const_int(I64, size)) for param, size in rows.items()]
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
    """How many elements rows have by what is accessed of them; None where a loop counts them, or none is in a loop."""
    if size.type is not I64 or not size.users:
        return None
    lengths = list[int | None]()
    for mark in size.users:
        if not (isinstance(mark, Call) and mark.callee.name == DIMENSION and mark.operands[0] is size):
            return None
        lengths += [_length_of(row) for row in mark.users]
    known = [length for length in lengths if length is not None]
    is_in_loop = any(_is_asked_in_loop(row, nest) for mark in size.users for row in mark.users)
    if len(known) < len(lengths) or not known or not is_in_loop:
        return None
    return max(known) if 1 < max(known) <= _LONGEST_ROW else None


def _length_of(row: Instruction) -> int | None:
    """One more than the last element that is accessed of a row, whose number has been multiplied."""
    if not isinstance(row, Binary) or row.opcode != "mul":
        return None
    places = [place for address in row.users for place in _places(address, row)]
    known = [place for place in places if place is not None]
    return max(known) + 1 if known and len(known) == len(places) and min(known) >= 0 else None


def _places(address: Instruction, row: Binary) -> Iterator[int | None]:
    """The elements of a row that are accessed; None where that is not constant."""
    match address:
        case GetElementPtr(operands=[_, index], source_type=FloatType() as element) if index is row:
            for user in address.users:
                if _accesses(user, address):
                    yield 0
                    continue
                offset = constant_offset(user) if isinstance(user, GetElementPtr) else None
                is_plain = offset is not None and all(_accesses(each, user) for each in user.users)
                yield offset // size_of(element) if is_plain and offset is not None else None
        case _:
            yield None


def _accesses(inst: Instruction, address: Instruction) -> bool:
    return isinstance(inst, Load) or (isinstance(inst, Store) and inst.operands[1] is address)
