"""Values that are numbers, arrays and tuples of these, in compiled code: their leaves, copies, new tuples of leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import overload

from irad.frontend.generated import function_from
from irad.frontend.values import abi, tree

FILE: Final = "irad.checkpoint"


@dataclass(frozen=True)
class Leaf:
    """A part of a value that is not a tuple.

    Attributes:
        root: the expression of the value in generated code.
        content: what it is.
    """

    root: str
    content: tree.Content

    @property
    def type(self) -> Type:
        """Its Numba type."""
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
        """Whether it is a number with a derivative."""
        return self.content.kind is tree.LeafKind.NUMBER

    @property
    def is_array(self) -> bool:
        """Whether it is an array with a derivative."""
        return self.content.kind is tree.LeafKind.ARRAY

    @property
    def is_immutable(self) -> bool:
        """Whether it is nothing but a value: a number, a string, a function."""
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


overload(copied, strict=False)(_copied_typed)
overload(_copy, strict=False)(_copy_typed)
