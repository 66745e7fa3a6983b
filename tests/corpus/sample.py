"""A sample: a function of an installed package and the arguments it is differentiated at.

Tables of samples are data. They import nothing of the package, so they can be read where it is not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from irad.data.floats import has_floats


@dataclass(frozen=True, slots=True)
class Named:
    """An argument that only the package has: a function or a value, as ``module:name``."""

    path: str

    def load(self) -> Any:
        """Import the module and look the name up."""
        module, _, name = self.path.partition(":")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found


@dataclass(frozen=True, slots=True)
class Made(Named):
    """An argument that the package makes, such as an instance of a class: what ``module:name(*given)`` returns."""

    given: tuple[Any, ...] = ()

    def load(self) -> Any:
        """Import the module and call the name."""
        return super(Made, self).load()(*(_loaded(value) for value in self.given))


@dataclass(frozen=True, slots=True)
class Sample:
    """One function at one point.

    Attributes:
        path: ``module:name`` of the function.
        args: what it is called with; `Named` and `Made` entries are loaded first.
        writes: positions of the arguments that hold the result; if empty, it is what the function returns.
        has_nan: the result is an array or a tuple of arrays; nan in it is replaced by zero.
        known: why it is not expected to be right: ``refused: …`` or ``not smooth: …``; else empty.
        options: keyword arguments of ``check_gradient``.
    """

    path: str
    args: tuple[Any, ...]
    writes: tuple[int, ...] = ()
    has_nan: bool = False
    known: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> tuple[Any, ...]:
        """The arguments with everything loaded."""
        return tuple(_loaded(arg) for arg in self.args)

    def program(self) -> Callable[..., Any]:
        """The function, or a Numba function around it that returns what is differentiated."""
        function = Named(self.path).load()
        if hasattr(function, "py_func") and not self.writes and not self.has_nan:
            return function
        names = [f"a{i}" for i in range(len(self.args))]
        body = f"    result = target({', '.join(names)})\n    return "
        if self.has_nan:
            entries = [f"without_nan(a{i})" for i in self.writes] or ["without_nan(result)"]
        else:
            entries = [f"a{i}.copy()" for i in self.writes]
        body += f"({', '.join(entries)},)" if entries else "result"
        scope: dict[str, Any] = {"target": function, "without_nan": _without_nan}
        exec(f"def program({', '.join(names)}):\n{body}\n", scope)
        return numba.njit(scope["program"])


def _without_nan(value):
    """In compiled code: the arrays with zero in place of nan."""


@overload(_without_nan)
def _overloaded_without_nan(value):  # without annotations: Numba compares its signature with those of what it returns
    if not isinstance(value, numba.types.BaseTuple):
        return lambda value: np.where(np.isnan(value), 0.0, value)
    entries = ", ".join(f"without_nan(value[{i}])" for i in range(len(value)))
    scope: dict[str, Any] = {"without_nan": _without_nan}
    exec(f"def implementation(value):\n    return ({entries},)\n", scope)
    return scope["implementation"]


def _loaded(value: Any) -> Any:
    if isinstance(value, Named):
        return value.load()
    if isinstance(value, tuple) and not has_floats(value):
        return tuple(map(_loaded, value))
    return value


@dataclass(frozen=True, slots=True)
class Package:
    """The samples of one package.

    Attributes:
        module: what is imported.
        requirement: its name on the package index.
        samples: the table.
        fastmath: whether its functions are compiled with it; their values agree to rounding only.
    """

    module: str
    requirement: str
    samples: tuple[Sample, ...]
    fastmath: bool = False


def of(
    path: str,
    *args: Any,
    writes: int | tuple[int, ...] = (),
    has_nan: bool = False,
    known: str = "",
    **options: Any,
) -> Sample:
    """A sample; see its attributes."""
    positions = (writes,) if isinstance(writes, int) else writes
    return Sample(path, args, positions, has_nan, known, options)


def ints(*values: int) -> Any:
    """An array of int64."""
    return np.array(values, np.int64)
