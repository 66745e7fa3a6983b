"""Programs that call a function under test, and which of its arguments take part."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, count
from math import comb
from typing import Any, Final

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

import irad
from irad.data.floats import has_floats, read_floats
from irad.data.recursive.kinds import Vector, kind_of
from irad.data.structure import flattened
from irad.errors import SignatureError
from irad.frontend.generated import function_from
from irad.frontend.packing.packed import packed

# Which arguments of a function take part in a check, and how the checks pass them.

_ANNOTATIONS = (irad.Const, irad.Active, irad.Duplicated, irad.DuplicatedNoNeed, irad.MixedDuplicated)


def unwrapped(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
    """Arguments without their annotations, and for each whether it takes part.

    Raises:
        SignatureError: none does.
    """
    values = tuple(packed(each.value if isinstance(each, _ANNOTATIONS) else each) for each in arguments)
    active = [
        not isinstance(each, irad.Const) and has_floats(value) for each, value in zip(arguments, values, strict=True)
    ]
    if not any(active):
        raise SignatureError(
            "no argument is active",
            "leave at least one argument of floats without irad.Const",
            "a rule gives derivatives with respect to the arguments that are active",
        )
    return values, tuple(active)


def activities(active: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
    """Combinations of arguments that take part: all, then the fewest subsets with each two arguments in all four ways.

    After the first row, each argument takes part in equally many rows, fewer than half of them, and no two in the same
    ones: so there is a row with either of two alone, and one with neither. Two arguments have no row with neither.

    Source:
        Kleitman and Spencer 1973, "Families of k-independent sets".
    """
    positions = [i for i, takes_part in enumerate(active) if takes_part]
    rows = next(n for n in count(4) if comb(n - 1, n // 2 - 1) >= len(positions))
    chosen = dict(zip(positions, combinations(range(1, rows), rows // 2 - 1), strict=False))
    table = [tuple(i in chosen and row in (0, *chosen[i]) for i in range(len(active))) for row in range(rows)]
    yield from dict.fromkeys(row for row in table if any(row))


# Programs that call a function under test: once, three times before anything is reversed, without use of its value.
#
# Each is for Numba, and its derivative uses the rule of the function. For finite differences the first is compiled by
# Numba; what the others compute is computed in Python, by calls of the first, which takes less time than compiling
# them.

LIVE_CALLS: Final = 3

_FILE: Final = "irad.testing"


def call_once(f: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """A program that calls ``f`` and returns what it returns."""
    listing = ", ".join(f"x{i}" for i in range(arity))
    return _program(f"def call({listing}):\n    return f({listing})\n", {"f": f})


class Passed(enum.Enum):
    """Way in which an argument is passed to a program that calls a function several times."""

    ONCE = "once"  # the same in each call
    PACKED = "packed"  # in tuples, one for each call
    STACKED = "stacked"  # an array for each call, as the rows of one: a few arrays compile much sooner than many


def call_in_loop(f: Callable[..., Any], passed: Sequence[Passed], has_value: bool) -> Callable[..., Any]:
    """A program of (tuples, weights, further arguments…): the weighted sum of the values of three calls.

    Args:
        f: the function.
        passed: how each of its arguments is.
        has_value: whether ``f`` returns something to be weighed.
    """
    rest = [f"x{k}" for k, each in enumerate(passed) if each is not Passed.PACKED]
    places = iter(range(len(passed)))
    spelled = {
        Passed.ONCE: lambda k: f"x{k}",
        Passed.PACKED: lambda k: f"tuples[i][{next(places)}]",
        Passed.STACKED: lambda k: f"x{k}[i]",
    }
    listing = ", ".join(spelled[each](k) for k, each in enumerate(passed))
    call = f"total += weigh(weights[i], f({listing}))" if has_value else f"f({listing})"
    source = (
        f"def call({', '.join(['tuples', 'weights', *rest])}):\n"
        f"    total = 0.0\n"
        f"    for i in range({LIVE_CALLS}):\n"
        f"        {call}\n"
        f"    return {'total' if has_value else None}\n"
    )
    return _program(source, {"f": f, "weigh": weigh})


def loop_of(call: Callable[..., Any], passed: Sequence[Passed], has_value: bool) -> Callable[..., Any]:
    """Python form of `call_in_loop`.

    Args:
        call: `call_once` of the function.
        passed, has_value: as there.
    """

    def computed(tuples: Any, weights: Any, *rest: Any) -> float | None:
        total = 0.0
        for i in range(LIVE_CALLS):
            packed, others = iter(tuples[i]), iter(rest)
            arguments = [next(packed if each is Passed.PACKED else others) for each in passed]
            rows = zip(arguments, passed, strict=True)
            value = call(*(each[i] if how is Passed.STACKED else each for each, how in rows))
            if has_value:
                total += float(read_floats(weights[i]) @ read_floats(value))
        return total if has_value else None

    return computed


def call_without_result(f: Callable[..., Any], taking_part: Sequence[bool]) -> Callable[..., Any]:
    """A program whose value depends on what ``f`` leaves in the arguments, but not on its value."""
    names = [f"x{i}" for i in range(len(taking_part))]
    terms = " + ".join(f"total({name})" for name, takes_part in zip(names, taking_part, strict=True) if takes_part)
    source = (
        f"def call({', '.join(names)}):\n"
        f"    value = f({', '.join(names)})\n"
        f"    if total(value) == -1e300:\n"
        f"        return 0.0\n"
        f"    return {terms}\n"
    )
    return _program(source, {"f": f, "total": total})


def without_result(call: Callable[..., Any], taking_part: Sequence[bool]) -> Callable[..., Any]:
    """Python form of `call_without_result`, by calls of `call_once` of the function."""

    def computed(*arguments: Any) -> float:
        parts = tuple(x for x, takes_part in zip(arguments, taking_part, strict=True) if takes_part)
        call(*arguments)
        floats = (read_floats(each) for each in flattened(parts, tuple) if isinstance(kind_of(each), Vector))
        return sum(float(each @ each) for each in floats)

    return computed


def total(value: Any) -> Any:
    """The sum of all floats in a value, squared; in compiled code."""
    raise NotImplementedError("compiled code only")


@overload(total)
def _total_typed(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.BaseTuple):
        terms = [f"total(value[{i}])" for i in range(len(value))]
        source = f"def summed(value):\n    return {' + '.join(['0.0', *terms])}\n"
        return function_from("summed", source, _FILE, {"total": total})
    if isinstance(value, types.Array) and isinstance(value.dtype, types.Float | types.Complex):
        return _sum_of_squares
    if isinstance(value, types.Float | types.Complex):
        return lambda value: abs(value) ** 2
    return lambda value: 0.0


def _sum_of_squares(value):  # type: ignore[no-untyped-def]  # a loop compiles sooner than an array expression
    found = 0.0
    for each in value.flat:
        found += abs(each) ** 2
    return found


def _program(source: str, scope: Mapping[str, object]) -> Callable[..., Any]:
    return numba.njit(function_from("call", source, _FILE, scope))


def weigh(weights: Any, value: Any) -> Any:
    """The sum of all floats in a value times their weights, in compiled code."""
    raise NotImplementedError("compiled code only")


@overload(weigh)
def _weigh_typed(weights, value):  # type: ignore[no-untyped-def]
    if isinstance(weights, types.NoneType):
        return lambda weights, value: 0.0
    if isinstance(value, types.BaseTuple):
        terms = [f"weigh(weights[{i}], value[{i}])" for i in range(len(value))]
        source = f"def weighed(weights, value):\n    return {' + '.join(['0.0', *terms])}\n"
        return function_from("weighed", source, _FILE, {"weigh": weigh})
    if isinstance(value, types.Array):
        if isinstance(value.dtype, types.Complex):
            return lambda weights, value: (np.conj(weights) * value).sum().real
        return lambda weights, value: (weights * value).sum()
    if isinstance(value, types.Complex):
        return lambda weights, value: (np.conj(weights) * value).real
    return lambda weights, value: weights * value
