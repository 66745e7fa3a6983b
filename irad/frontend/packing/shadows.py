"""Memory for derivatives that is a structure of Python: what compiled code cannot write to, its numbers, Python does.

In compiled code a structure is a tuple, which has no place for numbers. So the derivatives with respect to them come
back, and are stored in the dictionary, list or object that holds them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np

from irad.data.recursive.kinds import Container, kind_of
from irad.data.structure import rebuilt
from irad.errors import HERE, SignatureError
from irad.frontend.packing.packed import is_structure
from irad.message import with_article
from irad.records import dataclass

_NUMBERS = (float, complex, np.inexact)
_REAL = (int, float, np.floating)


@dataclass(slots=True)
class _Number:
    """A number in a shadow: what holds it, under which key, the kind of that; and what it is the shadow of."""

    holder: Any
    key: Any
    kind: Container
    value: Any
    primal: Any

    def add(self, derivative: Any) -> None:
        assert self.kind.store is not None
        self.value = type(self.primal)(self.value + derivative)
        self.kind.store(self.holder, self.key, self.value)


@dataclass
class Shadows:
    """The shadows of the structures among the arguments of one call, checked before it runs.

    Attributes:
        takes_arrays: whether an array of one element may be given for a number, which compiled code writes to.
        numbers: those in the shadow of each argument, in order, by its position; of each direction.
    """

    takes_arrays: bool = False
    numbers: dict[int, list[list[_Number]]] = field(default_factory=dict)
    _primals: set[int] = field(default_factory=set)
    _owners: dict[int, tuple[int, int]] = field(default_factory=dict)
    _known: dict[tuple[int, Any], _Number] = field(default_factory=dict)

    def open(self, position: int, name: str, value: Any, shadows: tuple[Any, ...]) -> bool:
        """Takes the shadows of an argument, one for each direction; whether there are numbers in them.

        Raises:
            SignatureError: one is not like the argument, cannot be overwritten, or is shared with something else.
        """
        found = [list(self._walk(value, shadow, name, lane)) for lane, shadow in enumerate(shadows)]
        self.numbers[position] = found
        return any(found)

    def check(self) -> None:
        """Checks that no shadow is an argument.

        Raises:
            SignatureError: one is.
        """
        if not self._primals.isdisjoint(self._owners):
            raise SignatureError(
                "a shadow holds an object that an argument holds, too",
                "pass a separate shadow, such as irad.data.make_zero returns",
                "the derivative would be stored in the argument",
                HERE,
            )

    def add(self, position: int, value: Any, found: tuple[Any, ...]) -> None:
        """Adds the derivatives with respect to the numbers of an argument, as a call returned them, to its shadows."""
        for numbers, derivative in zip(self.numbers[position], found, strict=True):
            for number, each in zip(numbers, _numbers_like(value, derivative), strict=True):
                number.add(each)

    def overwrite(self, position: int, arrays: list[Any]) -> None:
        """Stores the derivatives with respect to the numbers of an argument, one in each array."""
        [numbers] = self.numbers[position]
        for number in numbers:
            number.value = 0
        for number, array in zip(numbers, arrays, strict=True):
            number.add(array.item())

    def _walk(self, value: Any, shadow: Any, name: str, lane: int) -> Iterator[_Number]:
        kind = _kind_if_packed(value)
        if kind is None:
            _check_array(value, shadow, name)
            return
        mine = dict(kind.members(value))
        its = dict(kind.members(shadow)) if type(shadow) is type(value) else {}
        if type(shadow) is not type(value) or its.keys() != mine.keys():
            raise _unlike(name, f"is {_shown(shadow)}, the argument {_shown(value)}")
        self._claim(value, shadow, name, lane)
        may_store = kind.store is not None and kind.is_mutable(shadow)
        for key, item in mine.items():
            other = its[key]
            if not isinstance(item, _NUMBERS):
                if not _are_arrays_alike(item, other):
                    yield from self._walk(item, other, name + kind.way(key), lane)
            elif self.takes_arrays and isinstance(other, np.ndarray):
                continue
            elif not may_store:
                raise SignatureError(
                    f"the number {name}{kind.way(key)} has a shadow that cannot be overwritten",
                    "(a) put it in a dictionary, a list, an array or an object that is not frozen or (b) irad.grad or "
                    "irad.MixedDuplicated, which return its derivative",
                    f"it is held by {with_article(type(value).__name__)}",
                    HERE,
                )
            elif not isinstance(other, _REAL) and not isinstance(other, type(item)):
                raise _unlike(name + kind.way(key), f"is {_shown(other)}, the argument {_shown(item)}")
            else:
                number = _Number(shadow, key, kind, other, item)
                # A shadow that is reached in several ways has one number, to which all its derivatives are added.
                yield self._known.setdefault((id(shadow), key), number)

    def _claim(self, value: Any, shadow: Any, name: str, lane: int) -> None:
        # Tuples are values, not places: that two parts are one tuple means nothing.
        if isinstance(value, tuple):
            return
        self._primals.add(id(value))
        owner = lane, id(value)
        if self._owners.setdefault(id(shadow), owner) != owner:
            raise SignatureError(
                f"the shadow of {name} is also the shadow of another part",
                "pass a shadow that shares objects where the argument does and nowhere else, such as "
                "irad.data.make_zero returns",
                "one derivative would be added to the other",
                HERE,
            )


def _are_arrays_alike(value: Any, shadow: Any) -> bool:
    if type(value) is not np.ndarray or type(shadow) is not np.ndarray:
        return False
    return value.dtype == shadow.dtype and value.shape == shadow.shape


def _kind_if_packed(value: Any) -> Container | None:
    """The kind of a part of a structure for which compiled code has a tuple; None for what is passed as it is."""
    kind = kind_of(value)
    if isinstance(kind, Container) and (isinstance(value, tuple | list) or is_structure(value)):
        return kind
    return None


def _numbers_like(value: Any, derivative: Any) -> Iterator[Any]:
    """The entries of a derivative that belong to the numbers of a structure."""
    kind = _kind_if_packed(value)
    if kind is None:
        return
    for (_, item), (_, its) in zip(kind.members(value), kind.members(derivative), strict=True):
        if isinstance(item, _NUMBERS):
            yield its
        elif its is not None:
            yield from _numbers_like(item, its)


def _check_array(value: Any, shadow: Any, name: str) -> None:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return
    if not isinstance(shadow, np.ndarray):
        raise _unlike(name, f"is {_shown(shadow)}, the argument an array")
    for what in ("dtype", "shape"):
        mine, its = getattr(value, what), getattr(shadow, what)
        if mine != its:
            raise _unlike(name, f"has the {what} {its}, the argument {mine}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(repr, value))}"
    if isinstance(value, list | tuple):
        return f"{with_article(type(value).__name__)} of {len(value)}"
    return with_article(type(value).__name__)


def _unlike(name: str, how: str) -> SignatureError:
    return SignatureError(
        f"the shadow of {name} {how}",
        "make it with irad.data.make_zero",
        "each number of the argument needs a place for its derivative",
        HERE,
    )


def argument_names(function: Any, count: int) -> list[str]:
    """Names of the first ``count`` arguments in messages: those of a star argument by number."""
    code = function.__code__  # much quicker than a signature
    names = list(code.co_varnames[: code.co_argcount])
    if code.co_flags & inspect.CO_VARARGS:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [f"{star}[{number}]" for number in range(count - len(names))]
    return names


def opened(value: Any, out: Any, arrays: list[Any]) -> Any:
    """A destination like ``out`` with arrays of one element for the numbers of a structure; they are appended."""
    kind = _kind_if_packed(value)
    if kind is None:
        return out
    items = []
    for (_, item), (_, its) in zip(kind.members(value), kind.members(out), strict=True):
        is_opened = isinstance(item, _NUMBERS) and not isinstance(its, np.ndarray)
        if is_opened:
            arrays.append(np.zeros(1, np.asarray(item).dtype))
        items.append(arrays[-1] if is_opened else opened(item, its, arrays))
    return rebuilt(out, items)
