"""`jit`: ``numba.njit`` with the error model that optimises, and with methods to look at derivatives."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numba
from numba.core.registry import CPUDispatcher

from irad.compiling import collection_paused
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.custom import catalogue
from irad.frontend.numba import internals
from irad.frontend.numba.boxing import StorableCompiler
from irad.frontend.packing.dispatcher import StructureDispatcher
from irad.lazy import offered
from irad.options import Options

# Types of what derivatives take and return, for type checkers; nothing here does anything when a program runs.

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


# What functions of `irad.jit` and derivatives add to Numba's ``inspect_llvm``, ``inspect_asm`` and so on.


class Inspectable:
    """Methods for dispatchers.

    As with Numba's, without a signature the result is a dictionary with a text for each signature compiled so far.
    """

    def inspect(self, *args: Any, argnums: int | Sequence[int] | None = None, options: Options | None = None) -> Any:
        """An `irad.Inspection` for arguments of the function, or Numba types in their place; see `irad.inspect`."""
        inspect: Any = offered("irad").load("inspect")  # of a layer above; only those who look wait for its import
        return inspect(self, *args, argnums=argnums, options=options)

    def inspect_prepared(self, signature: tuple[Any, ...] | None = None) -> Any:
        """The program as the analyses of irad find it."""
        return self._stage("prepared", signature)

    def inspect_activity(self, signature: tuple[Any, ...] | None = None) -> Any:
        """Values that are active, and the reasons."""
        return self._stage("activity", signature)

    def inspect_plan(self, signature: tuple[Any, ...] | None = None) -> Any:
        """Values that are saved and that are recomputed, and the reasons."""
        return self._stage("plan", signature)

    def inspect_tape(self, signature: tuple[Any, ...] | None = None) -> Any:
        """The places of saved values, and the bytes they take."""
        return self._stage("tape", signature)

    def inspect_adjoint(self, signature: tuple[Any, ...] | None = None) -> Any:
        """Both sweeps as irad generates them."""
        return self._stage("adjoint", signature)

    def _stage(self, name: str, signature: tuple[Any, ...] | None) -> Any:
        if signature is not None:
            return self.inspect(*signature).stage(name)
        dispatcher: Any = self
        mine, its = (
            python_inspect.signature(each.py_func).parameters
            for each in (dispatcher, getattr(dispatcher, "primal", dispatcher))
        )
        wanted = [i for i, parameter in enumerate(mine) if parameter in its]
        return {kinds: self.inspect(*(kinds[i] for i in wanted)).stage(name) for kinds in dispatcher.signatures}


class InspectableDispatcher(Inspectable, StructureDispatcher):
    """Result of `irad.jit`: Numba's dispatcher with further methods."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Parts of the function for pickle, with its cache and its rules, which Numba's dispatchers lose there."""
        reduced: Any = super().__reduce__()
        if getattr(internals.cache_of(self), "keeps_derivatives", False):
            reduced = _unpickled_with_cache, reduced
        if catalogue.is_declared(self):
            from irad.frontend.custom.pickled_rules import with_rules  # few functions have a rule

            reduced = with_rules(self, reduced)
        found: tuple[Any, ...] = reduced
        return found


class InspectableDerivative(Inspectable, DerivativeDispatcher):
    """Result of `irad.grad` and the other makers."""


_njit: Any = numba.njit


@overload
def jit(function: Callable[P, R], /, **options: Any) -> CompiledFunction[P, R]: ...


@overload
def jit(
    function: Any = None, /, *signature: Any, **options: Any
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def jit(function: Any = None, /, *signature: Any, **options: Any) -> Any:
    """Compiles a function with Numba in nopython mode; a decorator.

    All options of ``numba.njit`` are passed on. The only difference is the default ``error_model="numpy"``: a division
    by zero gives inf or nan, as in NumPy, and does not raise. The checks of Numba's default, ``error_model="python"``,
    prevent vectorisation in the function and in its derivative.

    With ``cache=True``, machine code is cached on disk, also that of derivatives. It is compiled again when the
    function, a function that it calls, or a value that it reads has changed; see `docs/cache.md`.

    Derivatives do not need this decorator; they work on every function of ``numba.njit``.

    Args:
        function: the function, or a signature as ``numba.njit`` takes it.
        signature: passed on to ``numba.njit``.
        options: passed on to ``numba.njit``.

    Returns:
        The compiled function, for Python and compiled code; if no function is given, a decorator. Its method
        ``inspect`` is `irad.inspect` of it; ``inspect_activity``, ``inspect_plan`` and others give one stage as text.

    Examples:
        >>> import irad
        >>> @irad.jit
        ... def inverse(x):
        ...     return 1.0 / x
        >>> inverse(0.0)
        inf
        >>> irad.grad(inverse)(2.0)
        -0.25
    """
    options.setdefault("error_model", "numpy")
    is_cached = bool(options.pop("cache", False))
    arguments = () if function is None else (function,)
    made = _njit(*arguments, *signature, **options)
    if isinstance(made, CPUDispatcher):
        return _inspectable(made, is_cached)
    return lambda later: _inspectable(made(later), is_cached)


def _inspectable(dispatcher: Any, is_cached: bool) -> Any:
    """The dispatcher that Numba made, with irad's methods added to its own."""
    if type(dispatcher) is CPUDispatcher:  # a function itself, where Numba's compiler is switched off
        internals.become(dispatcher, InspectableDispatcher)
        if is_cached:
            keep(dispatcher)
    return dispatcher


def keep(dispatcher: Any) -> None:
    """Keeps the machine code of a function of `jit`, and of its derivatives, on disk from now on."""
    if getattr(internals.cache_of(dispatcher), "keeps_derivatives", False):
        return
    with collection_paused():
        from irad.frontend.disk.cache import DiskCache  # few functions are kept

    internals.compile_with(dispatcher, StorableCompiler)
    internals.set_cache(dispatcher, DiskCache(dispatcher))


def _unpickled_with_cache(rebuild: Callable[..., Any], parts: tuple[Any, ...]) -> Any:
    dispatcher = rebuild(*parts)
    keep(dispatcher)  # unless it is: Numba may know it by its number
    return dispatcher
