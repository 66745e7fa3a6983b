"""Updates in place: what is added to an element of an array leaves the element's cotangent as it is.

Input   the analyses of a function, and which of its arrays lanes share.
Output  `Updates`: the stores whose adjoint does not clear the shadow, and the operands to which nothing is added then.
Method  a stored sum whose first summand was loaded from the same address, in the same block, with nothing between the
        two that may write there. The cotangent of that summand is that of the element, which has it already.
Why     clearing a shadow and adding the same number to it again is three accesses of memory, between which others that
        may be of the same element must keep their places: no such loop becomes vectors.
Limit   the sum has no other use, and lanes do not share the array. Not under `save_all` and `strict`, where cotangents
        are added up as the program runs.

    v = load p                                    shadow[p] += v̄         of other uses, if any
    s = fadd v, e                                 ē += s̄
    store s, p                                    s̄ = shadow[p]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irad.ir.instructions import Binary, CallSite, Instruction, Load, Store
from irad.ir.types import FloatType
from irad.ir.values import Value
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.memory.objects import union
from irad.passes.unit import Unit


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates in place of a function.

    Attributes:
        stores: they end one.
        kept: the sums that begin one, and which of their operands was loaded.
    """

    stores: dict[Store, None] = field(default_factory=dict)
    kept: dict[Binary, int] = field(default_factory=dict)


def find_updates(augmented: AugmentedPrimal) -> Updates:
    """Finds all updates of a function; none where they must not be told from other stores."""
    found, unit = Updates(), augmented.unit
    if unit.everything or unit.program.request.strict:
        return found
    partial = union(unit.points_to.mask(array) for array in augmented.windows)  # lanes have partial shadows of these
    for store in unit.function.instructions():
        if isinstance(store, Store) and _may_update(unit, store, partial):
            for total, index in _beginnings(unit, store):
                if not _touches(unit, total.operands[index], store):
                    found.stores[store] = None
                    found.kept[total] = index
                    break
    return found


def _may_update(unit: Unit, store: Store, partial: int) -> bool:
    """Whether a number is stored in memory that has a shadow, the same for all lanes."""
    value, pointer = store.operands
    if not isinstance(value.type, FloatType) or not store.is_plain:
        return False
    return unit.activity.is_active(pointer) and not unit.points_to.mask(pointer) & partial


def _beginnings(unit: Unit, store: Store) -> Iterator[tuple[Binary, int]]:
    """The additions that a stored sum may begin with, and the operand that was loaded from where the sum is stored."""
    active = unit.activity.active
    pending: list[tuple[Value, Instruction]] = [(store.operands[0], store)]
    while pending:
        value, user = pending.pop()
        if not isinstance(value, Binary) or value.opcode not in ("fadd", "fsub") or value.block is not store.block:
            continue
        first, second = value.operands
        if list(value.users) != [user] or value not in active or first is second:
            continue
        for index in (0, 1) if value.opcode == "fadd" else (0,):
            term = value.operands[index]
            if term in active and _is_old_content(term, store):
                yield value, index
            else:
                pending.append((term, value))


def _is_old_content(value: Value, store: Store) -> bool:
    """Whether a value was loaded, before a store in the same block, from where that goes."""
    if not isinstance(value, Load) or not value.is_plain:
        return False
    return value.operands[0] is store.operands[1] and value.block is store.block


def _touches(unit: Unit, load: Value, store: Store) -> bool:
    """Whether anything between a load and a store may write where they go, or is a call that may read there."""
    assert store.block is not None
    instructions = store.block.instructions
    assert isinstance(load, Instruction)
    touched = 0
    for inst in instructions[instructions.index(load) + 1 : instructions.index(store)]:
        access = unit.mod_ref.of(inst)
        touched |= access.writes | access.frees | (access.reads if isinstance(inst, CallSite) else 0)
    return bool(unit.points_to.overlapping(touched) & unit.points_to.mask(store.operands[1]))
