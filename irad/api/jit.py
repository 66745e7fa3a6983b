"""`jit`: ``numba.njit`` with the error model that optimises."""

from __future__ import annotations

from typing import Any

import numba

_njit: Any = numba.njit


def jit(function: Any = None, /, *signature: Any, **options: Any) -> Any:
    """Compiles a function with Numba in nopython mode.

    All options of ``numba.njit`` are passed on. The only difference is the default ``error_model="numpy"``: a division
    by zero gives inf or nan, as in NumPy, and does not raise. The checks of the Python model stop loops from being
    vectorised, in the function and in its derivative. Write ``error_model="python"`` for Numba's own default.

    Derivatives do not need this decorator; they work on every ``numba.njit`` function.

    Args:
        function: the function, or a signature as ``numba.njit`` takes it.
        signature: passed on to ``numba.njit``.
        options: passed on to ``numba.njit``.
    """
    options.setdefault("error_model", "numpy")
    arguments = () if function is None else (function,)
    return _njit(*arguments, *signature, **options)
