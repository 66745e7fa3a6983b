"""The exits of a function that raise: Numba stores where the pickled exception is and returns an error status.

Input   the augmented primal; changed: a block that raises gets a copy for each way into it and ends there.
Output  for each such block the exception; None where a callee has raised, which Python passes on by itself.
Method  an exception with computed arguments is put together in new memory, by code that may be long. A block that ends
        in one such exception only is cut off there, and what is computed is shown as `...`; what the block itself does
        to memory that the caller sees stays, and if more is done to such memory after it, the function is refused. A
        block that calls a function that does nothing but raise one is cut off too, such as Numba's for shapes that do
        not match, which LLVM does not inline.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, Final

from irad.decompile.refusal import refused
from irad.ir.cfg import remove_unreachable_blocks
from irad.ir.clone import clone_instruction
from irad.ir.instructions import (
    Alloca,
    Call,
    CallSite,
    Cast,
    GetElementPtr,
    Instruction,
    Load,
    Phi,
    Ret,
    Select,
    Store,
    Unreachable,
    replace_uses,
)
from irad.ir.module import Block, Function
from irad.ir.trip_count import constant_offset
from irad.ir.types import VOID, IntType, PointerType
from irad.ir.values import Constant, ConstantAggregate, ConstantInt, ConstantString, GlobalVariable, Parameter, Value
from irad.ir.worklist import reachable

# What code does on its way to an exception that the caller sees: it is not left out with the exception.
#
# out[0] = x          seen: the caller has the array
# ValueError(x)       not seen: new memory, in which the exception is put together

_QUIET: Final = ("NRT_", "llvm.lifetime", "llvm.dbg", "llvm.assume", "irad.")
_WRITES_FIRST: Final = ("llvm.memcpy", "llvm.memmove", "llvm.memset")


def is_seen(inst: Instruction, slot: Value) -> bool:
    """True if an instruction changes memory that is left when the exception in ``slot`` has been raised."""
    match inst:
        case Store(operands=[_, pointer]):
            return not _is_new(pointer, slot, set())
        case CallSite():
            return _is_seen_call(inst, slot)
        case _:
            return False


def blocks_behind(block: Block) -> list[Block]:
    """The blocks that control may reach from the end of one."""
    return list(reachable(block.successors, lambda each: each.successors))


def _is_seen_call(call: CallSite, slot: Value) -> bool:
    name = str(getattr(call.callee, "name", None) or "")
    pointers = [argument for argument in call.arguments if isinstance(argument.type, PointerType)]
    if name.startswith(_QUIET):
        return False
    if name.startswith(_WRITES_FIRST):
        return not _is_new(pointers[0], slot, set())
    return any(not _is_new(pointer, slot, set()) for pointer in pointers if not isinstance(pointer, Constant))


def _is_new(pointer: Value, slot: Value, seen: set[Value]) -> bool:
    """True if memory is the function's own: local, new, reached from there, or the place of the exception."""
    if pointer is slot or pointer in seen:
        return True
    seen.add(pointer)
    match pointer:
        case Alloca() | Call():
            return True
        case Load(operands=[source]):
            return not isinstance(source, Alloca) and _is_new(source, slot, seen)
        case GetElementPtr() | Cast():
            return _is_new(pointer.operands[0], slot, seen)
        case Phi():
            return all(_is_new(value, slot, seen) for value in pointer.operands)
        case Select(operands=[_, a, b]):
            return _is_new(a, slot, seen) and _is_new(b, slot, seen)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception with its arguments."""

    kind: type[BaseException]
    arguments: tuple[Any, ...]


def split_raises(function: Function, slot: Value) -> dict[Block, Raised | None]:
    """Ends blocks that raise with `unreachable`, one for each way into them; ``slot`` is where exceptions are stored.

    Raises:
        UnsupportedError: the arguments of an exception are computed.
    """
    good = reaching_success(function)
    _move_constants_here(function, good)
    found: dict[Block, Raised | None] = dict(_cut_computed(function, slot, good))
    for block in [b for b in function.blocks if b not in good]:
        sources = [b for b in function.blocks if block in b.successors]
        for source in sources[1:]:
            copy = _copy_for(function, block, source)
            if block in found:
                found[copy] = found[block]
            last = source.terminator
            last.targets = [copy if target is block else target for target in last.targets]
            for phi in block.phis():
                _drop(phi, source)
        for phi in block.phis() if sources else ():
            replace_uses(phi, phi.value_from(sources[0]))
            phi.erase()
    for block in [b for b in function.blocks if b not in good and b not in found]:
        stores = [i for i in block.instructions if isinstance(i, Store) and i.operands[1] is slot]
        if stores:
            found[block] = _exception(stores[-1].operands[0])
        elif any(target in good for target in block.successors) or isinstance(block.terminator, Ret):
            found[block] = None
        else:
            continue
        _end_here(block)
    remove_unreachable_blocks(function)
    return {block: raised for block, raised in found.items() if block in function.blocks}


def reaching_success(function: Function) -> set[Block]:
    """The blocks from which the function may return status 0."""
    pending: list[Block] = []
    good: set[Block] = set()
    for block in function.blocks:
        last = block.terminator
        if not isinstance(last, Ret):
            continue
        status = last.operands[0] if last.operands else None
        if isinstance(status, Phi) and status.block is block:
            pending += [b for v, b in status.incoming() if not isinstance(v, ConstantInt) or v.value == 0]
            good.add(block)
        elif not isinstance(status, ConstantInt) or status.value == 0:
            pending.append(block)
    return good.union(reachable(pending, lambda block: [b for b in function.blocks if block in b.successors]))


def _copy_for(function: Function, block: Block, source: Block) -> Block:
    copy = function.add_block(block.name)
    mapped: dict[Value, Value] = {}
    for inst in block.instructions:
        if isinstance(inst, Phi):
            mapped[inst] = inst.value_from(source)
            continue
        made = clone_instruction(inst, mapped)
        copy.append(made)
        mapped[inst] = made
        for target in made.targets:
            for phi in target.phis():
                value = phi.value_from(block)
                phi.add_incoming(mapped.get(value, value), copy)
    return copy


def _end_here(block: Block) -> None:
    """Nothing follows a block."""
    for target in dict.fromkeys(block.successors):
        for phi in target.phis():
            _drop(phi, block)
    block.terminator.erase()
    block.append(Unreachable(VOID))


def _drop(phi: Phi, source: Block) -> None:
    pairs = [(v, b) for v, b in phi.incoming() if b is not source]
    phi.set_operands([v for v, _ in pairs])
    phi.blocks = [b for _, b in pairs]


def _cut_computed(function: Function, slot: Value, good: set[Block]) -> dict[Block, Raised]:
    """Ends the blocks after which only one exception with computed arguments can be put together."""
    cut: dict[Block, Raised] = {}
    for block in [b for b in function.blocks if b not in good]:
        if not any(block in source.successors for source in good):
            continue
        raised = _only_computed(block, slot)
        if raised is not None:
            if any(is_seen(inst, slot) for each in blocks_behind(block) for inst in each.instructions):
                raise refused(
                    "what is written to arguments before an exception whose arguments are computed",
                    instead="raise it with constant arguments",
                    why="what puts the exception together is left out, and what else is done there would be, too",
                )
            cut[block] = raised
    for block in cut:
        _end_here(block)
    remove_unreachable_blocks(function)
    for block in cut:
        for inst in reversed(block.instructions[:-1]):
            if not inst.users and not is_seen(inst, slot):
                inst.erase()
    return cut


def _only_computed(block: Block, slot: Value) -> Raised | None:
    """The exception with computed arguments to which a block leads, if it is the only one but for lack of memory."""
    stored = _stored_behind(block, slot)
    computed = [raised for raised in map(_computed, stored) if raised is not None]
    constant = [_exception(v) for v in stored if isinstance(v, GlobalVariable)]
    kinds = {raised.kind for raised in (*computed, *constant)} - {MemoryError}
    return computed[0] if len(computed) == 1 and kinds == {computed[0].kind} else None


def _stored_behind(block: Block, slot: Value) -> list[Value]:
    """Values that may be stored as the exception from a block on."""
    stored: dict[Value, None] = {}
    for each in (block, *blocks_behind(block)):
        for inst in each.instructions:
            if isinstance(inst, Store) and inst.operands[1] is slot:
                value = inst.operands[0]
                stored.update(dict.fromkeys(value.operands if isinstance(value, Phi) else [value]))
    return list(stored)


def _computed(value: Value) -> Raised | None:
    """An exception in new memory: Numba stores the pickled exception and the computed arguments there."""
    if isinstance(value, Load):
        return _raised_for(value)
    if not isinstance(value, Call):
        return None
    fields: dict[int, Value] = {}
    for user in value.users:
        if isinstance(user, Store) and user.operands[1] is value:
            fields[0] = user.operands[0]
        offset = constant_offset(user) if isinstance(user, GetElementPtr) else None
        for store in user.users if offset is not None else ():
            if isinstance(store, Store) and store.operands[1] is user:
                fields[offset or 0] = store.operands[0]
    raised = _unpickled(fields.get(0), fields.get(8))
    return Raised(raised.kind, (*map(_shown, raised.arguments),)) if raised is not None else None


def _raised_for(value: Load) -> Raised | None:
    """Exception with computed arguments that a function which only raises has stored for its caller."""
    found = _raising_call(value)
    return _only_computed(found[0].entry, found[1]) if found is not None else None


def _raising_call(value: Load) -> tuple[Function, Parameter, Call] | None:
    """The function that has stored the value that its caller reads in the same block, the store, and the call."""
    block, slot = value.block, value.operands[0]
    assert block is not None
    before = block.instructions[: block.instructions.index(value)]
    call = next((each for each in reversed(before) if isinstance(each, Call) and slot in each.arguments), None)
    callee = call.callee if call is not None else None
    if call is None or not isinstance(callee, Function) or callee.is_declaration or callee is block.function:
        return None
    return callee, callee.params[call.arguments.index(slot)], call


def _move_constants_here(function: Function, good: set[Block]) -> None:
    """Replaces calls of functions that do nothing but raise one constant exception by that exception."""
    for block in [b for b in function.blocks if b not in good]:
        for load in [i for i in block.instructions if isinstance(i, Load) and isinstance(i.type, PointerType)]:
            found = _raising_call(load)
            if found is None:
                continue
            callee, slot, call = found
            stored = _stored_behind(callee.entry, slot)
            takes_integers = all(p is slot or isinstance(p.type, IntType) for p in callee.params)
            if takes_integers and not call.users and len(stored) == 1 and isinstance(stored[0], GlobalVariable):
                replace_uses(load, stored[0])
                load.erase()
                call.erase()


def _shown(argument: Any) -> Any:
    """A constant argument, or `...` for a computed one, for which Numba pickles a placeholder."""
    return argument if argument is None or isinstance(argument, str | bytes | int | float) else ...


def _unpickled(data: Value | None, size: Value | None) -> Raised | None:
    """Exception that Numba pickled: class, arguments, place."""
    text = data.initializer if isinstance(data, GlobalVariable) else None
    if not isinstance(text, ConstantString) or not isinstance(size, ConstantInt):
        return None
    kind, arguments, *_ = pickle.loads(text.data[: size.value])  # written by the compiler, in this process
    return Raised(kind, tuple(arguments or ()))


def _exception(value: Value) -> Raised:
    """An exception with constant arguments."""
    buffer = value.initializer if isinstance(value, GlobalVariable) else None
    raised = _unpickled(*buffer.elements[:2]) if isinstance(buffer, ConstantAggregate) else None
    if raised is not None:
        return raised
    raise refused(
        "an exception whose arguments are computed when it is raised",
        instead="raise it with constant arguments",
        why="the compiled code makes the exception from memory that Python does not see",
    )
