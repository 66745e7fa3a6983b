"""A number from a device function with a rule of the user's, whose functions are compiled apart.

    double @irad.cuda.ruled.2.f64…(double %own, double %made, ptr %reverse, ptr %forward, %x0, %x1, %tape…)

`own` is what the function computes, `made` what its augmented primal does, which also makes the tape: these values are
saved or computed again like any others. No derivative flows through all that; `settle` says so before a kernel is
differentiated. The functions, null where there is none, are

    {cotangents of the floats} reverse(cotangent, x…, tape…)        {value, tangent} forward(x…, tangents of the floats)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.builder import Builder
from irad.ir.instructions import Call, CallSite, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import DOUBLE, FLOAT, Type, function_type
from irad.ir.values import Value
from irad.rules.cuda.linear import STOP
from irad.ruleset.interface import PURE, CallRule, ReverseContext, Rule, TangentContext

RULED: Final = "irad.cuda.ruled"
PART: Final = "irad.cuda.rule_part."
"""How the symbols of a rule's functions begin."""
FROM_BODY: Final = "from_body"
"""A word in the symbol: forward mode may differentiate the body of the function."""
_FLOATS: Final[Mapping[Type, str]] = {FLOAT: "f32", DOUBLE: "f64"}
_GIVEN: Final = 4  # where the arguments of the function begin


def _arguments(call: CallSite) -> tuple[Sequence[Value], Sequence[Value]]:
    """Those of the function, and its tape."""
    count = int(str(call.callee.name).removeprefix(RULED).split(".")[1])
    return call.arguments[_GIVEN : _GIVEN + count], call.arguments[_GIVEN + count :]


def _reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent, build = context.cotangent(call), context.builder
    reverse = call.arguments[2]
    assert isinstance(reverse, Function)
    arguments, tape = _arguments(call)
    given = [cotangent, *map(context.value, arguments), *map(context.value, tape)]
    made = build.call(reverse, given, reverse.function_type)
    for index, argument in enumerate(each for each in arguments if each.type in _FLOATS):
        context.accumulate(argument, build.extract_value(made, index))


def _tangent(context: TangentContext, call: CallSite) -> None:
    forward, build = call.arguments[3], context.after
    assert isinstance(forward, Function)
    arguments, _ = _arguments(call)
    tangents = [context.tangent(each) for each in arguments if each.type in _FLOATS]
    made = build.call(forward, [*map(context.value, arguments), *tangents], forward.function_type)
    context.set_tangent(build.extract_value(made, 1))


def settle(module: Module, *, is_forward: bool) -> None:
    """Decides for each call whether its rule holds in a mode, or the body of the function is differentiated.

    Raises:
        UnsupportedError: neither does.
    """
    for function in module.defined_functions():
        for call in list(function.instructions()):
            if isinstance(call, Call) and str(getattr(call.callee, "name", "")).startswith(RULED):
                _settle(module, call, is_forward=is_forward)


def _settle(module: Module, call: Call, *, is_forward: bool) -> None:
    own, made, reverse, forward = call.arguments[:_GIVEN]
    if isinstance(forward if is_forward else reverse, Function):
        stop = module.declare(f"{STOP}.{_FLOATS[own.type]}", function_type(own.type, [own.type]))
        value = Builder.before(call).call(stop, [own]) if is_forward else made
        call.set_operand(call.operands.index(own), value)
    elif is_forward and f".{FROM_BODY}." not in str(call.callee.name):
        error = UnsupportedError(
            "this device function has a rule for reverse mode, and none for forward mode",
            "register one with irad.rules.forward, or irad.rules.forward_from_body to have its body differentiated",
            "what a rule is for may not be differentiable otherwise",
        )
        error.instruction = call
        raise error
    else:
        replace_uses(call, own)
        call.erase()


RULES: Final[tuple[Rule, ...]] = (CallRule((f"{RULED}.*",), PURE, _reverse, tangent=_tangent),)
