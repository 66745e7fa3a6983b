"""Names and values of what debug mode looks at: arguments before and after a call, its value, its derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from irad.frontend.calls.annotations import Returns
from irad.frontend.derivation import Derivation

Pairs = list[tuple[Any, Any]]


def input_names(derivation: Derivation) -> list[str]:
    """The arguments, one for each parameter of the function."""
    return [f"the argument {name}" for name in inspect.signature(derivation.function).parameters]


def output_names(derivation: Derivation, targets: Mapping[int, Any]) -> list[str]:
    """What `looked_at` gives, in its order."""
    names = [f"the value of {derivation.function.__qualname__}"]
    names += [f"{name} after the call" for name in input_names(derivation)]
    task = derivation.task
    if task.returns is not Returns.VALUE:
        names += [f"the derivative with respect to {derivation.caller_arguments[p].name}" for p in task.returned]
    return names + [f"the derivative with respect to {derivation.caller_arguments[p].name}" for p in targets]


def looked_at(
    context: Any,
    builder: Any,
    derivation: Derivation,
    value: Any,
    arguments: Sequence[Any],
    targets: Mapping[int, tuple[Any, Any]],
    result: tuple[Any, Any],
) -> Pairs:
    """Values with their types.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        derivation: what was called.
        value: of the primal.
        arguments: of the caller.
        targets: for positions with a destination the caller's value and its type.
        result: of the call, and its type.
    """
    found: Pairs = [(value, derivation.return_type), *zip(arguments, derivation.argument_types, strict=True)]
    task = derivation.task
    if task.returns is not Returns.VALUE:
        gradient = _gradient(builder, task.returns, task.has_aux, *result)
        if task.single:
            found.append(gradient)
        else:
            found += [(builder.extract_value(gradient[0], i), item) for i, item in enumerate(gradient[1].types)]
    return found + list(targets.values())


def _gradient(builder: Any, returns: Returns, has_aux: bool, result: Any, result_type: Any) -> tuple[Any, Any]:
    """The part of a result that holds the derivatives."""
    if returns is Returns.GRADIENT and not has_aux:
        return result, result_type
    index = 1 if returns is Returns.VALUE_AND_GRADIENT else 0
    return builder.extract_value(result, index), result_type.types[index]
