"""Overlap tests: whether two ranges of memory overlap is known where one of them was just allocated.

Input   the functions of a module, inlined and simplified.
Output  whether any was rewritten: the test is false, and what was done if it were true is gone.
Method  a test compares the end of each range with the start of the other. One range lies in memory that a call
        allocated, the other at an address that was computed before the call. Memory that is in use when more is
        allocated is apart from it; memory that is not in use must not be accessed later.
Why     `out[3:6] = e` copies `e` to a scratch array first if the two overlap. So each slice that is assigned asks where
        arrays lie, which a local variable does not say, and its elements may come from either place.
Limit   ranges are taken to lie within their arrays, as Numba computes them.

    %a = ptrtoint ptr %source to i64              %source computed before the call that allocated %data
    %b = ptrtoint ptr %data to i64
    %c = icmp ugt i64 %a.end, %b                  (%a.end = add i64 %a, %length)
    %d = icmp ugt i64 %b.end, %a
    %overlap = and i1 %c, %d                      false
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, remove_unreachable_blocks
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Binary, Cast, CondBr, GetElementPtr, ICmp, Instruction, replace_uses
from irad.ir.module import Function, Module
from irad.ir.values import Value, const_int
from irad.passes.convention import ReferenceCounts
from irad.passes.prepare.local_arrays import allocated_by

_FALSE: Final = const_int(types.I1, 0)


def drop_overlap_tests(module: Module, host: ReferenceCounts) -> bool:
    """Rewrites all functions of a module; whether there was anything to do."""
    changed = [_drop_in(function, host) for function in module.defined_functions()]
    return any(changed)


def _drop_in(function: Function, host: ReferenceCounts) -> bool:
    tests = [(inst, ranges) for inst in function.instructions() if (ranges := _ranges(inst)) is not None]
    if not tests:
        return False
    remove_unreachable_blocks(function)
    tree = dominators(control_flow(function))
    known = [test for test, (one, other) in tests if test.block is not None and _are_apart(one, other, tree, host)]
    for test in known:
        _decide(test)
    if known:
        remove_unreachable_blocks(function)
    return bool(known)


def _ranges(test: Instruction) -> tuple[Value, Value] | None:
    """The arrays of two ranges whose ends and starts are compared; None if it is not that which is asked."""
    if not (isinstance(test, Binary) and test.opcode == "and" and test.type is types.I1):
        return None
    first, second = map(_compared, test.operands)
    if first is None or second is None or first[0] is first[1] or first != (second[1], second[0]):
        return None
    return first


def _compared(test: Value) -> tuple[Value, Value] | None:
    """The arrays whose addresses are compared, that with the greater address first."""
    match test:
        case ICmp(predicate="ugt", operands=[greater, lesser]) | ICmp(predicate="ult", operands=[lesser, greater]):
            one, other = _array_of(greater), _array_of(lesser)
            return None if one is None or other is None else (one, other)
        case _:
            return None


def _array_of(address: Value) -> Value | None:
    """The pointer that a number is computed from; None where there are more or none."""
    match address:
        case Cast(opcode="ptrtoint", operands=[pointer]):
            while isinstance(pointer, GetElementPtr):
                pointer = pointer.operands[0]
            return pointer
        case Binary(opcode="add", operands=[a, b]):
            one, other = _array_of(a), _array_of(b)
            return one if other is None else other if one is None else None
        case _:
            return None


def _are_apart(one: Value, other: Value, tree: DominatorTree, host: ReferenceCounts) -> bool:
    """True if one pointer was known before the memory of the other was allocated."""
    return any(
        (call := allocated_by(new, host)) is not None and tree.value_dominates(old, call)
        for new, old in ((one, other), (other, one))
    )


def _decide(test: Instruction) -> None:
    """Makes a test false, and drops what was computed for it and where it led."""
    for branch in list(test.users):
        if isinstance(branch, CondBr) and branch.targets[0] is not branch.targets[1]:
            _always_second(branch)
    replace_uses(test, _FALSE)
    pending: list[Value] = [test]  # a value comes again with each of its users that goes
    while pending:
        value = pending.pop()
        if isinstance(value, Binary | ICmp | Cast) and value.block is not None and not value.users:
            pending += value.operands
            value.erase()


def _always_second(branch: CondBr) -> None:
    """Makes a branch go to its second target whatever it asks."""
    source, (left, taken) = branch.block, branch.targets
    assert source is not None
    for phi in left.phis():
        pairs = [(value, block) for value, block in phi.incoming() if block is not source]
        phi.set_operands([value for value, _ in pairs])
        phi.blocks = [block for _, block in pairs]
    build = Builder.before(branch)
    build.metadata = {"dbg": branch.metadata["dbg"]} if "dbg" in branch.metadata else {}
    build.br(taken)
    branch.erase()
