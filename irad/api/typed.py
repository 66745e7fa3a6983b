"""Types of what derivatives take and return, for type checkers; nothing here does anything when a program runs."""

from __future__ import annotations

from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
_R_co = TypeVar("_R_co", covariant=True)


class CompiledFunction(Protocol[P, _R_co]):
    """A compiled function: called like the function it was made from, with Numba's methods and attributes."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> _R_co:
        """Calls it; compiles it first, if arguments of these types are new."""
        ...

    def __getattr__(self, name: str) -> Any:
        """``py_func``, ``signatures``, ``inspect_llvm`` and the like; for irad's functions `Inspectable`, too."""
        ...
