"""Rules from partial derivatives: the functions of a rule, written around the partials of a user.

Input   a function that Numba can call, and for each argument a function that gives the partial derivative, or None.
Output  the augmented primal, the reverse and the forward of the rule.
Method  the augmented primal calls the function and keeps its arguments, copied where their memory may change. The
        reverse contracts each partial with the cotangent (`contract`), by the shapes of result and argument; the
        forward multiplies it by the tangents (`forward.partials`), in all directions at once.

    result    argument    partial
    number    number      number
    number    array       array of the argument's shape
    array     number      array of the result's shape
    array     array       array of the result's shape followed by the argument's: the Jacobian; or of the shape that
                          both have: its diagonal
    tuple     any         a tuple of these, one for each part of the result
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from numba.extending import overload

from irad.errors import RuleError
from irad.frontend.custom.annotated import AugmentedReturn, is_active
from irad.frontend.custom.catalogue import is_known, name_of, place_of
from irad.frontend.custom.contract import contract, kept_value, zero_shadow
from irad.frontend.custom.forward.partials import pushed_in_lane, zero_in_lane
from irad.frontend.custom.lanes import in_lanes
from irad.frontend.generated import function_from

Partial = Callable[..., Any] | float | None


def easy_functions(
    f: object, partials: Sequence[Partial], compiled: Callable[[Callable[..., Any]], Any], arity: int
) -> dict[str, Callable[..., Any]]:
    """The functions of a rule, by their kind.

    Args:
        f: what has the rule.
        partials: one for each argument: a function of the arguments, or of these and the result; a number; None.
        compiled: makes a dispatcher of a Python function.
        arity: number of arguments.

    Raises:
        RuleError: a partial takes another number of arguments.
    """
    wanted = slopes(f, partials, compiled, arity)
    needs_result = any(with_result for _, _, with_result in wanted)
    names = [f"x{i}" for i in range(arity)]
    scope = {
        "f": _primal(f, compiled, names),
        "AugmentedReturn": AugmentedReturn,
        "is_active": is_active,
        "contract": contract,
        "kept_value": kept_value,
        "zero_shadow": zero_shadow,
        "in_lanes": in_lanes,
        "pushed_in_lane": pushed_in_lane,
        "zero_in_lane": zero_in_lane,
        **{f"partial{i}": function for i, function, _ in wanted},
    }
    file = f"irad.rules.easy_rule of {name_of(f)}"
    augmented = function_from("augmented", _augmented_source(names, needs_result), file, scope)
    forward = function_from("forward", _forward_source(names, wanted), file, scope)
    for each in (augmented, forward):
        each.calls_primal = True  # type: ignore[attr-defined]
    reverse = function_from("reverse", _reverse_source(names, wanted), file, scope)
    return {"augmented_primal": augmented, "reverse": reverse, "forward": forward}


def slopes(
    f: object, partials: Sequence[Partial], compiled: Callable[[Callable[..., Any]], Any], arity: int
) -> list[tuple[int, object, bool]]:
    """For each argument with a partial its number, what gives the partial, and whether that takes the result, too.

    Args and errors as for `easy_functions`.
    """
    return [(i, *_callable(f, partial, arity, compiled)) for i, partial in enumerate(partials) if partial is not None]


def _primal(f: object, compiled: Callable[[Callable[..., object]], object], names: Sequence[str]) -> object:
    """What a rule calls for the function: the overload that Numba has, else the Python function compiled.

    That shows when the rule is compiled: overloads may come after rules.
    """
    if not isinstance(f, FunctionType):
        return f
    listing = ", ".join(names)
    file = f"irad.rules.easy_rule of {name_of(f)}"
    primal = function_from("primal", f"def primal({listing}):\n    raise NotImplementedError\n", file, {})
    source = (
        f"def typed({listing}):\n"
        f"    called = f if is_known(f) else own\n"
        f"    return lambda {listing}: called({listing})\n"
    )
    overload(primal)(function_from("typed", source, file, {"f": f, "own": compiled(f), "is_known": is_known}))
    return primal


def _augmented_source(names: list[str], needs_result: bool) -> str:
    lines = [f"def augmented(config, {', '.join(names)}):"]
    lines.append(f"    result = f({', '.join(f'{name}.value' for name in names)})")
    for i, name in enumerate(names):
        lines += [
            f"    if config.overwritten[{i}]:",
            f"        kept{i} = kept_value({name}.value)",
            "    else:",
            f"        kept{i} = {name}.value",
        ]
    kept = "".join(f"kept{i}, " for i in range(len(names)))
    lines += [
        f"    tape = ({kept}{'kept_value(result)' if needs_result else 'None'},)",
        "    if config.needs_shadow:",
        "        return AugmentedReturn(result, zero_shadow(result), tape)",
        "    return AugmentedReturn(result, None, tape)",
    ]
    return "\n".join(lines) + "\n"


def _reverse_source(names: list[str], wanted: Sequence[tuple[int, object, bool]]) -> str:
    lines = [f"def reverse(config, cotangent, tape, {', '.join(names)}):"]
    values = [f"tape[{i}]" for i in range(len(names))]
    given = {i: (function, with_result) for i, function, with_result in wanted}
    for i, name in enumerate(names):
        lines.append(f"    if is_active({name}):")
        if i in given:
            listing = ", ".join([*values, *([f"tape[{len(names)}]"] if given[i][1] else [])])
            lines.append(f"        by{i} = contract(cotangent, partial{i}({listing}), {name})")
        else:
            lines.append(f"        by{i} = contract(None, None, {name})")
        lines += ["    else:", f"        by{i} = None"]
    lines.append(f"    return ({''.join(f'by{i}, ' for i in range(len(names)))})")
    return "\n".join(lines) + "\n"


def _forward_source(names: list[str], wanted: Sequence[tuple[int, object, bool]]) -> str:
    values = [f"{name}.value" for name in names]
    lines = [f"def forward(config, {', '.join(names)}):", f"    result = f({', '.join(values)})"]
    lines += ["    if not config.needs_shadow:", "        return result, None"]
    lines.append("    tangents = in_lanes(config, zero_in_lane, result)")
    for i, _, with_result in wanted:
        listing = ", ".join([*values, *(["result"] if with_result else [])])
        lines.append(f"    if is_active(x{i}):")
        lines.append(f"        slope{i} = partial{i}({listing})")
        lines.append(f"        tangents = in_lanes(config, pushed_in_lane, tangents, slope{i}, x{i}.tangent)")
    return "\n".join([*lines, "    return result, tangents"]) + "\n"


def _callable(
    f: object, partial: object, arity: int, compiled: Callable[[Callable[..., object]], object]
) -> tuple[object, bool]:
    """A dispatcher of a partial, and whether it wants the result."""
    if not callable(partial):
        if isinstance(partial, bool) or not isinstance(partial, int | float | complex):
            raise RuleError(
                f"a partial derivative of {name_of(f)} is {partial!r}",
                "pass a function, a number or None for each argument",
                "it is called with the arguments, or is a constant factor",
            )
        return compiled(_constant(partial, arity)), False
    function = getattr(partial, "py_func", partial)
    try:
        count = len(inspect.signature(function).parameters)
    except ValueError:  # a function of NumPy's, say
        count = arity
    if count not in (arity, arity + 1):
        raise RuleError(
            f"a partial derivative of {name_of(f)} takes {count} arguments: expected {arity}, or {arity + 1} with the "
            "result last",
            f"write it as a function of the arguments of {name_of(f)}",
            "it is called with all arguments, since it may depend on any of them",
            place_of(partial),
        )
    return partial if hasattr(partial, "py_func") else compiled(partial), count == arity + 1


def _constant(value: object, arity: int) -> Callable[..., object]:
    names = ", ".join(f"x{i}" for i in range(arity))
    source = f"def constant({names}):\n    return value\n"
    return function_from("constant", source, "irad.rules.easy_rule", {"value": value})
