"""Gives addresses that LLVM keeps as integers in local variables the type of pointers back.

Input   a function.
Output  the function, rewritten in place.
Method  LLVM splits a block of local memory into variables, and makes an `i64` of one that is cleared and then holds a
        pointer. Phis and selects that choose between addresses and zeros choose between pointers; a variable in which
        nothing else is stored holds pointers.
Limit   an integer that anything is computed with, or that comes out of memory of another kind, stays what it is.

    %slot = alloca i64                          %slot = alloca ptr
    %a = ptrtoint ptr %p to i64
    store i64 %a, ptr %slot                     store ptr %p, ptr %slot
    %c = phi i64 [ %a, %x ], [ 0, %y ]          %c = phi ptr [ %p, %x ], [ null, %y ]
    %q = inttoptr i64 %c to ptr
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Cast, Freeze, Instruction, Load, Phi, Select, Store, replace_uses
from irad.ir.module import Function
from irad.ir.values import ConstantInt, ConstantNull, Poison, Undef, Value


def retype_addresses(function: Function) -> None:
    """Rewrites a function."""
    pointers = _Pointers()
    for inst in list(function.instructions()):
        if isinstance(inst, Alloca) and inst.allocated_type is types.I64:
            pointers.retype(inst)
    for inst in list(function.instructions()):
        if isinstance(inst, Cast) and inst.opcode == "inttoptr" and pointers.is_address(inst.operands[0]):
            pointer = pointers.of(inst.operands[0])
            if isinstance(pointer, Instruction) and pointer.name is None:
                pointer.name = inst.name
            replace_uses(inst, pointer)
            inst.erase()


@dataclass(eq=False, slots=True)
class _Pointers:
    """The pointers whose addresses integers are."""

    made: dict[Value, Value] = field(default_factory=dict)
    slots: set[Value] = field(default_factory=set)

    def retype(self, slot: Alloca) -> None:
        """Makes a variable hold pointers, if it holds nothing but addresses."""
        stores = [user for user in slot.users if isinstance(user, Store) and user.operands[1] is slot]
        values = [store.operands[0] for store in stores]
        if all(map(_is_zero, values)) or not all(map(self.is_address, values)):
            return
        slot.allocated_type = types.PTR
        self.slots.add(slot)
        for store, value in zip(stores, values, strict=True):
            store.set_operand(0, self.of(value))

    def is_address(self, value: Value) -> bool:
        """Whether an integer is nothing but a choice between addresses and zeros."""
        seen: set[Value] = set()
        pending = [value]
        while pending:
            one = pending.pop()
            if one in seen or _is_zero(one) or isinstance(one, Undef | Poison):
                continue
            seen.add(one)
            match one:
                case Cast(opcode="ptrtoint", operands=[pointer]) if pointer.type is types.PTR:
                    pass
                case Load(operands=[place]) if place in self.slots:
                    pass
                case Phi() | Freeze():
                    pending += one.operands
                case Select():
                    pending += one.operands[1:]
                case _:
                    return False
        return value.type is types.I64

    def of(self, value: Value) -> Value:
        """The pointer for such an integer; it stands beside it."""
        if not isinstance(value, Instruction):
            return ConstantNull(types.PTR) if _is_zero(value) else Undef(types.PTR)
        if value not in self.made:
            found = self._new(value)
            self.made.setdefault(value, found)  # a cycle through a phi has made it already
        return self.made[value]

    def _new(self, value: Instruction) -> Value:
        match value:
            case Cast(operands=[pointer]):
                return pointer
            case Load(operands=[place]):
                return Builder.before(value).load(types.PTR, place, value.align)
            case Freeze(operands=[number]):
                return Builder.before(value).freeze(self.of(number))
            case Select(operands=[condition, one, other]):
                return Builder.before(value).select(condition, self.of(one), self.of(other))
            case Phi():
                phi = self.made[value] = Builder.before(value).phi(types.PTR)
                for number, block in value.incoming():
                    phi.add_incoming(self.of(number), block)
                return phi
            case _:
                raise AssertionError(f"{value} is not an address")


def _is_zero(value: Value) -> bool:
    return isinstance(value, ConstantInt) and value.value == 0
