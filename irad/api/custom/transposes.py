"""Rules for reverse mode from rules for tangents, by transposition.

A rule `jvp(primals, tangents) -> (value, tangent)` is a linear function of the tangents. Its transpose maps a cotangent
of the value to those of the arguments; it is the derivative of `jvp` in reverse mode, with respect to the tangents, at
tangents of zero. A rule that is not linear is refused when its transpose is compiled; see
`irad.passes.analysis.linearity`.

    def linear(x0, x1, d0, d1):                     the tangent of the value, of the function to transpose
        value, tangent = jvp((x0, x1), (d0, d1))
        return of_type(filled(tangent, zero_tangent(value)), value)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from irad.api.checkpointing.values import Leaf, leaves_of, pulled_call, structured
from irad.api.functions import remembered
from irad.frontend.custom.rules_from_partials import zero_tangent
from irad.frontend.custom.rules_from_pure_functions import (
    added,
    aligned,
    augmented_from,
    check_constant,
    filled,
    given,
    nothing,
    of_type,
    parted,
)
from irad.frontend.generated import function_from


def transposed_functions(
    function: CPUDispatcher, rule: CPUDispatcher, count: int, constants: Collection[int], file: str
) -> dict[str, Callable[..., Any]]:
    """The functions of a rule for reverse mode.

    Args:
        function: the function that the rule is for.
        rule: called as ``rule(*constants, primals, tangents)``.
        count: number of arguments of the function.
        constants: positions of those that have no derivative.
        file: name of the file in tracebacks.
    """
    names, fixed, varied = parted(count, constants)
    values = f"({''.join(f'{name}.value, ' for name in names)})"
    kept = "".join(
        f"kept_value({name}.value) if config.overwritten[{i}] else {name}.value, " for i, name in enumerate(names)
    )
    arguments = f"({''.join(f'{name}, ' for name in varied)})"
    tangents = "".join(f"zero_tangent(tape[0][{i}]), " for i, name in enumerate(names) if name in varied)
    reverse = (
        f"def reverse(config, cotangent, tape{given(names)}):\n"
        + "".join(f"    check_constant({name})\n" for name in fixed)
        + "    if config.has_cotangent:\n"
        f"        found = transposed(config, linear, {arguments}, tape[0], ({tangents}), filled(cotangent, tape[1]))\n"
        "    else:\n"
        f"        found = nothing({arguments})\n"
        f"    return ({aligned(names, fixed)})\n"
    )
    back = {
        "linear": _linear_part(rule, count, constants, file),
        "transposed": transposed,
        "filled": filled,
        "nothing": nothing,
        "zero_tangent": zero_tangent,
        "check_constant": check_constant,
    }
    return {
        "augmented_primal": augmented_from(
            names, f"result = function(*{values})", f"({kept}), zeros_of_parts(result)", file, {"function": function}
        ),
        "reverse": function_from("reverse", reverse, file, back),
    }


def _linear_part(rule: CPUDispatcher, count: int, constants: Collection[int], file: str) -> CPUDispatcher:
    """The tangent of the value, as a function of all arguments and of the tangents of those that have one."""
    names, fixed, varied = parted(count, constants)
    tangents = [f"d{name}" for name in varied]
    listed = "".join(f"{name}, " for name in fixed)
    source = (
        f"def linear({', '.join([*names, *tangents])}):\n"
        f"    value, tangent = rule({listed}({''.join(f'{name}, ' for name in varied)}), "
        f"({''.join(f'{name}, ' for name in tangents)}))\n"
        "    return of_type(filled(tangent, zero_tangent(value)), value)\n"
    )
    scope = {"rule": rule, "filled": filled, "of_type": of_type, "zero_tangent": zero_tangent}
    key = _linear_part, count, tuple(constants)
    return remembered(
        rule, key, lambda: CPUDispatcher(function_from("linear", source, file, scope), targetoptions={"nopython": True})
    )


def transposed(config: Any, linear: Any, arguments: Any, values: Any, tangents: Any, cotangent: Any) -> Any:
    """Cotangents of the arguments, as the reverse of a rule returns them; those of arrays are added to their shadows.

    Args:
        config: the configuration of the rule.
        linear: the function to transpose: of all values, then of the tangents.
        arguments: the arguments of the rule that have tangents.
        values: values of all its arguments.
        tangents: zeros.
        cotangent: the cotangent of the value.
    """
    raise NotImplementedError("called in compiled code only")


@overload(transposed, strict=False)
def _transposed_typed(
    config: Any, linear: Any, arguments: Any, values: Any, tangents: Any, cotangent: Any
) -> Callable[..., Any]:
    constant = [(each, leaves_of(each, f"values[{i}]")) for i, each in enumerate(values)]
    varied = [(each, leaves_of(each, f"tangents[{i}]")) for i, each in enumerate(tangents)]
    active = [
        [leaf for leaf in parts if leaf.path in argument.active]
        for argument, (_, parts) in zip(arguments, varied, strict=True)
    ]
    numbers = [leaf for parts in active for leaf in parts if leaf.is_number]
    shadows, before, after = _shadows(arguments, active)
    scope: dict[str, Any] = {"zeros_like": np.zeros_like, "added": added}
    call, found = pulled_call(
        *(linear.dispatcher, [*constant, *varied], shadows, numbers, "cotangent", scope, config.config.options),
        is_linear=True,
    )
    places = {leaf: f"found[{i}]" for i, leaf in enumerate(found)}
    items = "".join(f"{_returned(each, parts, places, scope)}, " for each, parts in varied)
    source = "def transposed(config, linear, arguments, values, tangents, cotangent):\n" + "".join(
        [*before, f"    found = {call}\n", *after, f"    return ({items})\n"]
    )
    return function_from("transposed", source, "irad.custom_jvp", scope)


def _shadows(arguments: Any, active: list[list[Leaf]]) -> tuple[dict[Leaf, str], list[str], list[str]]:
    """Shadows of active arrays among the tangents, by leaf; lines that make some, and that give them to arguments."""
    shadows: dict[Leaf, str] = {}
    before: list[str] = []
    after: list[str] = []
    for i, (argument, parts) in enumerate(zip(arguments, active, strict=True)):
        types_of = {leaf.path: leaf.type for leaf in leaves_of(argument.types[0])}
        for leaf in parts:
            if leaf.is_array:
                shadow = leaf.of(f"arguments[{i}].shadow")
                # Tangents are contiguous, and their shadows have to be; the shadow of a view has its strides.
                if getattr(types_of[leaf.path], "layout", "") == "C":
                    shadows[leaf] = shadow
                else:
                    shadows[leaf] = name = f"sum{len(before)}"
                    before.append(f"    {name} = zeros_like({leaf.text})\n")
                    after.append(f"    added({name}, {shadow})\n")
    return shadows, before, after


def _returned(tangent: Any, leaves: list[Leaf], places: dict[Leaf, str], scope: dict[str, Any]) -> str:
    """Expression of what the reverse returns for an argument: its numbers' cotangents, None for everything else."""
    if not any(leaf in places for leaf in leaves):
        return "None"
    return structured(tangent, iter([places.get(leaf, "None") for leaf in leaves]), scope)
