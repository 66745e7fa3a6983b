"""Running extremes: a number that a loop only carries along is loaded again, after the loop, from its origin.

Input   a function in normal form with its analyses.
Output  whether the function has been rewritten; the analyses are out of date then.
Method  Of a largest number so far, every iteration keeps one of two: the one so far, or another that lies in memory.
        The loop then keeps where that lies, too, and after it the number is loaded from there. So it carries no
        cotangent, where else a bit is saved for every iteration, and the cotangent handed back through all of them.
        The number from before the loop goes to a variable of its own, so that it has a place as well.
Limit   the loop does nothing else with the number but compare it; what it writes to the same object goes to other
        elements, or is that number itself, each to an element of its own.

    loop:                                                loop:
      %m = phi double [ %m0, %before ], [ %s, %loop ]      %at = phi ptr [ %slot, %before ], [ %to, %loop ]
      %v = load double, ptr %p                             … the same …
      %c = fcmp ogt double %v, %m                          %to = select i1 %c, ptr %p, ptr %at
      %s = select i1 %c, double %v, double %m            end:
    end:                                                   %to.end = phi ptr [ %to, %loop ]
      %s.end = phi double [ %s, %loop ]                    %s.end = load double, ptr %to.end
"""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import FCmp, Instruction, Load, Phi, Select, Store, accessed, replace_uses
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.types import PTR, FloatType, alignment_of
from irad.ir.values import Value
from irad.passes.memory.mod_ref import ModRef
from irad.passes.subscripts.separation import MOST_WRITES, Separation
from irad.passes.unit import Unit
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class _Extreme:
    """A number that a loop keeps or replaces in every iteration.

    Attributes:
        before: the old extreme, at the header.
        chosen: the new extreme.
        other: the other one.
        access: the load or store that says where the other one lies.
    """

    loop: Loop
    before: Phi
    chosen: Select
    other: Value
    access: Load | Store

    @property
    def place(self) -> Value:
        """Address at which the other value lies."""
        found = accessed(self.access)
        assert found is not None
        return found


def load_extremes(unit: Unit, separation: Separation | None) -> bool:
    """Loads active running extremes from where they lie."""
    found = False
    for loop in unit.loops.loops:
        if loop.children or loop.preheader is None or loop.latch is None:
            continue
        for phi in list(loop.header.phis()):
            extreme = _extreme(unit, loop, phi) if unit.activity.is_active(phi) else None
            if extreme is not None and _is_active(extreme, unit) and _stays(extreme, unit.mod_ref, separation):
                _load_behind(extreme)
                found = True
    return found


def _is_active(extreme: _Extreme, unit: Unit) -> bool:
    """True if the other number carries a derivative, and lies where there is a shadow; not all memory can get one."""
    without_shadow = unit.points_to.mask(extreme.place) & ~unit.activity.shadowed
    return unit.activity.is_active(extreme.other) and not without_shadow


def _extreme(unit: Unit, loop: Loop, phi: Phi) -> _Extreme | None:
    assert loop.latch is not None
    chosen = phi.value_from(loop.latch)
    if not isinstance(chosen, Select) or not isinstance(phi.type, FloatType) or chosen.block not in loop.blocks:
        return None
    others = [value for value in chosen.operands[1:] if value is not phi]
    if len(others) != 1 or not _is_only_compared(phi, chosen, loop) or not _is_only_kept(chosen, phi, loop):
        return None
    access = _access(others[0], chosen, loop, unit.dominators)
    return None if access is None else _Extreme(loop, phi, chosen, others[0], access)


def _is_only_compared(phi: Phi, chosen: Select, loop: Loop) -> bool:
    return all(user is chosen or isinstance(user, FCmp) or _is_outside(user, loop) for user in phi.users)


def _is_only_kept(chosen: Select, phi: Phi, loop: Loop) -> bool:
    return all(user is phi or _is_outside(user, loop) for user in chosen.users)


def _is_outside(user: Instruction, loop: Loop) -> bool:
    """True if a value leaves a loop there; in normal form only phis of the exits use values computed in a loop."""
    return user.block not in loop.blocks


def _access(other: Value, chosen: Select, loop: Loop, dominators: DominatorTree) -> Load | Store | None:
    """The load of a number, or a store of it that has run when the choice is made."""
    if isinstance(other, Load):
        return other if other.is_plain and other.block in loop.blocks else None
    if not isinstance(other, Instruction):
        return None
    for user in other.users:
        if not isinstance(user, Store) or user.block not in loop.blocks:
            continue
        if user.is_plain and user.operands[0] is other and dominators.value_dominates(user, chosen):
            return user
    return None


def _stays(extreme: _Extreme, mod_ref: ModRef, separation: Separation | None) -> bool:
    """True if the number is still there when the loop has ended."""
    points_to, access = mod_ref.points_to, extreme.access
    touched = points_to.mask(extreme.place)
    # Memory of unknown origin, or that other threads write to, may change without a store in the loop.
    if not touched or points_to.is_shared(touched):
        return False
    writes = mod_ref.changing(extreme.loop.order, points_to.overlapping(touched))
    if not writes:
        return True
    if separation is None or len(writes) > MOST_WRITES:
        return False
    return all(
        isinstance(write, Store)
        and (
            # A store of the number itself must not overwrite what an earlier iteration has put there.
            separation.is_apart_across(extreme.loop, access, access)
            if write is access
            else separation.is_apart_in(extreme.loop, access, write)
        )
        for write in writes
    )


def _load_behind(extreme: _Extreme) -> None:
    loop, before, chosen = extreme.loop, extreme.before, extreme.chosen
    assert loop.preheader is not None
    assert loop.latch is not None
    function = loop.header.function
    assert function is not None
    slot = Builder.at_start(function.entry).alloca(before.type)
    Builder.before(loop.preheader.instructions[-1]).store(before.value_from(loop.preheader), slot)
    place = Builder.at_start(loop.header).phi(PTR, [(slot, loop.preheader)])
    condition, *arms = chosen.operands
    first, second = (extreme.place if value is extreme.other else place for value in arms)
    following = Builder.after(chosen).select(condition, first, second)
    place.add_incoming(following, loop.latch)
    places: dict[Value, Value] = {before: place, chosen: following}
    if isinstance(extreme.access, Load):
        places[extreme.access] = extreme.place
    for block in {outside: None for _, outside in loop.exits}:
        _load_in(block, places)


def _load_in(block: Block, places: dict[Value, Value]) -> None:
    """Loads the values of an exit's phis from their place in memory."""
    for phi in list(block.phis()):
        if all(value in places for value in phi.operands):
            pairs = [(places[value], source) for value, source in phi.incoming()]
            place = Builder.at_start(block).phi(PTR, pairs)
            build = Builder.at_start(block)
            build.metadata = phi.metadata
            replace_uses(phi, build.load(phi.type, place, align=alignment_of(phi.type)))
            phi.erase()
