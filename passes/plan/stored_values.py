"""Stored values: numbers that the program itself keeps in memory until the reverse sweep, which loads them from there.

Input   a forward sweep, what is overwritten before the reverse sweep.
Output  `StoredPlace`s, by the values of the forward sweep that lie there.
Method  a value that is stored in the block that computes it lies where the store has put it, if nothing is written
        there later. A value that a loop passes on to its next iteration is there what the iteration before has stored,
        one step back. In the first iteration that has to be where the value which the loop begins with was stored, or
        loaded from. LLVM makes such phis of loads of what the iteration before has stored.
        The address is recomputed from what is known before the value: nothing would ever be computed from itself.
Limit   values that take longer to recompute than to load: results of calls, divisions, phis. Constant steps.

    loop:
      %s = phi double [ %s0, %before ], [ %t, %loop ]      8 bytes in front of %p; %s0 was loaded from %a
      %i = phi i64 [ 1, %before ], [ %next, %loop ]
      %t = call double @tanh(double %s)                    at %p
      %p = getelementptr double, ptr %a, i64 %i
      store double %t, ptr %p
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from irad.ir.instructions import Binary, CallSite, Cast, GetElementPtr, Instruction, Load, Phi, Store, accessed
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.trip_count import affine_variables, is_invariant
from irad.ir.types import FloatType, IntType
from irad.ir.values import Value
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.subscripts.forms import Count, Form, Forms, added
from irad.passes.unit import Unit
from irad.records import dataclass

_SLOW: Final = ("fdiv", "frem")
_OF_ADDRESSES: Final = ("add", "sub", "mul", "shl", "or")
_LONGEST: Final = 8  # operations, one after the other


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """Place of a value in memory.

    Attributes:
        store: of the primal, that has put it there.
        behind: number of bytes after the store's address of the same iteration.
    """

    store: Store
    behind: int = 0

    @property
    def pointer(self) -> Value:
        """Address of the primal store."""
        return self.store.operands[1]


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Looks for the values of one function that memory still holds in the reverse sweep."""

    unit: Unit

    @staticmethod
    def of(augmented: AugmentedPrimal) -> Mapping[Value, StoredPlace]:
        """The places of the values of a forward sweep that have one."""
        unit = augmented.unit
        if unit.everything or unit.program.is_read:
            return {}
        found = StoredValues(unit)
        places = {**dict(found.where_computed()), **dict(found.handed_on())}
        return {augmented.value(value): place for value, place in places.items()}

    def where_computed(self) -> Iterator[tuple[Value, StoredPlace]]:
        """Values that are stored in the block that computes them."""
        for block in self.unit.cfg.order:
            for store in block.instructions:
                if isinstance(store, Store):
                    value, pointer = store.operands
                    if not isinstance(value, Instruction) or value.block is not block:
                        continue
                    if self._is_kept(value, store) and _follows(pointer, self._is_before(value)):
                        yield value, StoredPlace(store)

    def _is_before(self, value: Instruction) -> Callable[[Value], bool]:
        return lambda other: other is not value and self.unit.dominators.value_dominates(other, value)

    def handed_on(self) -> Iterator[tuple[Value, StoredPlace]]:
        """Values that the iteration before has stored."""
        separation = self.unit.effects.separation
        if separation is None:
            return
        for loop in self.unit.loops.loops:
            if loop.latch is None:
                continue
            for phi in loop.header.phis():
                following = phi.value_from(loop.latch)
                for store in following.users if isinstance(following, Instruction) else ():
                    if isinstance(store, Store) and store.operands[0] is following and self._is_kept(phi, store):
                        step = self._step(loop, phi, store, separation.forms)
                        if step:
                            yield phi, StoredPlace(store, -step)

    def _is_kept(self, value: Instruction, store: Store) -> bool:
        """True if recomputing a value takes longer than loading it, and its stored copy stays unchanged."""
        is_number = isinstance(value.type, FloatType) or (isinstance(value.type, IntType) and value.type.bits >= 8)
        takes_long = isinstance(value, CallSite | Phi) or (isinstance(value, Binary) and value.opcode in _SLOW)
        return is_number and takes_long and self._stays(store)

    def _stays(self, access: Load | Store) -> bool:
        pointer = accessed(access)
        return pointer is not None and access.is_plain and not self.unit.effects.is_overwritten(pointer, access)

    def _step(self, loop: Loop, phi: Phi, store: Store, forms: Forms) -> int:
        """By how many bytes a store moves on, if it always finds a phi one step back; else zero."""
        form, count = forms.address(store.operands[1]), Count(loop)
        if form is None or loop.latch is None or loop.preheader is None or store.block not in loop.blocks:
            return 0
        if any(count in term and term != (count,) for term in form.offset):
            return 0
        step = form.offset.get((count,), 0)
        always = self.unit.dominators.value_dominates(store, loop.latch.terminator)
        counted = affine_variables(loop)
        if not always or not _follows(store.operands[1], lambda each: is_invariant(each, loop) or each in counted):
            return 0
        start = Form(form.root, added(form.offset, {(count,): -step, (): -step}))
        return step if self._lies_at(phi.value_from(loop.preheader), start, loop.preheader, forms) else 0

    def _lies_at(self, value: Value, place: Form, block: Block, forms: Forms) -> bool:
        """True if a value was loaded from a place, or stored there, when a block ends."""
        return any(
            value is (access.operands[0] if isinstance(access, Store) else access)
            and forms.address(access.operands[-1]) == place
            and self.unit.dominators.value_dominates(access, block.terminator)
            and self._stays(access)
            for access in self.unit.function.instructions()
            if isinstance(access, Load | Store)
        )


def _follows(address: Value, is_known: Callable[[Value], bool], longest: int = _LONGEST) -> bool:
    """True if an address is computed in a few steps from known values, without memory."""
    if is_known(address):
        return True
    if not longest or not isinstance(address, Binary | Cast | GetElementPtr):
        return False
    if isinstance(address, Binary) and address.opcode not in _OF_ADDRESSES:
        return False
    return all(_follows(operand, is_known, longest - 1) for operand in address.operands)
