"""Results of derivative calls: their Numba types, and how gradients are put together in the structure of arguments.

grad of f(x: float64[:], (a: float64, n: int64))      (float64[::1], (float64, none))
the same with `value_and_grad`, f returning float64   (float64, (float64[::1], (float64, none)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numba.core import types

from irad.frontend.calls.task import Returns, Task
from irad.frontend.derivation import Derivation
from irad.frontend.emit import Emit
from irad.frontend.values import gradients, layouts, tree
from irad.frontend.values.tree import Content, LeafKind


def derivative_type(derivation: Derivation, target_types: Mapping[int, Any]) -> Any:
    """The Numba type of a derivative call's result.

    Args:
        derivation: derivation of the called derivative.
        target_types: types of the destinations, by position.
    """
    task, value_type = derivation.task, gradients.owned_type(derivation.return_type)
    if task.returns is Returns.VALUE:
        return value_type
    if task.is_forward:
        tangent = gradients.tangent_type(derivation.differentiated_type)
        tangents = types.UniTuple(tangent, task.mode.width) if task.is_batched else tangent
        value, *aux = value_type.types if task.has_aux else (value_type,)
        parts = {
            Returns.VALUE_AND_GRADIENT: (value, tangents, *aux),
            Returns.GRADIENT_AND_VALUE: (tangents, value, *aux),
            Returns.GRADIENT: (tangents, *aux),
        }[task.returns]
        return types.BaseTuple.from_types(parts) if len(parts) > 1 else tangents
    found = [in_all_lanes(task, gradient_types_of(derivation, p, target_types)) for p in task.returned]
    gradient = found[0] if task.single else types.BaseTuple.from_types(tuple(found))
    if task.returns is Returns.GRADIENT and task.has_aux:
        return types.BaseTuple.from_types((gradient, value_type.types[1]))
    match task.returns:
        case Returns.VALUE_AND_GRADIENT:
            return types.BaseTuple.from_types((value_type, gradient))
        case Returns.GRADIENT_AND_VALUE:
            return types.BaseTuple.from_types((gradient, value_type))
        case _:
            return gradient


def gradient_types_of(derivation: Derivation, position: int, target_types: Mapping[int, Any]) -> list[Any]:
    """The types of the derivatives with respect to an argument, lane by lane."""
    task, kind, target = derivation.task, derivation.caller_arguments[position].type, target_types.get(position)
    if not task.is_batched:
        return [gradient_type_of(kind, target)]
    return [gradient_type_of(kind, target and target.types[lane]) for lane in range(task.mode.width)]


def in_all_lanes(task: Task, found: list[Any]) -> Any:
    """The result type for derivatives of some types, one for each lane."""
    return types.BaseTuple.from_types(tuple(found)) if task.is_batched else found[0]


def gradient_type_of(numba_type: types.Type, target: Any) -> Any:
    """The type of a derivative; its arrays are the caller's where a destination is returned."""
    if target is None:
        return gradients.gradient_type(numba_type)
    if isinstance(numba_type, types.BaseTuple):
        pairs = zip(numba_type.types, target.types, strict=True)
        return layouts.tuple_type(numba_type, tuple(gradient_type_of(item, t) for item, t in pairs))
    kind = tree.kind_of(numba_type)
    return target if kind is LeafKind.ARRAY or kind.is_reference else gradients.gradient_type(numba_type)


def structured(
    emit: Emit,
    numba_type: Any,
    gradient_type: Any,
    leaves: Iterator[Content],
    make: Callable[[Content, Any], Any],
) -> Any:
    """A derivative in the structure of an argument.

    Args:
        numba_type: type of the argument.
        gradient_type: type of the derivative.
        leaves: leaves of the argument.
        make: the derivative of a leaf as a value of a type.
    """
    context = emit.context
    if isinstance(numba_type, types.BaseTuple):
        parts = zip(numba_type.types, gradient_type.types, strict=True)
        items = [structured(emit, item, its_gradient, leaves, make) for item, its_gradient in parts]
        return context.make_tuple(emit.builder, gradient_type, items)
    leaf = next(leaves)
    return context.get_dummy_value() if leaf.kind is LeafKind.INERT else make(leaf, gradient_type)
