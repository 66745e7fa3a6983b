"""Functions and values that a function may use: by the names that it reads, and by registration with Numba.

The owner of an attribute is unknown before types are: every module in sight that has one of that name counts.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from numba.core import types
from numba.core.typing.templates import builtin_registry

from irad.frontend.frozen.values import ATTRIBUTE, FREE, GLOBAL, is_of_library
from irad.frontend.generated import is_generated
from irad.frontend.numba import internals
from irad.records import dataclass

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
    """Values of the names in a function now; for an attribute, those in every module that has one of that name."""
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


# Implementations that users registered with Numba for functions and attributes: no name in a program
# refers to them.
#
# Input   a function that a program calls, or the name of an attribute.
# Output  the Python functions that Numba asks for an implementation, given to `numba.extending.overload`
#         and the like, with their options.
# Limit   Code by Numba's low-level interface (`lower_builtin`) is not found: a function that has it is
#         reported.

_WITHOUT_NAME: Final = frozenset(dir(operator))
"""Called by operators. What is not put in line Numba gives a symbol, by which `stored` finds it."""


class _Table:
    """Registered implementations; Numba's lists only grow, so each entry is looked at once."""

    def __init__(self) -> None:
        self._seen = [0, 0]
        self._templates: dict[int, list[Any]] = {}
        self._by_name: dict[str, list[Any]] = {}

    def refresh(self) -> None:
        """Looks at what was registered since the last time."""
        functions, attributes = builtin_registry.globals, builtin_registry.attributes
        for value, found in functions[self._seen[0] :]:
            if isinstance(found, types.Function):
                self._templates.setdefault(id(value), []).extend(found.templates)  # the registry keeps the function
                if not isinstance(value, FunctionType) or is_of_library(value.__module__):
                    self._named(getattr(value, "__name__", ""), found.templates)
        for template in attributes[self._seen[1] :]:
            self._named(internals.overloaded_attribute(template), [template])
        self._seen = [len(functions), len(attributes)]

    def _named(self, name: str, templates: Iterable[Any]) -> None:
        for template in templates:
            found = internals.overload_function(template)
            if found is None or is_of_library(found.__module__) or is_generated(found):
                continue
            self._by_name.setdefault(name, []).append(template)
            if name in _WITHOUT_NAME and internals.may_be_inlined(template):
                self._by_name.setdefault("", []).append(template)

    def of_function(self, value: object) -> list[Any]:
        return self._templates.get(id(value), [])

    def of_names(self, names: Iterable[str]) -> Iterator[Any]:
        for name in ("", *names):
            yield from self._by_name.get(name, ())


_TABLE: Final = _Table()


def of_function(function: object) -> list[tuple[Any, dict[str, Any]]]:
    """The implementations of a user's function, each with its options."""
    _TABLE.refresh()
    return [
        _with_options(each) for each in _TABLE.of_function(function) if internals.overload_function(each) is not None
    ]


def of_names(names: Iterable[str]) -> list[tuple[Any, dict[str, Any]]]:
    """The implementations by users of methods and attributes, of whatever type, and of library functions."""
    _TABLE.refresh()
    return [_with_options(each) for each in _TABLE.of_names(names)]


def is_low_level(function: object) -> bool:
    """True if code other than Python stands for a user's function."""
    _TABLE.refresh()
    return any(internals.overload_function(each) is None for each in _TABLE.of_function(function))


def _with_options(template: Any) -> tuple[Any, dict[str, Any]]:
    return internals.overload_function(template), internals.overload_options(template)
