"""`jit`: ``numba.njit`` with the error model that optimises, and with methods to look at derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numba
from numba.core.registry import CPUDispatcher

from irad.api.inspectable import InspectableDispatcher
from irad.api.typed import CompiledFunction, P, R
from irad.frontend.numba import internals

_njit: Any = numba.njit


@overload
def jit(function: Callable[P, R], /, **options: Any) -> CompiledFunction[P, R]: ...


@overload
def jit(
    function: Any = None, /, *signature: Any, **options: Any
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def jit(function: Any = None, /, *signature: Any, **options: Any) -> Any:
    """Compiles a function with Numba in nopython mode. The result also has the methods of `Inspectable`.

    All options of ``numba.njit`` are passed on. The only difference is the default ``error_model="numpy"``: a division
    by zero gives inf or nan, as in NumPy, and does not raise. The checks of the Python model prevent
    vectorisation, in the function and in its derivative. Write ``error_model="python"`` for Numba's own default.

    With ``cache=True`` machine code is kept on the disk, that of derivatives as well, and compiled anew when the
    function, a function that it calls, or a value that it reads has changed; see `docs/cache.md`.

    Derivatives do not need this decorator; they work on every ``numba.njit`` function.

    Args:
        function: the function, or a signature as ``numba.njit`` takes it.
        signature: passed on to ``numba.njit``.
        options: passed on to ``numba.njit``.

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
            from irad.frontend.disk.cache import DiskCache  # few functions are kept

            internals.set_cache(dispatcher, DiskCache(dispatcher))
    return dispatcher
