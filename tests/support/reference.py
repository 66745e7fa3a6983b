"""The names that the installed Numba implements, read from its registries: what the table has to list.

Numba's reference pages ("Supported Python features", "Supported NumPy features") are written by hand and lag behind;
the registries are what the compiler looks names up in.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import heapq
import importlib
import math
import operator
import random
import weakref
from collections.abc import Iterator
from typing import Any, Final

import numba.experimental  # its registrations
import numba.typed
import numpy as np
from numba.core import types
from numba.core.registry import cpu_target

_MODULES: Final = {
    "np": np,
    "np.linalg": np.linalg,
    "np.random": np.random,
    "np.lib.stride_tricks": np.lib.stride_tricks,
    "np.polynomial.polynomial": np.polynomial.polynomial,
    "np.polynomial.polyutils": importlib.import_module("numpy.polynomial.polyutils"),
    "math": math,
    "cmath": cmath,
    "operator": operator,
    "random": random,
    "heapq": heapq,
    "functools": functools,
    "": builtins,
}

_TYPES: Final = {
    types.Array: "array",
    types.ArrayFlags: "flags",
    types.DType: "dtype",
    types.BaseTuple: "tuple",
    types.DictType: "typed.Dict",
    types.EnumMember: "enum",
    types.List: "list",
    types.ListType: "typed.List",
    types.MemoryView: "memoryview",
    types.Number: "number",
    types.RangeType: "range",
    types.Set: "set",
    types.SliceType: "slice",
    types.UnicodeType: "str",
    types.Bytes: "bytes",
    getattr(types, "SetType", None): "typed.Set",
    types.NumPyRandomGeneratorType: "Generator",
}
"""Types whose attributes and methods are listed; literal lists, nested arrays and character sequences repeat these."""

_CONSTRUCTORS: Final = {
    getattr(types, "SetType", None): "typed.Set",
    types.DictType: "typed.Dict",
    types.ListType: "typed.List",
}


def names() -> frozenset[str]:
    """All names: functions as ``np.sort``, methods and attributes as ``array.sort``."""
    cpu_target.target_context.refresh()
    context = cpu_target.typing_context
    context.refresh()
    return frozenset([*_functions(context), *_members(context)])


def _functions(context: Any) -> Iterator[str]:
    known = {entry() if isinstance(entry, weakref.ref) else entry for entry in context._globals}
    for prefix, module in _MODULES.items():
        for name in dir(module):
            if not name.startswith("_") and _is_known(getattr(module, name), known):
                yield f"{prefix}.{name}" if prefix else name


def _is_known(value: Any, known: set[Any]) -> bool:
    try:
        return value in known
    except TypeError:  # not hashable
        return False


def _is_of_numba(template: Any) -> bool:
    """Whether Numba itself brings it; other tests of the same process register methods of their own."""
    overload = getattr(template, "_overload_func", template)
    return str(overload.__module__).startswith("numba.")


def _members(context: Any) -> Iterator[str]:
    for numba_type, templates in context._attributes.items():
        prefix = _TYPES.get(numba_type)
        if isinstance(numba_type, types.TypeRef) and numba_type.instance_type in _CONSTRUCTORS:
            prefix = _CONSTRUCTORS[numba_type.instance_type]
        for template in templates if prefix else ():
            if not _is_of_numba(template):
                continue
            attribute = getattr(template, "_attr", None)
            found = (
                [attribute]
                if attribute
                else [n.removeprefix("resolve_") for n in dir(template) if n.startswith("resolve_")]
            )
            yield from (f"{prefix}.{name}" for name in found if not name.startswith("_"))


assert numba.typed
assert numba.experimental
