"""Functions that Numba cuts short at special points: what stands in for them in a program that is differentiated.

Numba tests some numbers for a certain value and returns there what it need not compute: `np.interp` on a knot the
table's entry, `np.linalg.det` of a singular matrix the constant 0. The value is right; its derivative is that of the
shortcut. What stands in has the bits of Numba's value and the derivative of the function.

Input   the template by which Numba finds the implementation of an overload.
Output  a function that Numba asks instead, with the same signature; None for all others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from numba import njit

from irad.frontend.numba import internals

Overload: TypeAlias = Callable[..., Any]
"""From argument types to an implementation, as `numba.extending.overload` takes it."""

Maker: TypeAlias = Callable[..., Any]
"""Makes an implementation of that of Numba, compiled, and the argument types; None leaves Numba's."""


def stand_in(template: Any) -> Overload | None:
    """What Numba asks for an implementation in place of its own function, if there is something."""
    make = _makers().get(name_of(template))
    if make is None:
        return None
    original: Any = internals.overload_function(template)

    @functools.wraps(original)  # Numba compares the signatures
    def choose(*args: Any, **kwargs: Any) -> Any:
        implementation = original(*args, **kwargs)
        if implementation is None:
            return None
        options = {name: value for name, value in internals.overload_options(template).items() if name != "nopython"}
        made = make(njit(**options)(implementation), *args, **kwargs)
        return implementation if made is None else made

    return choose


def name_of(template: Any) -> tuple[str, str]:
    """Module and name of the function that is registered: of the implementation, if it is the same for all types."""
    function: Any = internals.overload_function(template)
    if function.__qualname__.startswith("register_jitable."):
        function = template.key
    return function.__module__, function.__qualname__


@functools.cache
def _makers() -> Mapping[tuple[str, str], Maker]:
    from irad.frontend.numba.stand_ins import arrays  # it uses `irad.stop_gradient`, which imports this package

    return arrays.MAKERS
