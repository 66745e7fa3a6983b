"""Memory that the tape of one call took, by value, and the error if that is more than allowed."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Final

from irad.driver import TapePlace
from irad.errors import SourceLocation, TapeLimitError
from irad.records import dataclass

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class TapeUse:
    """Bytes of one value on the tape of one call.

    Attributes:
        value: its name in the program; "" for links, padding, shadows of local variables, and what rules keep.
        location: where the source computes it.
        storage: "frame", "slab", "record", or "kept" for shadows of what the function allocates, and what rules keep.
        bytes: in all.
        slots: number of times it was saved.
    """

    value: str
    location: SourceLocation | None
    storage: str
    bytes: int
    slots: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Size of the tape of one call: number of units of each place."""

    places: tuple[TapePlace, ...]
    units: tuple[int, ...]

    def uses(self) -> tuple[TapeUse, ...]:
        """By value, the largest first."""
        return uses_of(self.places, self.units)


def uses_of(places: Sequence[TapePlace], units: Sequence[int]) -> tuple[TapeUse, ...]:
    """Bytes of each value, the largest first; the last place is the caller's frame, of which there is one."""
    found = []
    for place, count in zip(places, units, strict=True):
        for slot in place.slots:
            if slot.bytes * count:
                slots = 1 if slot.storage == "kept" else count
                found.append(TapeUse(slot.value, slot.location, slot.storage, slot.bytes * count, slots))
    return tuple(sorted(found, key=lambda use: -use.bytes))


_WHY_A_TAPE: Final = "the reverse sweep needs values of the forward sweep, and loops save some in every iteration"


ALLOW_MORE: Final = "allow more with irad.Options(max_tape_bytes=…)"
_LOOPS: Final = {
    "slab": "irad.checkpoint_loop(step, n, snapshots)",
    "record": "irad.checkpoint_while(condition, step, snapshots)",
}


def by_line(uses: Sequence[TapeUse]) -> dict[tuple[str, int], int]:
    """Bytes by file and line, the largest first."""
    totals: dict[tuple[str, int], int] = {}
    for use in uses:
        if use.location is not None:
            key = use.location.file, use.location.line
            totals[key] = totals.get(key, 0) + use.bytes
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def limit_error(
    function: str, defined: SourceLocation, limit: int, total: int, uses: Sequence[TapeUse]
) -> TapeLimitError:
    """The error for a tape that would take more than it may: ``total`` bytes so far."""
    problem = f"the tape of {function} takes at least {shown(total)}, but max_tape_bytes is {shown(limit)}"
    remedies = [
        ALLOW_MORE,
        f"differentiate the input in parts; irad.tape_report({function}, …) lists all lines",
    ]
    largest = _largest(uses)
    if largest is not None and largest.storage in _LOOPS:
        remedies.append(f"{_LOOPS[largest.storage]}, which stores a few states of a loop instead of its tape")
    return largest_named(problem, remedies, defined, uses)


def _largest(uses: Sequence[TapeUse]) -> TapeUse | None:
    """The largest use of the line that saves most."""
    key = next(iter(by_line(uses)), None)
    found = (use for use in uses if use.location is not None and (use.location.file, use.location.line) == key)
    return next(found, None)


def largest_named(
    problem: str, remedies: Sequence[str], defined: SourceLocation, uses: Sequence[TapeUse]
) -> TapeLimitError:
    """The error at the line that saves most.

    Args:
        problem: the excess, in words.
        remedies: the alternatives.
        defined: the function, where no line is known.
        uses: of the tape, the largest first.
    """
    largest = _largest(uses)
    if largest is None or largest.location is None:
        return TapeLimitError(problem, _remedy(remedies), _WHY_A_TAPE, defined)
    place = largest.location
    problem += f"; the line that saves most needs {shown(by_line(uses)[place.file, place.line])}"
    source = linecache.getline(place.file, place.line).strip() or None
    return TapeLimitError(problem, _remedy(remedies), _WHY_A_TAPE, place, source)


def _remedy(remedies: Sequence[str]) -> str:
    return " or ".join(f"({letter}) {each}" for letter, each in zip("abc", remedies, strict=False))


def shown(count: int) -> str:
    """A number of bytes for people: exact, and rounded where that is long."""
    rounded, unit = float(count), 0
    while rounded >= 1024 and unit < len(_UNITS) - 1:
        rounded, unit = rounded / 1024, unit + 1
    return f"{count} bytes" if unit == 0 else f"{count} bytes ({rounded:.1f} {_UNITS[unit]})"
