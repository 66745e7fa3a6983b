"""What the executable form of an adjoint needs besides numpy."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irad.ruleset.expr import evaluate, expression
from irad.ruleset.numba_slopes import BODIES, VALUES


def times(cotangent: Any, factor: Any) -> Any:
    """A product that is zero where the cotangent is, whatever the factor is."""
    return cotangent * factor if cotangent != 0.0 else cotangent * 0.0


def divided(cotangent: Any, divisor: Any) -> Any:
    """A quotient that is zero where the cotangent is, whatever the divisor is."""
    return cotangent / divisor if cotangent != 0.0 else cotangent * 0.0


def unsigned(number: int, bits: int = 64) -> int:
    """The number that the same bits are without a sign."""
    return int(number) % (1 << bits)


def wrapped(number: int, bits: int = 64) -> int:
    """The number with a sign that the lowest bits are."""
    return (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


as_int64 = wrapped
"""The same, where only the exact form says it."""


def truncated_quotient(a: int, b: int) -> int:
    """Division that rounds towards zero, as machines divide."""
    whole = abs(int(a)) // abs(int(b))
    return whole if (a < 0) == (b < 0) else -whole


def truncated_rest(a: int, b: int) -> int:
    """What such a division leaves."""
    return int(a) - truncated_quotient(a, b) * int(b)


def natural(index: int) -> int:
    """An index into a part of an array, where only the exact form says it: Python counts others from the end."""
    if index < 0:
        raise IndexError(f"{index} is in front of the part of an array that is read or written")
    return index


def whole_items(count: int, size: int) -> int:
    """How many items so many bytes are, `count // size` where the form does not look whether none is cut in two."""
    if count % size:
        raise IndexError(f"{count} bytes are not a whole number of items of {size} bytes each")
    return count // size


def address(array: Any) -> int:
    """Where the items of an array begin: two arrays are compared by it, to see whether they overlap."""
    return int(array.ctypes.data)


def slope(name: str) -> Callable[..., float]:
    """A function in which derivatives of Numba's functions are written (`irad.ruleset.numba_slopes`)."""
    return lambda *arguments: evaluate(BODIES[name](*map(expression, map(float, arguments))), {})


HELPERS: Final = {
    **{name: slope(name) for name in BODIES if name not in VALUES},
    "as_int64": as_int64, "address": address, "natural": natural, "whole_items": whole_items, "times": times,
    "divided": divided, "unsigned": unsigned, "wrapped": wrapped, "truncated_quotient": truncated_quotient,
    "truncated_rest": truncated_rest,
}  # fmt: skip
"""What the source calls besides numpy, `scipy.special` and functions of Python."""

BUILTINS: Final = ("abs", "bool", "float", "int", "len", "max", "min", "range", "reversed")
"""Functions of Python that the source calls."""


def namespace() -> dict[str, Any]:
    """A namespace in which the source runs."""
    found: dict[str, Any] = {"np": np, "special": None, **HELPERS}
    with contextlib.suppress(ImportError):
        found["special"] = importlib.import_module("scipy.special")  # takes long, and few functions need it
    return found
