"""Stack buffers: arrays of a size that only the run knows, made again and again, are on the stack where they are small.

Input   the functions of a module, inlined and simplified, with the calls that allocate in them.
Output  whether any was rewritten: an allocation in a loop asks for memory only where its buffer is too small.
Method  as for arrays of a known size (`stack_promotion`): the pointers into an array are all known, no memory holds
        one, and none is used when the next array is made. To the null of an array in its buffer no references are
        counted.
Why     `points[i] - points[j]` of points in space makes an array of three numbers, which takes longer to make and to
        give back than to compute, once more for its shadow, and has to be kept until the reverse sweep.
Limit   arrays that are copied as a whole or change hands stay as they are. So do those that a loop reads more than once
        per element, which would be right but slow: each value that is read goes on the tape. One element that all
        iterations read and none writes counts once: it is read before the loop.

    %m = call ptr @allocate(i64 %n, i32 32)     %fits = icmp ule i64 %n, 128
                                                br i1 %fits, label %made, label %allocate
                                              allocate:
                                                %m = call ptr @allocate(i64 %n, i32 32)
                                                …
                                              made:
    %d = load ptr, ptr %field                   %d = phi ptr [ %buffer, … ], [ %data, %allocate ]
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, remove_unreachable_blocks
from irad.ir.dominance import dominators
from irad.ir.instructions import (
    Binary,
    Call,
    Cast,
    Freeze,
    GetElementPtr,
    ICmp,
    Instruction,
    Phi,
    Select,
    Store,
    replace_uses,
)
from irad.ir.loops import Loop, LoopNest, loop_nest
from irad.ir.module import Block, Function, Module
from irad.ir.trip_count import affine_variables, is_invariant
from irad.ir.values import ConstantInt, ConstantNull, Value, const_int
from irad.ir.worklist import Worklist
from irad.passes.augmented.allocation_failure import split_after
from irad.passes.convention import ReferenceCounts
from irad.passes.prepare.local_arrays import Owner, find_owners
from irad.passes.prepare.stack_promotion import clear, has_elements, new_variable

LARGEST: Final = 128
"""Bytes of a buffer: 16 doubles. All of it is cleared for each array, so a larger one would slow down the smallest."""

_MOST: Final = 32  # buffers of a function
_NULL: Final = ConstantNull(types.PTR)
_NO: Final = const_int(types.I1, 0)
_YES: Final = const_int(types.I1, 1)


def add_stack_buffers(module: Module, host: ReferenceCounts) -> bool:
    """Rewrites all functions of a module; returns whether anything changed."""
    changed = [_add_in(function, host) for function in module.defined_functions()]
    return any(changed)


def _add_in(function: Function, host: ReferenceCounts) -> bool:
    if not (calls := _allocations(function, host)):
        return False
    remove_unreachable_blocks(function)
    cfg = control_flow(function)
    loops = loop_nest(cfg, dominators(cfg))
    # of the buffer: of memory that is allocated nothing else is asked
    sizes = {call: LARGEST for call in calls if call.block is not None and loops.loop_of(call.block) is not None}
    groups = find_owners(sizes, cfg, host) if sizes else []
    owners = [group[0] for group in groups if len(group) == 1 and _may_be_buffered(group[0], loops)][:_MOST]
    for inst in function.instructions() if owners else ():
        inst.debug_records = ()  # they name what goes away
    for owner in owners:
        assert isinstance(owner.root, Call)
        _buffer(owner, owner.root, host)
    return bool(owners)


def _allocations(function: Function, host: ReferenceCounts) -> list[Call]:
    """The calls that allocate a number of bytes that is not known."""
    return [
        inst
        for inst in function.instructions()
        if isinstance(inst, Call) and inst.callee.name in host.plain and not isinstance(inst.arguments[0], ConstantInt)
    ]


def _may_be_buffered(owner: Owner, loops: LoopNest) -> bool:
    """True if an array holds numbers of one type, and each loop reads each of them once."""
    root = owner.root
    if not isinstance(root, Call) or owner.copies or not has_elements((owner,)):
        return False
    written = {user.block for address in owner.addresses for user in address.users if isinstance(user, Store | Call)}
    return all(_is_read_once(read, root, loops, written) for read in owner.reads)


def _is_read_once(read: Instruction, root: Call, loops: LoopNest, written: set[Block | None]) -> bool:
    """True if a load in loops after the call reads another element in each iteration, or one that stays the same."""
    assert read.block is not None
    assert root.block is not None
    loop = loops.loop_of(read.block)
    while loop is not None and not loop.contains(root.block):
        phis = _phis_of(read.operands[0], loop)
        if phis is None or not (affine_variables(loop).keys() & phis if phis else loop.blocks.isdisjoint(written)):
            return False
        loop = loop.parent
    return True


def _phis_of(address: Value, loop: Loop) -> set[Value] | None:
    """The phis of a loop that an address is computed from; None if it is from something else that changes there."""
    variables, phis, values = affine_variables(loop), set[Value](), Worklist([address])
    for value in values:
        if is_invariant(value, loop):
            continue
        match value:
            case Phi():
                phis.add(value)
                if value not in variables:
                    values.add(*value.operands)
            case GetElementPtr() | Freeze() | Cast() | Select() | ICmp():
                values.add(*value.operands)
            case Binary(opcode="add" | "sub" | "mul" | "shl" | "or"):
                values.add(*value.operands)
            case _:
                return None
    return phis


def _buffer(owner: Owner, call: Call, host: ReferenceCounts) -> None:
    """Puts a buffer beside the memory that a call allocates."""
    head, size = call.block, call.arguments[0]
    assert head is not None
    assert head.function is not None
    buffer = new_variable(head.function, LARGEST, call.name)
    rest = split_after(call)
    allocate, made = (head.function.add_block(name, after=head) for name in ("allocate", "allocated"))
    users = list(call.users)
    del head.instructions[-1]  # the call, which moves
    allocate.append(call)

    build = Builder(head)
    build.metadata = call.metadata
    clear(build, buffer, LARGEST)
    build.cond_br(build.icmp("ule", size, const_int(types.I64, LARGEST)), rest, allocate)
    build = Builder(allocate)
    build.cond_br(build.icmp("eq", call, _NULL), rest, made)
    build = Builder(made)
    memory = build.load(types.PTR, build.byte_offset(call, host.data))
    build.br(rest)

    def choice(in_buffer: Value, failed: Value, allocated: Value) -> Phi:
        return Builder.at_start(rest).phi(in_buffer.type, [(in_buffer, head), (failed, allocate), (allocated, made)])

    header, data, failed = choice(_NULL, _NULL, call), choice(buffer, _NULL, memory), choice(_NO, _YES, _NO)
    for check in owner.checks:
        replace_uses(check, failed if check.predicate == "eq" else choice(_YES, _NO, _YES))
        check.erase()
    for load in owner.fields:
        replace_uses(load, data if load.type is types.PTR else size)
        load.erase()
    for user in users:
        if isinstance(user, GetElementPtr):
            user.erase()
        elif user.block is not None:
            user.set_operands([header if each is call else each for each in user.operands])
