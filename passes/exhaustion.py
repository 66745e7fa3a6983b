"""Checks for exhausted memory, of the tape and of the machine's stack.

Every allocation in the forward sweep may fail, and so may those in the augmented callees it calls, which leave a flag
in the arena. Then the sweep returns at once; the entry returns the status `EXHAUSTED`, and the caller raises
MemoryError.

A deep recursion may run out of stack where the primal alone would not. So both functions of a callee's pair look first
how much of it is left; they return at once when it is little, with the same flag. After the reverse sweep the caller of
the entry looks at the flag.
"""

from __future__ import annotations

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import rename_incoming
from irad.ir.instructions import Alloca, Call, Instruction
from irad.ir.module import Block, Function
from irad.ir.values import ConstantNull, Value, const_int, zero
from irad.passes.forward import Forward
from irad.passes.runtime import ARENA_ALLOC, ARENA_ALLOC_PRODUCT, ARENA_FAILED, STACK_FULL, runtime_function

EXHAUSTED = -4


def check_allocations(forward: Forward) -> None:
    """Inserts the checks."""
    augmented = {pair.augmented for pair in forward.program.pairs.values()}
    allocators = {ARENA_ALLOC, ARENA_ALLOC_PRODUCT}
    leave: Block | None = None
    for block in list(forward.function.blocks):
        for call in [i for i in block.instructions if isinstance(i, Call)]:
            callee = call.callee
            if not isinstance(callee, Function) or not (callee.name in allocators or callee in augmented):
                continue
            leave = leave or _leave(forward)
            rest = split_after(call)
            assert call.block is not None
            build = Builder(call.block)
            build.cond_br(_failed(build, forward, call, callee), leave, rest)


def _failed(build: Builder, forward: Forward, call: Call, callee: Function) -> Value:
    if callee.name in (ARENA_ALLOC, ARENA_ALLOC_PRODUCT):
        return build.icmp("eq", call, ConstantNull(types.PTR))
    return build.call(runtime_function(forward.program.module, ARENA_FAILED), [forward.arena])


def _leave(forward: Forward) -> Block:
    block = forward.function.add_block("exhausted")
    build = Builder(block)
    result = forward.function.function_type.result
    if result is types.VOID:
        build.ret()
    elif forward.pair.variant.is_entry:
        build.ret(const_int(result, EXHAUSTED))
    else:
        build.ret(zero(result))
    return block


def check_stack(forward: Forward) -> None:
    """Inserts the checks for stack into a callee's pair; the entry's frame is the caller's concern."""
    pair = forward.pair
    if pair.variant.is_entry:
        return
    for function in (pair.augmented, pair.reverse):
        entry = function.blocks[0]
        rest = split_before(next(i for i in entry.instructions if not isinstance(i, Alloca)))
        leave = function.add_block("stack.full")
        result = function.function_type.result
        Builder(leave).ret(None if result is types.VOID else zero(result))
        build = Builder(entry)
        full = build.call(runtime_function(forward.program.module, STACK_FULL), [function.params[1]])
        build.cond_br(full, leave, rest)


def split_after(inst: Instruction) -> Block:
    """Moves what follows an instruction to a new block, which takes over the successors; the old one is left open."""
    assert inst.block is not None
    return split_before(inst.block.instructions[inst.block.instructions.index(inst) + 1])


def split_before(inst: Instruction) -> Block:
    """The same from an instruction on."""
    block = inst.block
    assert block is not None
    assert block.function is not None
    rest = block.function.add_block(f"{block.name}.rest", after=block)
    index = block.instructions.index(inst)
    moved = block.instructions[index:]
    del block.instructions[index:]
    for item in moved:
        rest.append(item)
    for successor in rest.successors:
        for phi in successor.phis():
            rename_incoming(phi, block, rest)
    return rest
