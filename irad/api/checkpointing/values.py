"""Values of compiled code as leaves, copies of them, and derivatives with respect to leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.annotations import Active, Const, Duplicated, Reverse
from irad.api.autodiff import autodiff_of
from irad.api.functions import remembered
from irad.frontend.calls.task import Seed
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_overload
from irad.frontend.values import abi, tree
from irad.options import Options

# Values that are numbers, arrays and tuples of these.

FILE: Final = "irad.checkpoint"


@dataclass(frozen=True)
class Leaf:
    """A part of a value that is not a tuple.

    Attributes:
        root: the expression of the value in generated code.
        content: its description.
    """

    root: str
    content: tree.Content

    @property
    def type(self) -> Type:
        """Numba type of the leaf."""
        found: Type = self.content.type
        return found

    @property
    def path(self) -> tuple[int, ...]:
        """The way to it through tuples."""
        return self.content.path

    @property
    def text(self) -> str:
        """The expression of the leaf."""
        return self.of(self.root)

    def of(self, root: str) -> str:
        """The expression of the leaf of another value of the same structure."""
        return root + "".join(f"[{index}]" for index in self.path)

    @property
    def is_number(self) -> bool:
        """True if it is a number with a derivative."""
        return self.content.kind is tree.LeafKind.NUMBER

    @property
    def is_array(self) -> bool:
        """True if it is an array with a derivative."""
        return self.content.kind is tree.LeafKind.ARRAY

    @property
    def is_immutable(self) -> bool:
        """True if it is nothing but a value: a number, a string, a function."""
        inside = getattr(self.content, "inside", self.content)
        return isinstance(inside, tree.ConstantContent | tree.NumberContent)


def leaves_of(numba_type: Type, root: str = "") -> list[Leaf]:
    """The leaves of a value, from left to right."""
    return [Leaf(root, content) for content in abi.leaves_of(numba_type)]


def structured(numba_type: Type, leaves: Iterator[str], scope: dict[str, Any]) -> str:
    """The expression of a value with the structure of a type, from those of its leaves; classes go into the scope."""
    if not isinstance(numba_type, types.BaseTuple):
        return next(leaves)
    items = "".join(f"{structured(item, leaves, scope)}, " for item in numba_type.types)
    if not isinstance(numba_type, types.BaseNamedTuple):
        return f"({items})"
    name = f"class{len(scope)}"
    scope[name] = numba_type.instance_class
    return f"{name}({items})"


def copied(value: Any) -> Any:
    """The value with new arrays, in the order of C."""
    raise NotImplementedError


def _copied_typed(value: Any) -> Any:
    def of(leaf: Leaf) -> str:
        return f"copy({leaf.text})" if isinstance(leaf.type, types.Array) else leaf.text

    scope: dict[str, Any] = {"copy": _copy}
    made = structured(value, iter([of(leaf) for leaf in leaves_of(value, "value")]), scope)
    return function_from("copied", f"def copied(value):\n    return {made}\n", FILE, scope)


def _copy(array: Any) -> Any:
    raise NotImplementedError


def _copy_typed(array: Any) -> Any:
    if array.layout == "C" or array.ndim == 0:
        return lambda array: array.copy()

    def copy(array):  # type: ignore[no-untyped-def]
        result = np.empty(array.shape, array.dtype)
        result[...] = array
        return result

    return copy


inner_overload(copied, strict=False)(_copied_typed)
inner_overload(_copy, strict=False)(_copy_typed)


# The reverse of a function within a rule: run it again with a tape, and pull a cotangent back through it.
#
# Every leaf of an argument becomes an argument of its own, so that each can be constant, a number or an array with
# its shadow. Numbers that are the same in each step of a loop are passed on to the next: their cotangents then add up
# in the order in which those of a loop do.
#
#     def flat(x0, x1, x2):                       step((x0, x1), x2), state (x0, x1), a number x2
#         return step((x0, x1), x2), x2


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
    is_linear: bool = False,
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
        passed_on: numbers that are returned after the value; the seed is for a tuple of all.
        has_value: whether the function returns anything.
        is_linear: refuse a function that is not linear in what takes part.
    """
    leaves = [leaf for _, parts in values for leaf in parts]
    kinds = [Duplicated if leaf in shadows else Active if leaf in active else Const for leaf in leaves]
    numbers = tuple(leaves.index(leaf) for leaf in passed_on)
    flat = flattened(f, tuple(numba_type for numba_type, _ in values), numbers, has_value=has_value)
    annotations = tuple(object.__new__(kind) for kind in kinds)
    source = Seed.NONE if seed is None else Seed.GIVEN
    scope["derivative"] = autodiff_of(flat, Reverse, annotations, source, options, is_linear).inner
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
