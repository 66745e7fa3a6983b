"""Loads of a loop that find what another load finds a few iterations later: one array of the tape serves for both.

Input   the subscripts of the loads and stores of a function.
Output  `Neighbour`s, by loads of the forward sweep.
Method  in each iteration the addresses of both advance by the same number of bytes, of which their distance is a
        multiple. Nothing is written there in between: a store of the loop that advances with them gets there before the
        first load or after the second, any other one goes to other memory.
        The array of the second load has an element more for each iteration between the two, and the first load stores
        its value ahead. Where the second runs, it stores the same value again.
Limit   innermost loops that are counted; none in kernels, nor in code that is differentiated again.

    for j in range(n): v[j] = a * v[j + 1] + b * v[j]        v[j + 1] is the v[j] of the next iteration
    forward  tape[j + 1] = v[j + 1]; tape[j] = v[j]          n + 1 numbers, not 2 n
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from irad.ir.instructions import Instruction, Load, Store, accessed
from irad.ir.loops import Loop
from irad.ir.types import size_of
from irad.ir.values import Value
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.subscripts.forms import Count, Form, Forms
from irad.passes.subscripts.separation import Separation
from irad.passes.unit import Unit
from irad.records import dataclass

_FARTHEST: Final = 16


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A load that finds the same number later.

    Attributes:
        load: of the forward sweep.
        ahead: number of iterations.
    """

    load: Value
    ahead: int


def neighbours_of(
    augmented: AugmentedPrimal, is_counted: Callable[[Loop], bool], is_wanted: Callable[[Value], bool]
) -> Mapping[Value, Neighbour]:
    """The loads of a forward sweep whose values the tape need not have twice.

    Args:
        augmented: the forward sweep.
        is_counted: whether the number of iterations of a loop is known before it starts.
        is_wanted: whether a load of the forward sweep would have to be saved.
    """
    unit, request = augmented.unit, augmented.program.request
    separation = unit.effects.separation
    if unit.everything or separation is None or request.is_primal or request.host.is_shared:
        return {}
    found = dict[Value, Neighbour]()
    for loop in unit.loops.loops:
        loads = [
            inst
            for block in loop.order
            for inst in block.instructions
            if isinstance(inst, Load)
            and inst.is_plain
            and inst in augmented.values
            and is_wanted(augmented.value(inst))
        ]
        if not loop.children and len(loads) > 1 and is_counted(loop):
            for load, other, ahead in _Reads(unit, separation, loop).pairs(loads):
                found[augmented.value(load)] = Neighbour(augmented.value(other), ahead)
    return found


@dataclass(frozen=True, slots=True)
class _Track:
    """The addresses of an access in a loop.

    Attributes:
        form: where it begins, but for the constant part.
        step: bytes that it advances in each iteration.
        start: the constant part.
    """

    form: tuple[Value, frozenset[tuple[object, int]]]
    step: int
    start: int


@dataclass(frozen=True, slots=True)
class _Reads:
    """The reads of one loop."""

    unit: Unit
    separation: Separation
    loop: Loop

    def pairs(self, loads: Sequence[Load]) -> Iterator[tuple[Load, Load, int]]:
        """Loads, each with one that finds the same in a later iteration, and the number of iterations between them."""
        tracks = {load: track for load in loads if (track := self._track(load)) is not None}
        last: list[Load] = []
        # What reads an element last comes first: an array of the tape for each of these serves for all others.
        for load in sorted(tracks, key=lambda each: tracks[each].start // tracks[each].step):
            for other in last:
                ahead = self._ahead(load, other, tracks)
                if ahead is not None:
                    yield load, other, ahead
                    break
            else:
                last.append(load)

    def _ahead(self, load: Load, other: Load, tracks: Mapping[Load, _Track]) -> int | None:
        """After how many iterations a load finds what another one has found; None if it does not."""
        mine, its = tracks[load], tracks[other]
        if load.type is not other.type or (mine.form, mine.step) != (its.form, its.step):
            return None
        ahead, rest = divmod(mine.start - its.start, mine.step)
        if rest or not 0 < ahead <= _FARTHEST:
            return None
        return ahead if self._stays(load, other, mine, ahead) else None

    def _stays(self, load: Load, other: Load, track: _Track, ahead: int) -> bool:
        """True if nothing is written to what a load reads until another one reads it."""
        mod_ref, points_to = self.unit.mod_ref, self.unit.mod_ref.points_to
        objects = points_to.mask(load.operands[0])
        if not objects or points_to.is_shared(objects):
            return False
        writes = mod_ref.changing(self.loop.order, points_to.overlapping(objects))
        return all(self._leaves(write, load, other, track, ahead) for write in writes)

    def _leaves(self, write: Instruction, load: Load, other: Load, track: _Track, ahead: int) -> bool:
        if not isinstance(write, Store) or not write.is_plain:
            return False
        if self.separation.is_apart_in(self.loop, load, write):
            return True
        its = self._track(write)
        if its is None or (its.form, its.step) != (track.form, track.step):
            return False
        size, written = size_of(load.type), size_of(write.operands[0].type)
        after, rest = divmod(track.start - its.start, track.step)
        if rest:
            # Parts of a record: between the places where a step of the other leads.
            distance = (track.start - its.start) % abs(track.step)
            return written <= distance <= abs(track.step) - size
        # Where a step is shorter than a number, stores of other iterations overlap a part of it.
        if size != written or size > abs(track.step):
            return False
        if after == 0:
            return not self.separation.may_follow(load, write, self.loop.header)
        if after == ahead:
            return not self.separation.may_follow(write, other, self.loop.header)
        return not 0 < after < ahead

    def _track(self, access: Load | Store) -> _Track | None:
        """The addresses of an access, if they depend on nothing else that the loop changes."""
        pointer = accessed(access)
        form = self.separation.forms.address(pointer) if pointer is not None else None
        if form is None or not self._is_fixed(form, self.separation.forms):
            return None
        count = (Count(self.loop),)
        step, start = form.offset.get(count, 0), form.offset.get((), 0)
        rest = frozenset((term, factor) for term, factor in form.offset.items() if term not in (count, ()))
        return _Track((form.root, rest), step, start) if step else None

    def _is_fixed(self, form: Form, forms: Forms) -> bool:
        """True if an address is a multiple of the loop's count from something that the loop does not change."""
        count = Count(self.loop)
        atoms = [atom for term in form.offset for atom in term if term != (count,)]
        around = [forms.home(each) for each in (form.root, *atoms)]
        return not any(home is not None and self.loop.contains(home) for home in around)
