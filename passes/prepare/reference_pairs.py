"""Reference pairs: references that a function takes and drops again while another holds the memory anyway.

Input   the functions of a module in normal form, and how the host counts references.
Output  none; they are rewritten: of an argument's references none is counted, of new memory only the last drop.
Method  forward: how many references the function holds by a name, before each call that counts one. A caller holds its
        arguments while the callee runs; new memory has the reference that it was made with. The name has to be the only
        one: it is neither stored, nor passed on, nor the choice of a phi or select.
Why     a view counts as a reference to its array: a row that a loop takes is two atomic operations, which cost more
        than what is done to a short row, and LLVM may move nothing across them.
Limit   where ways meet that hold different numbers of references, and one is counted after that, all stay.

    call void @take(ptr %argument)
    %x = load double, ptr %row               %x = load double, ptr %row
    call void @drop(ptr %argument)
"""

from __future__ import annotations

from typing import Final

from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.instructions import Call, GetElementPtr, ICmp, Load
from irad.ir.module import Block, Function, Module
from irad.ir.values import Parameter, Value
from irad.passes.convention import ReferenceCounts

_DIFFERENT: Final = -1  # paths reach the block with different counts


def pair_references(module: Module, host: ReferenceCounts) -> None:
    """Rewrites all functions of a module."""
    for function in module.defined_functions():
        _pair_in(function, host)


def _pair_in(function: Function, host: ReferenceCounts) -> None:
    counted = _counted(function, host)
    if not counted:
        return
    cfg = control_flow(function)
    for value, calls in counted.items():
        before = _held_before(value, calls, cfg, host)
        for call, held in before.items():
            # The caller holds an argument throughout, so none of its references need counting; the last drop of new
            # memory frees it, and stays.
            if isinstance(value, Parameter) or call.callee.name == host.takes or held > 1:
                call.erase()


def _counted(function: Function, host: ReferenceCounts) -> dict[Value, list[Call]]:
    """Memory referenced under one name only, and the calls that take and drop the references."""
    found: dict[Value, list[Call]] = {}
    for inst in function.instructions():
        value = inst.arguments[0] if isinstance(inst, Call) and inst.callee.name == host.takes else None
        if value in found or not isinstance(value, Call | Parameter) or not _is_held(value, host):
            continue
        others = [user for user in value.users if not _counts(user, host)]
        if all(isinstance(user, GetElementPtr | ICmp | Load) for user in others):
            found[value] = [user for user in value.users if isinstance(user, Call)]
    return found


def _counts(user: object, host: ReferenceCounts) -> bool:
    return isinstance(user, Call) and user.callee.name in (host.takes, host.drops)


def _is_held(value: Call | Parameter, host: ReferenceCounts) -> bool:
    """True if a value is an argument, or memory that was just made."""
    return isinstance(value, Parameter) or str(value.callee.name).startswith(host.makes)


def _held_before(value: Value, calls: list[Call], cfg: ControlFlow, host: ReferenceCounts) -> dict[Call, int]:
    """Number of references held before each call; empty where that is not known, or there are too few."""
    steps = _by_block([*calls, value] if isinstance(value, Call) else calls)
    first = value.block if isinstance(value, Call) else cfg.function.entry
    assert first is not None
    start, before = {first: 0}, dict[Call, int]()
    pending = [first]
    while pending:
        block = pending.pop()
        held = start[block]
        for call in steps.get(block, ()):
            if call is value:
                held = 1
            # More are dropped than this name holds, so some are held under another one.
            elif held == _DIFFERENT or (held == 0 and call.callee.name == host.drops):
                return {}
            else:
                before[call] = held
                held += 1 if call.callee.name == host.takes else -1
        for following in cfg.successors[block]:
            known = start.get(following)
            if known is None or known not in (held, _DIFFERENT):
                start[following] = held if known is None else _DIFFERENT
                pending.append(following)
    return before


def _by_block(calls: list[Call]) -> dict[Block, list[Call]]:
    """Calls by their blocks, in order."""
    found: dict[Block, list[Call]] = {}
    for call in calls:
        assert call.block is not None
        found.setdefault(call.block, []).append(call)
    for block, several in found.items():
        several.sort(key=block.instructions.index)
    return found
