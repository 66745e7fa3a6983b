"""What a reversed loop of one block carries from one iteration to the next: cotangents, in slots of the stack.

Input   the blocks of the loop, in order.
Output  `Carried`: whether an iteration needs what the one before has computed, whether their order matters.
Method  instructions are followed once: what each slot holds at the start of an iteration and at its end. -0.0, with
        which a slot is cleared, adds nothing.

    s = load %slot;  s' = s + a;  store s', %slot        a sum, in any order
    s = load %slot;  a = s * y;   store a, %slot         a recurrence
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from irad.ir import instructions as ir
from irad.ir.instructions import Instruction, Load, Store
from irad.ir.module import Block
from irad.ir.values import ConstantFloat, Value


@dataclass(eq=False, slots=True)
class Carried:
    """The slots of one loop.

    Attributes:
        blocks: of the loop; the first is its body, the others lead from its end to its start.
        counter: the slot of the iteration's number.
        first: the load of each slot that finds what the iteration before has left.
        now: what is in each slot at the end.
        known: what loads and slots are, where that is clear.
    """

    blocks: Sequence[Block]
    counter: ir.Alloca
    first: dict[ir.Alloca, Load] = field(default_factory=dict)
    now: dict[ir.Alloca, Value] = field(default_factory=dict)
    known: dict[Value, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for block in self.blocks:
            for inst in block.instructions:
                self._follow(inst)
        self.now.pop(self.counter, None)

    def _follow(self, inst: Instruction) -> None:
        match inst:
            case Load(operands=[ir.Alloca() as slot]) if slot in self.now:
                self.known[inst] = self.now[slot]
            case Load(operands=[ir.Alloca() as slot]):
                self.first.setdefault(slot, inst)
                self.now[slot] = inst
            case Store(operands=[value, ir.Alloca() as slot]):
                self.now[slot] = value
            case _:
                pass

    def need_order(self) -> bool:
        """Whether iterations cannot run in another order: they do more than sums, or a sum is used before its end."""
        cleared = [slot for slot, value in self.now.items() if _is_nothing(value) and self._is_clear_outside(slot)]
        self.known.update((self.first[slot], self.now[slot]) for slot in cleared if slot in self.first)
        kept = self._kept()
        varying = {load for slot, load in self.first.items() if slot in self.now and slot not in {*kept, *cleared}}
        for slot in self.now.keys() - kept - set(cleared):
            start, rest = self.first.get(slot), self._rest_of_sum(slot, varying)
            if rest is not start and (start is not None or self._is_made(rest)):
                return True
        body, *behind = ([each for each in block.instructions if isinstance(each, Store)] for block in self.blocks)
        if any(each.operands[1] not in {self.counter, *kept, *cleared} for stores in behind for each in stores):
            return True
        if any(map(self._leaves_what_varies, {*kept, *cleared})):
            return True
        in_memory = [store for store in body if not isinstance(store.operands[1], ir.Alloca)]
        return any(self._depends(each, varying) for store in in_memory for each in store.operands)

    def _leaves_what_varies(self, slot: ir.Alloca) -> bool:
        """Whether something else reads a slot in which the body of the last iteration has left a value of its own."""
        if all(user.block in self.blocks for user in slot.users if isinstance(user, Load)):
            return False
        left = Carried(self.blocks[:1], self.counter).now.get(slot)
        return left is not None and not _is_nothing(left) and self._resolved(left) is not self.first.get(slot)

    def _is_clear_outside(self, slot: ir.Alloca) -> bool:
        """Whether what is before and behind the loop leaves nothing in a slot."""
        stores = (user for user in slot.users if isinstance(user, Store) and user.block not in self.blocks)
        return all(_is_nothing(store.operands[0]) for store in stores)

    def have_recurrence(self) -> bool:
        """Whether a slot is neither passed on, nor a sum, nor made anew."""
        carried = dict(self.now)
        for slot in [slot for slot, value in carried.items() if _is_nothing(value)]:
            if slot in self.first:
                self.known[self.first[slot]] = carried[slot]
            del carried[slot]
        kept = self._kept() & carried.keys()
        varying = {load for slot, load in self.first.items() if slot in carried and slot not in kept}
        return any(not self._is_sum_or_new(slot, varying) for slot in carried if slot not in kept)

    def _is_made(self, value: Value | None) -> bool:
        """Whether the loop computes a value."""
        return isinstance(value, Instruction) and value.block in self.blocks

    def is_passed_on(self, value: Value) -> bool:
        """Whether a value is what a slot holds in all iterations."""
        return self._resolved(value) in {self.first[slot] for slot in self._kept()}

    def _kept(self) -> set[ir.Alloca]:
        """The slots that are passed on as they are."""
        return {slot for slot, value in self.now.items() if self._resolved(value) is self.first.get(slot)}

    def _is_sum_or_new(self, slot: ir.Alloca, varying: set[Load]) -> bool:
        rest = self._rest_of_sum(slot, varying)
        return rest is not None and (rest is self.first.get(slot) or not self._depends(rest, varying))

    def _rest_of_sum(self, slot: ir.Alloca, varying: set[Load]) -> Value | None:
        """What a slot gets, less what is added to its start; None where that depends on what varies."""
        start, value = self.first.get(slot), self._resolved(self.now[slot])
        while isinstance(value, ir.Binary) and value.opcode == "fadd" and start is not None:
            a, b = map(self._resolved, value.operands)
            if self._depends(a, {start}):
                a, b = b, a
            if self._depends(a, varying):
                return None
            value = b
        return value

    def _resolved(self, value: Value) -> Value:
        """The value without what adds nothing."""
        while True:
            value = self.known.get(value, value)
            match value:
                case ir.Binary(opcode="fadd", operands=[a, b]) if _is_nothing(self.known.get(a, a)):
                    value = b
                case ir.Binary(opcode="fadd", operands=[a, b]) if _is_nothing(self.known.get(b, b)):
                    value = a
                case _:
                    return value

    def _depends(self, value: Value, on: set[Load]) -> bool:
        pending, seen = [value], set[Value]()
        while pending:
            each = self._resolved(pending.pop())
            if each in on:
                return True
            if each not in seen and self._is_made(each):
                assert isinstance(each, Instruction)
                seen.add(each)
                pending += each.operands
        return False


def _is_nothing(value: Value) -> bool:
    return isinstance(value, ConstantFloat) and value.value == 0.0 and math.copysign(1.0, value.value) < 0
