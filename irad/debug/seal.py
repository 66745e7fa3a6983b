"""Changes of arguments between a forward sweep and its pullback, and whether they matter.

irad's own pullbacks do not mind: what they need they have saved. A rule that a user wrote may keep an argument's memory
on its tape. So arrays are copied after the forward sweep. If one has changed, and a rule takes part, the pullback
runs twice, with the old content and with the new: it has to give the same. The mode of `irad.split` may promise that
arguments stay as they are; then a change is an error.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from irad.data.copies import copied, same_bits
from irad.data.structure import pieces
from irad.errors import ChangedBufferError, ChangedBufferWarning, SourceLocation
from irad.records import dataclass

_NUMBERS: Final = int | float | complex | str | bytes | np.generic | None
_NAMED: Final = 3  # changes that are named

Array: TypeAlias = NDArray[np.generic]
_Cotangent = TypeVar("_Cotangent")
_Gradients = TypeVar("_Gradients")


@dataclass(frozen=True)
class _Sealed:
    """A caller's array with a snapshot of its content."""

    name: str
    array: Array
    content: Array

    @property
    def has_changed(self) -> bool:
        """True if it holds other bytes now."""
        return self.array.tobytes() != self.content.tobytes()


class Seal:
    """Values that a pullback's caller might change: arrays, and what lists and objects hold.

    Args:
        function: name of the primal.
        location: where it is defined.
        arguments: of the forward sweep, with their names.
        value: that it returned.
        has_rules: whether rules that users wrote take part in the pullback.
        promised: of `irad.split` the names of the arguments that stay as they are; the others may change, without a
            warning. None: of `irad.vjp`.
    """

    def __init__(
        self,
        function: str,
        location: SourceLocation,
        arguments: Sequence[tuple[str, object]],
        value: object,
        has_rules: bool,
        promised: Sequence[str] | None = None,
    ) -> None:
        self._function, self._location, self._has_rules = function, location, has_rules
        self._promised = promised
        self._between = "irad.vjp and the pullback" if promised is None else "the two sweeps"
        self._arguments = [(f"the argument {name}", item) for name, item in arguments]
        self._held = dict(self._holdings())
        arrays = [pair for name, item in self._arguments for pair in _arrays(item, name)]
        self._sealed = [_Sealed(name, array, array.copy()) for name, array in arrays]
        returned = _arrays(value, "the returned value") if has_rules else ()
        self._returned = [_Sealed(name, array, array.copy()) for name, array in returned]

    def _holdings(self) -> Iterator[tuple[str, object]]:
        for name, item in self._arguments:
            yield from _holdings(item, name)

    def call(self, pullback: Callable[[_Cotangent], _Gradients], cotangent: _Cotangent) -> _Gradients:
        """Runs the pullback.

        Raises:
            ChangedBufferError: its result depends on a change, or an argument changed that was declared unmodified.
        """
        changed = [each for each in self._sealed if each.has_changed]
        names = [each.name for each in changed] + self._other_holdings()
        self._check_promise(names)
        returned = [each for each in self._returned if each.has_changed]
        if self._has_rules and (changed or returned):
            found = self._compared(pullback, cotangent, [*changed, *returned])
        else:
            found = pullback(cotangent)
        if names and self._promised is None:
            warnings.warn(
                f"{_listed(names)} changed between irad.vjp and the pullback, but the pullback of {self._function} "
                "still belongs to the old contents",
                ChangedBufferWarning,
                stacklevel=4,
            )
        return found

    def _check_promise(self, changed: Sequence[str]) -> None:
        """Raises where an argument changed that the mode does not name."""
        promised = tuple(f"the argument {name}" for name in self._promised or ())
        broken = [each for each in changed if _whole_name(each) in promised]
        if broken:
            raise ChangedBufferError(
                f"{_listed(broken)} changed between the two sweeps of {self._function}, although modified in the mode "
                "of irad.split does not name it",
                "(a) name the position of the argument in modified or (b) leave the argument unchanged until the "
                "reverse sweep has run",
                "the reverse sweep rereads arguments that are declared unmodified",
                self._location,
            )

    def _other_holdings(self) -> list[str]:
        """Places at which lists, dictionaries and objects hold other numbers and arrays now."""
        now = dict(self._holdings())
        return [name for name in {**self._held, **now} if (name in now, now.get(name)) != (True, self._held.get(name))]

    def _compared(
        self, pullback: Callable[[_Cotangent], _Gradients], cotangent: _Cotangent, changed: Sequence[_Sealed]
    ) -> _Gradients:
        """Gradients of the pullback with the old content and with the present one."""
        places = [(view, each) for each in changed if (view := _writable(each.array)) is not None]
        now = [view.copy() for view, _ in places]  # all, before the first is put back: they may overlap
        given = copied(cotangent)  # it may lie in what is put back
        for view, each in places:
            view[...] = each.content
        try:
            expected = pullback(given)
        finally:
            for (view, _), content in zip(places, now, strict=True):
                view[...] = content
        found = pullback(cotangent)
        if not same_bits(expected, found):
            raise ChangedBufferError(
                f"{_listed([each.name for each in changed])} changed between {self._between}, and that "
                f"changes the derivative: a rule that {self._function} uses keeps the memory instead of a copy",
                "(a) in the augmented primal of the rule, copy what config.overwritten marks or "
                "(b) leave the array unchanged until the pullback has run",
                "the pullback belongs to the contents that the forward sweep saw",
                self._location,
            )
        return found


def _whole_name(way: str) -> str:
    """The argument in the way to a part of it."""
    return re.split(r"[.\[]", way, maxsplit=1)[0]


def _listed(names: Sequence[str]) -> str:
    """A few names with their verb."""
    known = list(dict.fromkeys(names))
    left = len(known) - _NAMED
    listed = " and ".join(known[:_NAMED]) + (f" and {left} more" if left > 0 else "")
    return f"{listed} {'was' if len(known) == 1 else 'were'}"


def _arrays(value: object, name: str) -> Iterator[tuple[str, Array]]:
    """The arrays in an object, with the way to them."""
    return ((way, each) for way, each in pieces(value, name) if isinstance(each, np.ndarray))


def _holdings(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Contents of an object apart from those of arrays: its numbers, and where its arrays are."""
    for way, each in pieces(value, name):
        if isinstance(each, np.ndarray):
            yield way, (each.ctypes.data, each.shape, each.strides)
        elif isinstance(each, _NUMBERS):
            yield way, repr(each)


def _writable(array: Array) -> Array | None:
    """Writable view of an array; None if it is read-only."""
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:
        return None
    return view
