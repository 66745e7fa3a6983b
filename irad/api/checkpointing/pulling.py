"""The reverse of a function within a rule: run it again with a tape, and pull a cotangent back through it.

Every leaf of an argument becomes an argument of its own, so that each can be constant, a number or an array with its
shadow. Numbers that are the same in each step of a loop are passed on to the next: their cotangents then add up in the
order in which those of a loop do.

    def flat(x0, x1, x2):                       step((x0, x1), x2), state (x0, x1), a number x2
        return step((x0, x1), x2), x2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.annotate import Active, Const, Duplicated
from irad.api.autodiff import autodiff_of
from irad.api.checkpointing.values import FILE, Leaf, leaves_of, structured
from irad.api.functions import remembered
from irad.api.modes import Reverse
from irad.frontend.calls.task import Seed
from irad.frontend.generated import function_from
from irad.options import Options


def pulled_call(
    f: CPUDispatcher,
    values: Sequence[tuple[Type, Sequence[Leaf]]],
    shadows: dict[Leaf, str],
    active: Sequence[Leaf],
    seed: str | None,
    scope: dict[str, Any],
    options: Options,
    passed_on: Sequence[Leaf] = (),
    *,
    has_value: bool = True,
) -> tuple[str, tuple[Leaf, ...]]:
    """A call of the derivative of a function: its expression, and the numbers whose cotangents it returns in a tuple.

    Args:
        f: the function.
        values: for each argument its type and its leaves.
        shadows: expressions of the shadows of arrays that take part.
        active: the numbers that take part.
        seed: the expression of the cotangent of the value; None if it has none.
        scope: takes the names that the call uses.
        options: of the derivative.
        passed_on: numbers that are returned behind the value; the seed is for a tuple of all.
        has_value: whether the function returns anything.
    """
    leaves = [leaf for _, parts in values for leaf in parts]
    kinds = [Duplicated if leaf in shadows else Active if leaf in active else Const for leaf in leaves]
    numbers = tuple(leaves.index(leaf) for leaf in passed_on)
    flat = flattened(f, tuple(numba_type for numba_type, _ in values), numbers, has_value=has_value)
    annotations = tuple(object.__new__(kind) for kind in kinds)
    source = Seed.NONE if seed is None else Seed.GIVEN
    scope["derivative"] = autodiff_of(flat, Reverse, annotations, source, options)
    extras = [*(shadows[leaf] for leaf in leaves if leaf in shadows), *([] if seed is None else [seed])]
    call = f"derivative({', '.join([*extras, *(leaf.text for leaf in leaves)])})"
    return call, tuple(leaf for leaf, kind in zip(leaves, kinds, strict=True) if kind is Active)


def flattened(
    f: CPUDispatcher, structure: tuple[Type, ...], passed_on: tuple[int, ...] = (), *, has_value: bool = True
) -> CPUDispatcher:
    """A function of the leaves of the arguments of another; the leaves at some positions it returns as well."""
    key = (_flat, structure, passed_on, has_value)
    return remembered(f, key, lambda: _flat(f, structure, passed_on, has_value=has_value))


def _flat(
    f: CPUDispatcher, structure: tuple[Type, ...], passed_on: tuple[int, ...], *, has_value: bool
) -> CPUDispatcher:
    scope: dict[str, Any] = {"called": f}
    names = [f"x{i}" for i in range(sum(len(leaves_of(each)) for each in structure))]
    given = iter(names)
    call = f"called({', '.join([structured(each, given, scope) for each in structure])})"
    passed = "".join(f"{names[number]}, " for number in passed_on)
    if not has_value:
        body = f"    {call}\n    return ({passed})\n" if passed else f"    {call}\n"
    else:
        body = f"    return ({call}, {passed})\n" if passed else f"    return {call}\n"
    function = function_from("flat", f"def flat({', '.join(names)}):\n{body}", FILE, scope)
    function.__name__ = function.__qualname__ = f.py_func.__qualname__
    return CPUDispatcher(function, targetoptions={"nopython": True})
