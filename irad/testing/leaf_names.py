"""The name of one float inside an argument, as Python would write it: ``x[3]``, ``model[1].rate``, ``z[0].imag``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.typed import Dict as TypedDict
from numba.typed import List as TypedList

from irad.testing.leaves import read_leaves


def leaf_name(value: Any, leaf: int, name: str) -> str:
    """What the float number ``leaf`` of ``value``, in the order of `irad.testing.leaves`, is called."""
    match value:
        case tuple() | list() | TypedList():
            fields = getattr(value, "_fields", None)
            names = [f"{name}.{field}" for field in fields] if fields else [f"{name}[{i}]" for i in range(len(value))]
            return _in_parts(list(value), names, leaf)
        case TypedDict():
            return _in_parts(list(value.values()), [f"{name}[{key!r}]" for key in value], leaf)
        case np.ndarray() | np.void():
            index, inner = _place(np.asarray(value), leaf)
            return name + _brackets(index) + inner
        case complex() | np.complexfloating():
            return f"{name}.{'imag' if leaf % 2 else 'real'}"
    return name


def _in_parts(parts: list[Any], names: list[str], leaf: int) -> str:
    for part, name in zip(parts, names, strict=True):
        count = read_leaves(part).size
        if leaf < count:
            return leaf_name(part, leaf, name)
        leaf -= count
    raise IndexError(leaf)


def _place(array: Any, leaf: int) -> tuple[tuple[int, ...], str]:
    """The index of the element with a float, and where in the element it is: ``.field[0].imag``."""
    if array.dtype.names is None:
        is_complex = array.dtype.kind == "c"
        index = np.unravel_index(leaf // 2 if is_complex else leaf, array.shape)
        inner = (".imag" if leaf % 2 else ".real") if is_complex else ""
        return tuple(int(i) for i in index), inner
    for field in array.dtype.names:
        part = np.asarray(array[field])
        count = read_leaves(part).size
        if leaf < count:
            index_in_part, inner = _place(part, leaf)
            own, rest = index_in_part[: array.ndim], index_in_part[array.ndim :]
            return own, f".{field}{_brackets(rest)}{inner}"
        leaf -= count
    raise IndexError(leaf)


def _brackets(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""
