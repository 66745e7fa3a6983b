"""The names that functions read, and what these stand for now.

Of an attribute it is not known whose it is before types are: every module in sight that has one of that name counts.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from irad.frontend.frozen.numba_names import ATTRIBUTE, FREE, GLOBAL, is_of_library

BUILTIN: Final = ("builtins", "math", "cmath", "operator", "_operator")
_GLOBALS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


@dataclass(frozen=True)
class Read:
    """A name that a function reads: ``kind`` as in `frozen.numba_names`."""

    kind: str
    name: str
    function: FunctionType
    value: Any


def reads_of(function: FunctionType) -> Iterator[Read]:
    """What the names in a function stand for now; of attributes, whatever module has one of that name."""
    names, attributes = names_in(function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: list[Read] = []
    for name, cell in cells.items():
        with suppress(ValueError):  # not assigned yet
            found.append(Read(FREE, name, function, cell.cell_contents))
    scope = function.__globals__
    found += [Read(GLOBAL, name, function, scope[name]) for name in names if name in scope]
    yield from found
    modules = [read.value for read in found if isinstance(read.value, ModuleType)]
    texts = [read.value for read in found if isinstance(read.value, str)]  # one may be given to `getattr`
    for module in modules:
        if is_of_library(module.__name__) or module.__name__ in BUILTIN:
            continue
        for name in dict.fromkeys((*attributes, *texts)):
            if name in vars(module):
                yield Read(ATTRIBUTE, f"{module.__name__}.{name}", function, vars(module)[name])
                if isinstance(vars(module)[name], ModuleType) and vars(module)[name] not in modules:
                    modules.append(vars(module)[name])


@lru_cache(maxsize=4096)
def names_in(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The global names and the attributes that code reads, in the functions within it as well."""
    names, attributes = dict[str, None](), dict[str, None]()
    for each in codes_in(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in _GLOBALS:
                names[instruction.argval] = None
            elif instruction.opname in _ATTRIBUTES:
                attributes[instruction.argval] = None
        if "getattr" in each.co_names:
            attributes.update(dict.fromkeys(constant for constant in each.co_consts if isinstance(constant, str)))
    return tuple(names), tuple(attributes)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)
