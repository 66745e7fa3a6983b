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
        case np.ndarray() | np.void() if value.dtype.names is not None:
            fields = value.dtype.names
            return _in_field([np.asarray(value[field]) for field in fields], list(fields), leaf, name)
        case np.ndarray() if value.dtype.kind == "c":
            return _element(value, leaf // 2, name) + (".imag" if leaf % 2 else ".real")
        case np.ndarray():
            return _element(value, leaf, name)
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


def _in_field(parts: list[Any], fields: list[str], leaf: int, name: str) -> str:
    """Of a record ``name.field``, of an array of records ``name[i].field``."""
    for part, field in zip(parts, fields, strict=True):
        count = read_leaves(part).size
        if leaf < count:
            inner = leaf_name(part, leaf, "")
            return f"{name}{inner}.{field}"
        leaf -= count
    raise IndexError(leaf)


def _element(array: Any, number: int, name: str) -> str:
    if array.ndim == 0:
        return name
    index = ", ".join(str(int(i)) for i in np.unravel_index(number, array.shape))
    return f"{name}[{index}]"
