"""What users registered with Numba for functions and attributes: implementations that no name in a program leads to.

Input   a function that a program calls, or the name of an attribute.
Output  the Python functions that Numba asks for an implementation, given to `numba.extending.overload` and the like,
        with their options.
Limit   Code by Numba's low-level interface (`lower_builtin`) is not found: a function that has it is reported.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, Final

from numba.core import types
from numba.core.typing.templates import builtin_registry

from irad.frontend.frozen.numba_names import is_of_library
from irad.frontend.generated import is_generated
from irad.frontend.numba import internals

_WITHOUT_NAME: Final = frozenset(dir(operator))
"""Called by operators. What is not put in line Numba gives a symbol, by which `stored` finds it."""


class _Table:
    """What is registered; Numba's lists only grow, so each entry is looked at once."""

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
    """Whether code other than Python stands for a user's function."""
    _TABLE.refresh()
    return any(internals.overload_function(each) is None for each in _TABLE.of_function(function))


def _with_options(template: Any) -> tuple[Any, dict[str, Any]]:
    return internals.overload_function(template), internals.overload_options(template)
