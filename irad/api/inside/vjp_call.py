"""``irad.vjp(f, …)`` written inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import overload

from irad.api.inside.pullback_value import PullbackType, pullback_maker, tape_type
from irad.api.nopython import function_behind
from irad.api.separate.vjp import augmented_of, vjp
from irad.frontend.numba.cpu import refuse_pullback


@overload(vjp, strict=False)
def typed(f: Any, *args: Any) -> Callable[..., Any]:
    """What a call does, as Python code that Numba compiles, for the types of its arguments."""
    function = function_behind(f)
    forward = augmented_of(function, None)
    refuse_pullback(forward.primal)
    given = (
        args[0].types if len(args) == 1 and isinstance(args[0], types.StarArgTuple | types.StarArgUniTuple) else args
    )
    make = pullback_maker(PullbackType(tape_type(forward, (), tuple(given))))

    def call(f: Any, *args: Any) -> Any:
        _number, value, state, shadows = forward(*args)
        return value, make(state, shadows, (*args, value))

    return call
