"""The names of loop variables, from the `for` of the source that each loop is."""

from __future__ import annotations

from collections.abc import Callable

from irad.decompile.control.loop_forms import LoopForm
from irad.decompile.naming.names import FreshNames, SourceLoop, source_names
from irad.errors import SourceLocation
from irad.ir.instructions import Instruction
from irad.ir.loops import Loop

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
