"""Whether arguments were changed between a forward sweep and its pullback, and whether that matters.

irad's own pullbacks do not mind: what they need they have saved. A rule that a user wrote may keep an argument's memory
on its tape. So the arrays are copied after the forward sweep. If one has changed, and a rule takes part, the pullback
runs twice, with the old content and with the new: it has to give the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irad.errors import ChangedBufferError, ChangedBufferWarning, SourceLocation

_DEEPEST = 16


@dataclass(frozen=True)
class _Sealed:
    """An array of the caller's, and what it held."""

    name: str
    array: np.ndarray[Any, Any]
    content: np.ndarray[Any, Any]

    @property
    def has_changed(self) -> bool:
        """Whether it holds other bytes now."""
        return self.array.tobytes() != self.content.tobytes()

    def put_back(self) -> np.ndarray[Any, Any]:
        """Gives it its content of then; returns that of now."""
        now = self.array.copy()
        self.array[...] = self.content
        return now


class Seal:
    """The arrays that a pullback's caller might change.

    Args:
        function: name of the primal.
        location: where it is defined.
        arguments: of the forward sweep, with their names.
        value: that it returned.
        has_rules: whether rules that users wrote take part in the pullback.
    """

    def __init__(
        self, function: str, location: SourceLocation, arguments: Sequence[tuple[str, Any]], value: Any, has_rules: bool
    ) -> None:
        self._function, self._location, self._has_rules = function, location, has_rules
        named = [(f"the argument {name}", item) for name, item in arguments]
        named += [("the returned value", value)] if has_rules else []
        self._sealed = [
            _Sealed(f"{name}{path}", array, array.copy()) for name, item in named for path, array in _arrays(item, "")
        ]

    def call(self, pullback: Callable[[], Any]) -> Any:
        """Runs the pullback.

        Raises:
            ChangedBufferError: what it gives depends on a change.
        """
        changed = [each for each in self._sealed if each.has_changed]
        if not changed:
            return pullback()
        names = " and ".join(dict.fromkeys(each.name for each in changed))
        writable = [each for each in changed if each.array.flags.writeable]
        if self._has_rules:
            now = [each.put_back() for each in writable]
            try:
                expected = pullback()
            finally:
                for each, content in zip(writable, now, strict=True):
                    each.array[...] = content
            found = pullback()
            if not _are_same(expected, found):
                raise ChangedBufferError(
                    f"{names} was changed between irad.vjp and the pullback, which gives another derivative because of "
                    f"that: a rule that {self._function} uses keeps the memory instead of a copy",
                    "(a) copy in the augmented primal of the rule what config.overwritten says may change or "
                    "(b) leave the array as it is until the pullback has run",
                    "the pullback is that of the content which the forward sweep saw",
                    self._location,
                )
        else:
            found = pullback()
        if any(each.name != "the returned value" for each in changed):
            warnings.warn(
                f"{names} was changed between irad.vjp and the pullback, which is that of {self._function} at the old "
                "content",
                ChangedBufferWarning,
                stacklevel=3,
            )
        return found


def _arrays(value: Any, path: str, depth: int = _DEEPEST) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays in an object, with the way to them."""
    match value:
        case np.ndarray():
            yield path, value
        case str() | bytes() | bool() | int() | float() | complex() | None:
            pass
        case _ if depth == 0:
            pass
        case Mapping():
            for key in list(value):
                yield from _arrays(value[key], f"{path}[{key!r}]", depth - 1)
        case Sequence():
            for index, item in enumerate(value):
                yield from _arrays(item, f"{path}[{index}]", depth - 1)
        case _:
            for name in getattr(getattr(value, "_numba_type_", None), "struct", ()):
                yield from _arrays(getattr(value, name, None), f"{path}.{name}", depth - 1)


def _are_same(one: Any, other: Any) -> bool:
    """Whether two gradients are equal to the bit."""
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_are_same, one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_are_same(one[key], other[key]) for key in one)
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype.hasobject:
        return bool(one == other)
    return left.tobytes() == right.tobytes()
