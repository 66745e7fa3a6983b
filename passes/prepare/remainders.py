"""Remainders of loop counters: `(i - 1) % n` and `(i + 1) % n`, i from 0 to n, become selects.

Input   the functions of a module, inlined and simplified.
Output  whether any was rewritten: the neighbour of the first index is the last one, that of the last the first.
Method  the dividend is the variable of a loop, and one more or less, and the divisor or not; the loop runs while the
        variable is below the divisor, which a branch before it found to be positive.
Why     divisions took a third of the time of a periodic stencil's derivative: the reverse sweep does them again. LLVM
        knows this of `i + 1` alone.
Limit   neighbours at a distance of one: for others the divisor would have to be as large. Sums of indices are taken
        not to overflow.

    %r = srem i64 %before, %n                  (%before = add i64 %i, -1)
    %x = xor i64 %r, %n
    %c = icmp slt i64 %x, 0                    %first = icmp eq i64 %i, 0
    %s = select i1 %c, i64 %n, i64 0           %last = add nsw i64 %n, -1
    %a = add i64 %s, %r                        %a = select i1 %first, i64 %last, i64 %before
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow, remove_unreachable_blocks
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.folding import signed
from irad.ir.instructions import Binary, CondBr, Freeze, ICmp, Instruction, Phi, Select, replace_uses
from irad.ir.loops import Loop, LoopNest, loop_nest
from irad.ir.module import Block, Function, Module
from irad.ir.trip_count import trip_count
from irad.ir.values import ConstantInt, Value, const_int
from irad.records import dataclass

_ZERO: Final = const_int(types.I64, 0)


def choose_remainders(module: Module) -> bool:
    """Rewrites all functions of a module; returns whether anything changed."""
    changed = [_choose_in(function) for function in module.defined_functions()]
    return any(changed)


class _Dividend(NamedTuple):
    """``variable + offset``, and the divisor as well if ``wraps``."""

    variable: Phi
    offset: int
    wraps: bool


def _choose_in(function: Function) -> bool:
    found = [inst for inst in function.instructions() if isinstance(inst, Binary) and _is_division(inst)]
    if not found:
        return False
    remove_unreachable_blocks(function)
    cfg = control_flow(function)
    tree = dominators(cfg)
    counts = _Counts(cfg, tree, loop_nest(cfg, tree))
    changed = [_choose(inst, counts) for inst in found if inst.block is not None]
    return any(changed)


def _is_division(inst: Binary) -> bool:
    return inst.opcode in ("srem", "urem") and inst.type is types.I64


def _choose(remainder: Binary, counts: _Counts) -> bool:
    """Replaces a remainder where the dividend allows it."""
    value, divisor = remainder.operands
    dividend = None if isinstance(divisor, ConstantInt) else _dividend(value, divisor)
    if dividend is None or abs(dividend.offset) != 1 or not counts.is_below(dividend.variable, divisor, remainder):
        return False
    floored = _floored(remainder, divisor) or remainder
    if dividend.offset == -1 and not dividend.wraps and floored is remainder:
        return False  # a truncated remainder of -1 is -1, not n - 1
    build = Builder.before(floored)
    build.metadata = {"dbg": floored.metadata["dbg"]} if "dbg" in floored.metadata else {}
    variable, neighbour = dividend.variable, build.add(dividend.variable, const_int(types.I64, dividend.offset))
    if dividend.offset == 1:
        chosen = build.select(build.icmp("eq", neighbour, divisor), _ZERO, neighbour)
    else:
        last = build.add(divisor, const_int(types.I64, -1), ("nsw",))
        chosen = build.select(build.icmp("eq", variable, _ZERO), last, neighbour)
    # The chosen neighbour is never negative, so that what Numba asks of each index is decided here.
    for test in list(_tests_of_sign(floored)):
        replace_uses(test, const_int(types.I1, test.predicate == "sgt"))
    replace_uses(floored, chosen)
    return True


def _dividend(value: Value, divisor: Value) -> _Dividend | None:
    """Dividend of a remainder, as the parts of a sum."""
    variable: Phi | None = None
    offset, divisors, pending = 0, 0, [value]
    while pending:
        match pending.pop():
            case each if each is divisor:
                divisors += 1
            case ConstantInt() as constant:
                offset += signed(constant)
            case Binary(opcode="add", operands=operands):
                pending += operands
            case Phi() as phi if variable is None:
                variable = phi
            case _:
                return None
    return None if variable is None or divisors > 1 else _Dividend(variable, offset, divisors == 1)


def _floored(remainder: Binary, divisor: Value) -> Binary | None:
    """The remainder with the sign of the divisor, as in Python, if this one has no other use.

    Of a dividend that is not negative it is the remainder itself.
    """
    if remainder.opcode == "urem":
        return None
    signs = [each for each in remainder.users if isinstance(each, Binary) and each.opcode == "xor"]
    sums = [each for each in remainder.users if isinstance(each, Binary) and each.opcode == "add"]
    if len(signs) != 1 or len(sums) != 1 or len(remainder.users) != 2 or divisor not in signs[0].operands:
        return None
    correction = next((each for each in sums[0].operands if each is not remainder), None)
    match correction:
        case Select(
            operands=[ICmp(predicate="slt", operands=[sign, ConstantInt(value=0)]), more, ConstantInt(value=0)]
        ):
            return sums[0] if sign is signs[0] and more is divisor else None
        case _:
            return None


def _tests_of_sign(value: Instruction) -> Iterator[ICmp]:
    """Comparisons that test whether a value, or its frozen copy, is negative."""
    for user in value.users:
        match user:
            case Freeze():
                yield from _tests_of_sign(user)
            case ICmp(predicate="slt", operands=[_, ConstantInt(value=0)]):
                yield user
            case ICmp(predicate="sgt", operands=[_, ConstantInt() as bound]) if signed(bound) == -1:
                yield user
            case _:
                pass


@dataclass(frozen=True, eq=False, slots=True)
class _Counts:
    """Counters of the loops of a function."""

    cfg: ControlFlow
    dominators: DominatorTree
    loops: LoopNest

    def is_below(self, variable: Phi, bound: Value, place: Instruction) -> bool:
        """True if a variable is at least zero and less than a bound at some place."""
        assert variable.block is not None
        assert place.block is not None
        loop = self.loops.loop_of(variable.block)
        if loop is None or loop.header is not variable.block or not loop.contains(place.block):
            return False
        count = trip_count(loop, self.cfg, self.dominators)
        return (
            count is not None
            and count.variable is variable
            and count.bound is bound
            and isinstance(count.start, ConstantInt)
            and count.start.value == 0
            and (count.step, count.compares_next) == (1, True)
            and count.predicate in ("ne", "slt", "ult")
            and self._is_positive(bound, loop)
        )

    def _is_positive(self, value: Value, loop: Loop) -> bool:
        """True if branches before a loop have found that a value is positive."""
        block: Block | None = loop.preheader
        is_not_zero = is_not_negative = False
        while block is not None and not (is_not_zero and is_not_negative):
            before = self.cfg.predecessors[block]
            if len(before) == 1 and isinstance(before[0].terminator, CondBr):
                branch = before[0].terminator
                # A branch whose two ways are one block says nothing about its condition.
                if branch.targets[0] is not branch.targets[1]:
                    least = _least(branch, value, block)
                    is_not_zero |= least == 1 or _says_other_than_zero(branch, value, block)
                    is_not_negative |= least is not None
            block = self.dominators.immediate[block]
        return is_not_zero and is_not_negative


def _least(branch: CondBr, value: Value, target: Block) -> int | None:
    """0 or 1 where a branch says that a value is at least that."""
    match branch.operands[0], branch.targets[0] is target:
        case ICmp(predicate="slt", operands=[compared, ConstantInt() as bound]), False if compared is value:
            least = signed(bound)
        case ICmp(predicate="sgt", operands=[compared, ConstantInt() as bound]), True if compared is value:
            least = signed(bound) + 1
        case _:
            return None
    return min(least, 1) if least >= 0 else None


def _says_other_than_zero(branch: CondBr, value: Value, target: Block) -> bool:
    match branch.operands[0], branch.targets[0] is target:
        case ICmp(predicate="eq" | "ne" as predicate, operands=[compared, ConstantInt(value=0)]), is_true:
            return compared is value and is_true == (predicate == "ne")
        case _:
            return False
