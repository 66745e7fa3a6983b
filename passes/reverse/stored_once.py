"""Cotangents of elements that are overwritten in place are stored once.

Input   a reverse sweep in which the plan has been carried out.
Output  the same function.
Method  The adjoint of a store takes the cotangent of the element and clears it; if what was stored had been computed
        from the same element, an addition to it follows in the same block. What that adds is stored in place of the
        zero. Additions in between that may be to the same element come after it: sums may be reordered. So nothing
        but additions may touch their elements from there on.
Why     LLVM sees that only where it can tell the other shadows in between apart. `gather` leaves loops alone that
        clear an element and add to it.
Limit   one block; not with `strict`, which keeps the order of sums.

    d = load p;  store 0, p;  v = load p;  s = fadd v, a;  store s, p      →      d = load p;  store a, p
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Binary, Instruction, Load, Store
from irad.ir.values import ConstantFloat, Value
from irad.passes.reverse.increments import is_arithmetic, may_touch
from irad.passes.reverse.sweep import Sweep
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class Sum:
    """An addition to an element of a shadow."""

    load: Load
    total: Binary
    store: Store

    @property
    def amount(self) -> Value:
        """The number that is added."""
        first, second = self.total.operands
        return second if first is self.load else first

    @property
    def parts(self) -> tuple[Instruction, ...]:
        """The instructions, in order."""
        return self.load, self.total, self.store


def store_once(sweep: Sweep) -> None:
    """Merges a store to an element of a shadow with the addition that the same block makes to it afterwards."""
    for block in sweep.function.blocks:
        stores = [i for i in block.instructions if isinstance(i, Store) and not isinstance(i.operands[1], Alloca)]
        sums = {part: each for each in map(sum_of, stores) if each for part in each.parts}
        for store in stores:
            # A sum is merged with what was stored before it, not with what is added after it; it may be gone by now.
            if store.block is not None and store.is_plain and store not in sums:
                _merge(sweep, store, sums)


def sum_of(store: Store) -> Sum | None:
    """The addition that ends in a store; None if the stored value is anything else, or is needed elsewhere."""
    total, pointer = store.operands
    if not isinstance(total, Binary) or total.opcode != "fadd" or "reassoc" not in total.flags or not store.is_plain:
        return None
    if total.block is not store.block or list(total.users) != [store]:
        return None
    first, second = total.operands
    for load in (first, second) if first is not second else ():
        if isinstance(load, Load) and load.operands[0] is pointer and load.is_plain and list(load.users) == [total]:
            return Sum(load, total, store) if load.block is store.block else None
    return None


def _merge(sweep: Sweep, store: Store, sums: dict[Instruction, Sum]) -> None:
    """Merges a store with the additions to the same element after it."""
    while (found := _addition_after(sweep, store, sums)) is not None:
        addition, between = found
        block = addition.store.block
        assert block is not None
        build = Builder.after(addition.store)
        for each in between:
            for part in each.parts:
                block.instructions.remove(part)
                build.insert(part)
        value, build = store.operands[0], Builder.before(addition.total)
        is_clear = isinstance(value, ConstantFloat) and value.value == 0.0
        merged = addition.amount if is_clear else build.fadd(value, addition.amount, sweep.sum_flags)
        addition.store.set_operand(0, merged)
        for part in (store, addition.total, addition.load):
            part.erase()
        for part in addition.parts:
            del sums[part]
        store = addition.store


def _addition_after(sweep: Sweep, store: Store, sums: dict[Instruction, Sum]) -> tuple[Sum, Sequence[Sum]] | None:
    """The next addition to the element that a store wrote, and those between the two that may be to the same."""
    between: dict[Sum, None] = {}
    for inst in _behind(store):
        if isinstance(inst, Load | Store) and isinstance(inst.operands[-1], Alloca):
            continue  # the stack holds cotangents of numbers, no shadows
        found = sums.get(inst)
        if found is not None and inst is found.store and found.store.operands[1] is store.operands[1]:
            # What clears the element may be an integer, which cannot be added to.
            return (found, [each for each in between if each is not found]) if _is_alike(store, found) else None
        if not isinstance(inst, Load | Store):
            if not is_arithmetic(sweep, inst):
                return None
        elif any(may_touch(sweep, each, inst) for each in (store, *(each.store for each in between))):
            if found is None:
                return None
            between[found] = None
    return None


def _is_alike(store: Store, addition: Sum) -> bool:
    return store.operands[0].type is addition.total.type


def _behind(inst: Instruction) -> Iterator[Instruction]:
    assert inst.block is not None
    instructions = inst.block.instructions
    return iter(instructions[instructions.index(inst) + 1 :])
