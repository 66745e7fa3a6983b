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
    elsewhere = union(unit.points_to.mask(array) for array in augmented.windows)  # lanes have partial shadows of these
    if unit.everything or unit.program.request.strict:
        return found
    for block in unit.function.blocks:
        position: dict[Value, int] = {inst: number for number, inst in enumerate(block.instructions)}
        for store in block.instructions:
            if not isinstance(store, Store) or not isinstance(store.operands[0].type, FloatType):
                continue
            if unit.points_to.mask(store.operands[1]) & elsewhere:
                continue
            for total, index in _beginnings(store):
                if not _is_update(unit, total, index, store):
                    continue
                between = block.instructions[position[total.operands[index]] + 1 : position[store]]
                if not _touches(unit, between, store.operands[1]):
                    found.stores[store] = None
                    found.kept[total] = index
                    break
    return found


def _beginnings(store: Store) -> Iterator[tuple[Binary, int]]:
    """The additions that a stored sum may begin with, and the operand that it began from."""
    pending: list[tuple[Value, Instruction]] = [(store.operands[0], store)]
    while pending:
        value, user = pending.pop()
        if not isinstance(value, Binary) or list(value.users) != [user] or value.block is not store.block:
            continue
        first, second = value.operands
        if value.opcode not in ("fadd", "fsub") or first is second:
            continue
        for index in (0, 1) if value.opcode == "fadd" else (0,):
            if isinstance(value.operands[index], Load):
                yield value, index
            else:
                pending.append((value.operands[index], value))


def _is_update(unit: Unit, total: Binary, index: int, store: Store) -> bool:
    """Whether a sum begins with what was loaded from where it is stored, and all that is between has cotangents."""
    load, pointer = total.operands[index], store.operands[1]
    if not isinstance(load, Load) or load.operands[0] is not pointer or load.block is not store.block:
        return False
    if not load.is_plain or store.volatile or store.ordering is not None or not unit.activity.is_active(pointer):
        return False
    sums: list[Instruction] = [load]
    inst: Instruction = total
    while inst is not store:
        sums.append(inst)
        (inst,) = inst.users
    return all(each in unit.activity.active for each in sums)


def _touches(unit: Unit, instructions: list[Instruction], pointer: Value) -> bool:
    """Whether any of some instructions may write where a pointer points, or is a call that may read there."""
    points_to, touched = unit.mod_ref.points_to, 0
    for inst in instructions:
        access = unit.mod_ref.of(inst)
        touched |= access.writes | access.frees | (access.reads if isinstance(inst, CallSite) else 0)
    return bool(points_to.overlapping(touched) & points_to.mask(pointer))
