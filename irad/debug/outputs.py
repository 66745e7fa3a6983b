"""Names and values of what debug mode looks at: arguments before and after a call, its value, its derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from llvmlite.ir import IRBuilder, Value
from numba.core.base import BaseContext
from numba.core.types import BaseTuple, Type

from irad.frontend.calls.annotations import Returns, Task
from irad.frontend.derivation import Derivation
from irad.passes.mode import Algebra

Typed: TypeAlias = tuple[Value, Type]
"""A value of generated code with its type."""

_WORDS: Final = {
    Algebra.TANGENTS: "the tangent",
    Algebra.TAYLOR: "the series",
    Algebra.SETS: "what is known of the dependence",
}


def input_names(derivation: Derivation) -> list[str]:
    """The arguments, one for each parameter of the function."""
    return [f"the argument {name}" for name in inspect.signature(derivation.function).parameters]


def memory_word(task: Task) -> str:
    """What the caller gives memory for, up to the name of an argument."""
    return (
        f"{_WORDS[task.mode.algebra]} of" if task.is_forward else "the memory given for the derivative with respect to"
    )


def output_names(derivation: Derivation, targets: Mapping[int, Typed]) -> list[str]:
    """What `looked_at` gives, in its order."""
    names = [f"the value of {derivation.function.__qualname__}"]
    names += [f"{name} after the call" for name in input_names(derivation)]
    task = derivation.task
    if task.is_forward:
        word = _WORDS[task.mode.algebra]
        names.append(f"{word} of the value of {derivation.function.__qualname__}")
        return names + [f"{word} of {derivation.caller_arguments[p].name}" for p in targets]
    if task.returns is not Returns.VALUE:
        names += [f"the derivative with respect to {derivation.caller_arguments[p].name}" for p in task.returned]
    return names + [f"the derivative with respect to {derivation.caller_arguments[p].name}" for p in targets]


def looked_at(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    value: Value,
    arguments: Sequence[Value],
    targets: Mapping[int, Typed],
    result: Typed,
) -> list[Typed]:
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
    found: list[Typed] = [(value, derivation.return_type), *zip(arguments, derivation.argument_types, strict=True)]
    task = derivation.task
    if task.returns is not Returns.VALUE:
        gradient = _gradient(builder, task.returns, task.has_aux, *result)
        if task.single or task.is_forward:
            found.append(gradient)
        else:
            found += [(builder.extract_value(gradient[0], i), item) for i, item in enumerate(_items(gradient[1]))]
    return found + list(targets.values())


def _gradient(builder: IRBuilder, returns: Returns, has_aux: bool, result: Value, result_type: Type) -> Typed:
    """The part of a result that holds the derivatives."""
    if returns is Returns.GRADIENT and not has_aux:
        return result, result_type
    index = 1 if returns is Returns.VALUE_AND_GRADIENT else 0
    return builder.extract_value(result, index), _items(result_type)[index]


def _items(kind: Type) -> tuple[Type, ...]:
    assert isinstance(kind, BaseTuple)
    return tuple(kind.types)
