"""``irad.vjp(f, …)`` written inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba.core import types

from irad.api.functions import options_or_default, primal_of
from irad.api.inside.autodiff_call import MOST_ARGUMENTS
from irad.api.inside.kept_call import KeptCallType, kept_call_maker
from irad.api.inside.pullback_value import PullbackType, pullback_maker, tape_type
from irad.api.inside.rerun import rerunning, sweeps
from irad.api.inside.written_call import WrittenCall
from irad.api.nopython import function_behind, literal
from irad.api.positions import chosen
from irad.api.selection import selected
from irad.api.separate.vjp import augmented_of, vjp
from irad.frontend.calls.signature import may_have_derivative, without_aux, without_derivative
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.generated import function_from
from irad.frontend.numba import private
from irad.frontend.offered import offer
from irad.frontend.values.abi import arguments_of


def _typed(f: Any, /, *args: Any, **keywords: Any) -> Callable[..., Any]:
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


def _on_device(
    make: Callable[..., Any], f: Any, args: tuple[Any, ...], has_aux: Any, argnums: Any, argnames: Any
) -> Callable[..., Any]:
    """The same in device code, which has no memory for a tape: the pullback runs the function again."""
    primal, with_aux = primal_of(function_behind(f)), bool(literal(has_aux, "has_aux"))
    given = tuple(types.unliteral(each) for each in args if isinstance(each, types.Type))
    where = chosen(primal, literal(argnums, "argnums"), literal(argnames, "argnames"), None)
    arguments = arguments_of(primal.py_func, given)
    if where is None:
        positions = tuple(each.position for each in arguments if may_have_derivative(each))
    else:
        positions = selected(primal, where).positions
    if not positions:
        raise without_derivative(primal, arguments)
    task = Task(
        tuple((position, Role.GRADIENT) for position in positions), Seed.GIVEN, options=options_or_default(None)
    )
    found = iter(range(len(positions)))
    items = {position: f"found[{next(found)}]" for position in positions}
    entries = [items.get(i, "None") for i in range(len(given))] if where is None else list(items.values())
    result = entries[0] if isinstance(where, int) else f"({''.join(each + ', ' for each in entries)})"
    seed = "(cotangent, None)" if with_aux else "cotangent"
    source = f"def pullback(kept, cotangent):\n    found = derivative({seed}, *kept)\n    return {result}\n"
    apply = make(function_from("pullback", source, "irad.vjp", {"derivative": sweeps(primal, task)}), {})
    kind = KeptCallType("pullback", apply, types.BaseTuple.from_types(given))
    names = "".join(f"a{i}, " for i in range(len(given)))
    result = f"value[0], make(({names})), value[1]" if with_aux else f"value, make(({names}))"
    source = f"def vjp(f, {', '.join(_NAMES)}, {_MORE}):\n    value = primal({names})\n    return {result}\n"
    return function_from("vjp", source, "irad.vjp", {"primal": primal, "make": kept_call_maker(kind)})


_NAMES: Final = tuple(f"a{i}" for i in range(MOST_ARGUMENTS))
_MORE: Final = "has_aux, argnums, argnames"
_DEFAULTS: Final = "has_aux=False, argnums=None, argnames=None"
_SOURCE: Final = (
    f"def typing(make, f, {', '.join(f'{each}=_absent' for each in _NAMES)}, {_DEFAULTS}):\n"
    f"    return typed(make, f, ({', '.join(_NAMES)}), {_MORE})\n"
)
offer(
    vjp, _typed, on_device=function_from("typing", _SOURCE, "irad.vjp", {"typed": _on_device, "_absent": "irad: none"})
)
