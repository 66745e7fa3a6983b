"""``irad.vjp(f, …)`` written inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import overload

from irad.api.functions import primal_of
from irad.api.inside.pullback_value import PullbackType, pullback_maker, tape_type
from irad.api.inside.rerun import rerunning
from irad.api.inside.written_call import WrittenCall
from irad.api.nopython import function_behind
from irad.api.positions import chosen
from irad.api.selection import selected
from irad.api.separate.vjp import augmented_of, vjp
from irad.frontend.calls.signature import without_aux
from irad.frontend.numba import private


@overload(vjp, prefer_literal=True, strict=False)
def typed(f: Any, /, *args: Any, **keywords: Any) -> Callable[..., Any]:
    """What a call does, as Python code that Numba compiles, for the types of its arguments."""
    call = WrittenCall("vjp", args, keywords)
    primal = primal_of(function_behind(f))
    argnums = chosen(primal, call.option("argnums"), call.option("argnames"), None)
    has_aux = bool(call.option("has_aux"))
    wanted = None if argnums is None else selected(primal, argnums)
    if private.shadow().refuses_pullbacks:
        return rerunning(call, primal, wanted, has_aux=has_aux)
    sweep = augmented_of(primal, None, None if wanted is None else wanted.positions)
    tape = tape_type(sweep, (), call.positional, call.named)
    value = tape.alive.types[-1]
    if has_aux and (not isinstance(value, types.BaseTuple) or len(value) != 2):
        raise without_aux(primal, value)
    make = pullback_maker(PullbackType(tape, None if wanted is None else wanted.argnums, has_aux=has_aux))
    returned = "value[0], pullback, value[1]" if has_aux else "value, pullback"
    body = (
        f"    _number, value, state, shadows = sweep({call.passed})\n"
        f"    pullback = make(state, shadows, ({call.values}value))\n"
        f"    return {returned}\n"
    )
    return call.function(body, {"sweep": sweep, "make": make})
