"""``irad.vjp(f, …)`` written inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import overload

from irad.api.inside.pullback_value import PullbackType, pullback_maker
from irad.api.nopython import function_behind
from irad.api.vjp import forward_of, vjp
from irad.frontend.calls.dispatcher import refuse_inside_primal
from irad.frontend.numba.target import typing_context


@overload(vjp, strict=False)
def typed(f: Any, *args: Any) -> Callable[..., Any]:
    """What a call does, as Python code that Numba compiles, for the types of its arguments."""
    function = function_behind(f)
    forward = forward_of(function, None)
    refuse_inside_primal(forward.primal)
    given = (
        args[0].types if len(args) == 1 and isinstance(args[0], types.StarArgTuple | types.StarArgUniTuple) else args
    )
    signature = typing_context().resolve_function_type(types.Dispatcher(forward), tuple(given), {})
    assert isinstance(signature.return_type, types.BaseTuple)
    _, value, _, shadows = signature.return_type.types
    pullback = forward.pullbacks[forward.numbers[tuple(signature.args)]]
    alive = types.BaseTuple.from_types((types.BaseTuple.from_types(tuple(signature.args)), value))
    make = pullback_maker(PullbackType(pullback, shadows, alive))

    def call(f: Any, *args: Any) -> Any:
        _number, value, state, shadows = forward(*args)
        return value, make(state, shadows, (args, value))

    return call
