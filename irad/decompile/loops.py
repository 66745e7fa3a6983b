"""The form of each loop of the primal: a `for` over a range, or a `while`.

Input   a captured pair.
Output  `LoopForm`s, by primal loop. In both sweeps the loop variable is the same, and saved values are named by it.
Method  a loop whose latch compares a variable with constant step with an invariant bound is a `for` over a range; the
        exits that leave it earlier are breaks. Rotated loops run at least once: where no condition in front of the loop
        says that the range is not empty, it is written as `max(bound, start + 1)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irad.decompile.names import FreshNames, SourceLoop, source_names
from irad.errors import SourceLocation
from irad.ir.instructions import Binary, CondBr, ICmp, Instruction, Phi
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.trip_count import TripCount, affine_variables, trip_count
from irad.ir.types import I64, IntType
from irad.ir.values import ConstantInt, Parameter, Value
from irad.passes.generated import GeneratedPair


@dataclass(eq=False, slots=True)
class LoopVariable(Value):
    """The variable of a `for` loop: the index itself, or the number of the iteration."""


@dataclass(frozen=True, slots=True)
class Index:
    """The variable of a `for` that runs through other numbers than 0, 1, 2, …: a phi, its first value, its step."""

    phi: Phi
    start: Value
    step: int


@dataclass(eq=False, slots=True)
class LoopForm:
    """A loop.

    Attributes:
        loop: loop of the primal.
        twin: twin of the forward sweep.
        variable: the counter: the value of ``index``, or without one the number of the iteration.
        count: of the exit at the latch; None for a `while`.
        index: the user's index, which begins at a number, a parameter or near an outer index.
    """

    loop: Loop
    twin: Loop
    variable: LoopVariable
    count: TripCount | None
    index: Index | None

    @property
    def is_for(self) -> bool:
        """True if the forward sweep has a `for`."""
        return self.count is not None


def find_loop_forms(captured: GeneratedPair) -> dict[Loop, LoopForm]:
    """The form of each loop."""
    loops = captured.loops
    forms: dict[Loop, LoopForm] = {}
    blocks = set(captured.augmented.function.blocks)
    for loop, twin in loops.twins.items():  # outer loops first
        if twin.header not in blocks:
            continue  # it put an exception together
        count = _count(captured, twin)
        outer = {form.index.phi for form in forms.values() if form.index is not None}
        index = _index(twin, count, outer) if count is not None else None
        forms[loop] = LoopForm(loop, twin, LoopVariable(I64, "i"), count, index)
    return forms


def _count(captured: GeneratedPair, twin: Loop) -> TripCount | None:
    latch, cfg = twin.latch, captured.loops.cfg
    if latch is None or twin.preheader is None or not isinstance(latch.terminator, CondBr):
        return None
    found = trip_count(twin, cfg, captured.loops.dominators, latch)
    if found is None or found.predicate == "eq":
        return None
    if found.predicate[0] == "u" and not _counts_down(twin, found):
        return None
    return found if found.predicate == "ne" or (found.predicate[1] == "l") == (found.step > 0) else None


def _counts_down(twin: Loop, count: TripCount) -> bool:
    """True if a comparison without signs is one with signs in each program that ends: the rest goes down to a number.

    Begun at a negative number the loop would run through half of all numbers.
    """
    bound = count.bound
    return count.step < 0 and isinstance(bound, ConstantInt) and bound.value >= 0 and len(twin.exits) == 1


def _index(twin: Loop, count: TripCount, outer: set[Phi]) -> Index | None:
    """The variable that the user counts with: the compared one, if anything else uses it, or another like it."""
    compared = Index(count.variable, count.start, count.step)
    others = [
        Index(phi, variable.start, variable.step)
        for phi, variable in affine_variables(twin).items()
        if isinstance(variable.step, int) and abs(variable.step) == 1 and abs(count.step) == 1
    ]
    for index in (compared, *others):
        if isinstance(index.phi.type, IntType) and _is_simple(index.start, outer) and _is_used(twin, index.phi):
            return index
    return compared if count.step == 1 and _is_simple(count.start, outer) else None


def _is_used(twin: Loop, phi: Phi) -> bool:
    """True if anything but the end of the loop depends on a variable."""
    assert twin.latch is not None
    advance = phi.value_from(twin.latch)
    users = {*phi.users, *(advance.users if isinstance(advance, Instruction) else ())} - {phi, advance}
    return any(not (isinstance(user, ICmp) and user is twin.latch.terminator.operands[0]) for user in users)


def _is_simple(start: Value, outer: set[Phi]) -> bool:
    """True if both sweeps can name the first index."""
    match start:
        case ConstantInt() | Parameter():
            return True
        case Phi():
            return start in outer
        case Binary(opcode="add" | "sub", operands=[a, ConstantInt()]):
            return _is_simple(a, outer)
        case _:
            return False


def exit_of(form: LoopForm) -> Block:
    """Block in which the loop ends when its range is exhausted."""
    latch = form.twin.latch
    assert latch is not None
    return next(target for target in latch.terminator.targets if target not in form.twin.blocks)


# The names of loop variables, from the `for` of the source that each loop is.

PlaceOf = Callable[[Instruction], SourceLocation | None]


def name_loops(forms: dict[Loop, LoopForm], place_of: PlaceOf, namer: FreshNames) -> None:
    """Names the variable of each loop: as in the source, but apart from those of the loops around."""
    sources = _source_loops(forms, place_of)
    used: dict[Loop, str] = {}
    for loop, form in forms.items():
        around = set()
        outer = loop.parent
        while outer is not None:
            around.add(used[outer])
            outer = outer.parent
        source = sources[loop]
        wanted = (source.variable if source is not None else None) if form.is_for else "step"
        candidates = [wanted] if wanted and wanted.strip("_") else []
        candidates += [n for n in ("i", "j", "k", "l", "m") if n not in namer.taken or n in used.values()]
        name = next((n for n in candidates if n not in around), None)
        if name is None or (name in namer.taken and name not in used.values()):
            name = namer.new(name or "i")
        namer.taken.add(name)
        used[loop] = form.variable.name = name


def _source_loops(forms: dict[Loop, LoopForm], place_of: PlaceOf) -> dict[Loop, SourceLoop | None]:
    """The `for` of the source that each loop is: one around those of the loops in it."""
    found: dict[Loop, SourceLoop | None] = {}
    for loop, form in reversed(forms.items()):  # inner loops first
        inner = {f for other, f in found.items() if f is not None and loop.contains(other.header)}
        hint = _hint(form, place_of)
        if hint is not None and (hint in inner or not all(hint.contains(f.first) for f in inner)):
            file_loops = source_names(_file(form, place_of)).loops.values()
            wider = [f for f in file_loops if f not in inner and all(f.contains(i.first) for i in (*inner, hint))]
            hint = min(wider, key=lambda f: f.last - f.first, default=None)
        found[loop] = hint
    return found


def _hint(form: LoopForm, place_of: PlaceOf) -> SourceLoop | None:
    """The `for` whose head an instruction of the loop belongs to."""
    first = [form.index.phi] if form.index is not None else []
    for inst in (*first, *_latch(form), *form.twin.header.instructions):
        place = place_of(inst)
        found = source_names(place.file).loops.get(place.line) if place is not None else None
        if found is not None:
            return found
    return None


def _file(form: LoopForm, place_of: PlaceOf) -> str:
    places = map(place_of, [*_latch(form), *form.twin.header.instructions])
    return next((place.file for place in places if place is not None), "")


def _latch(form: LoopForm) -> list[Instruction]:
    return list(form.twin.latch.instructions) if form.twin.latch is not None else []
