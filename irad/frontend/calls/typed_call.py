"""Typing and lowering of the call of a derivative, for an intrinsic of `dispatcher.intrinsic_call`.

Typing derives. So this loads the engine, which a process that finds its derivatives on disk does not need; hence it is
not part of `dispatcher`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.typing import Signature

from irad.errors import SignatureError
from irad.frontend.calls import seeding
from irad.frontend.calls.definition import Definition, DerivativeCall
from irad.frontend.calls.lanes import seed_types_of_lanes, types_of_lanes
from irad.frontend.calls.lowering import check_forward, emit_call, emit_forward_call
from irad.frontend.calls.result_types import derivative_type
from irad.frontend.calls.signature import check_destination, check_written_back, name_of
from irad.frontend.calls.sweeps import Extras
from irad.frontend.calls.task import Role, Task
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.emit import Emit
from irad.frontend.memory.arrays import own_tangent
from irad.frontend.numba.messages import described, location_of
from irad.frontend.numba.private import shadow
from irad.frontend.numba.target import typing_context


def typed_call(
    call: DerivativeCall, argument_types: tuple[Any, ...], intrinsic_call: Callable[..., Definition]
) -> tuple[Any, Callable[..., Any]]:
    """The signature of a call for the types of its arguments, and its lowering: ``lower(emit, signature, values)``.

    Args:
        call: the called derivative.
        argument_types: those of the function, then that of the tuple of destinations, then that of the seed.
        intrinsic_call: `dispatcher.intrinsic_call`, for the gradient of a recursive function.
    """
    primal, task, count = call.primal, call.task, call.count
    rest = list(argument_types[count:])
    targets_given = target_types(primal, task, rest.pop(0)) if call.has_targets else {}
    seed_type = rest.pop(0) if call.has_seed else None

    def derive() -> Derivation:
        """The derivation for the current compiler: Numba, which has typed the call once for both, or irad."""
        types_of_arguments = tuple(argument_types[:count])
        if not shadow().differentiates():
            return derivation_of(primal, types_of_arguments, task)
        return derivation_to_differentiate(primal, types_of_arguments, task)

    derivation = derive()
    check_targets(primal, derivation, targets_given)
    for each in () if seed_type is None else seed_types_of_lanes(primal, seed_type, task):
        seeding.check_seed(primal.py_func.__qualname__, derivation.return_type, each)
    if task.is_forward:
        check_forward(derivation)
    result_type = derivative_type(derivation, targets_given)
    exchanged: list[Any] = []

    def lower(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        if shadow().refuses_pullbacks and not task.is_forward and derive().compiled.derivative.is_recursive:
            if not exchanged:
                from irad.frontend.calls.recursive_gradients import (  # few functions are recursive
                    Exchanged,
                    check_exchange,
                )

                check_exchange(primal, derive())
                exchanged.append(Exchanged(primal, derive(), intrinsic_call))
            return exchanged[0].lower(emit, values)
        more = list(values[count:])
        targets = target_values(emit.builder, targets_given, more.pop(0)) if call.has_targets else {}
        seed = (more.pop(0), seed_type) if call.has_seed else None
        arguments = values[:count]
        copies = _copies_of_tangents(emit, derive(), arguments, targets)
        held = (*zip(values, signature.args, strict=True), *copies.values())
        extras = Extras({**targets, **copies}, seed, held)
        emit_it = emit_forward_call if task.is_forward else emit_call
        result = emit_it(emit, derive(), arguments, signature.return_type, extras)
        for value, kind in copies.values():
            emit.context.nrt.decref(emit.builder, kind, value)
        return result

    return result_type(*argument_types), lower


def derivation_to_differentiate(primal: Dispatcher, argument_types: tuple[Any, ...], task: Task) -> Derivation:
    """The derivation of a call that is differentiated itself; the outer derivative watches it, if any does.

    Its parallel loops are serial, and its checkpoints calls: the launch of lanes has no derivative, and the rule of a
    checkpoint differentiates in compiled code.

    Raises:
        IradError: there is no first derivative.
    """
    unwatched = replace(task.options, debug=False, max_tape_bytes=None)
    with shadow().suspended():
        inner = replace(task, is_primal=True, speculates=False, options=unwatched)
        return derivation_of(primal, argument_types, inner)


def target_types(primal: Dispatcher, task: Task, given: Any) -> dict[int, Any]:
    """The types in the tuple of destinations, by position.

    Raises:
        SignatureError: it is not a tuple, or one for another number of arguments.
    """
    found = given.types if isinstance(given, types.BaseTuple) else None
    if task.is_forward and (found is None or len(found) != len(task.destinations)):
        raise SignatureError(
            f"the tangents of {len(task.destinations)} arguments of {name_of(primal)} are {described(given)}",
            f"pass a tuple of {len(task.destinations)} tangents, one for each of argnums",
            "each tangent has the structure of its argument",
            location_of(primal.py_func),
        )
    if found is None or len(found) != len(task.destinations):
        raise SignatureError(
            f"the derivatives of {len(task.destinations)} arguments of {name_of(primal)} are to be "
            f"written to {described(given)}",
            f"pass a tuple of {len(task.destinations)} arrays, one for each of argnums",
            "each derivative has the shape of its argument",
            location_of(primal.py_func),
        )
    return dict(zip(task.destinations, found, strict=True))


def target_values(builder: IRBuilder, kinds: Mapping[int, Any], value: Value) -> dict[int, tuple[Any, Any]]:
    """The values in the tuple of destinations with their types, by position."""
    return {position: (builder.extract_value(value, i), kind) for i, (position, kind) in enumerate(kinds.items())}


def _copies_of_tangents(
    emit: Emit,
    derivation: Derivation,
    arguments: Sequence[Value],
    targets: Mapping[int, tuple[Any, Any]],
) -> dict[int, tuple[Any, Any]]:
    """New references to copies of the tangents that the function would overwrite, though the caller keeps them."""
    builder = emit.builder
    found = dict[int, tuple[Any, Any]]()
    for position in sorted(derivation.task.kept & targets.keys()):
        value, kind = targets[position]
        leaves = derivation.arguments[position].leaves
        if any(leaf.is_array and leaf.data_index in derivation.compiled.written for leaf in leaves):
            argument, of_argument = _argument_at(builder, derivation, arguments, position)
            function = typing_context().resolve_value_type(own_tangent)
            own = typing_context().resolve_function_type(function, (kind, of_argument), {})
            code = lambda tangent, argument: own_tangent(tangent, argument)  # noqa: E731
            found[position] = emit.context.compile_internal(builder, code, own, [value, argument]), own.return_type
    return found


def _argument_at(
    builder: IRBuilder, derivation: Derivation, arguments: Sequence[Value], position: int
) -> tuple[Any, Any]:
    """The value and the type of an argument; those that a star collects count one by one."""
    kind, last = derivation.caller_arguments[position].type, len(arguments) - 1
    *_, parameter = inspect.signature(derivation.function).parameters.values()
    if position < last or parameter.kind is not parameter.VAR_POSITIONAL:
        return arguments[position], kind
    return builder.extract_value(arguments[last], position - last), kind


def check_targets(
    primal: Dispatcher, derivation: Derivation, kinds: Mapping[int, Any], *, are_kept: bool = False
) -> None:
    """Checks the types of the destinations.

    Args:
        primal: the dispatcher of the function.
        derivation: derivation of the called derivative.
        kinds: the types, by position.
        are_kept: whether a tape holds the destinations.

    Raises:
        SignatureError: one does not fit its argument.
    """
    for position, kind in kinds.items():
        leaves = derivation.arguments[position].leaves
        written = {leaf.path for leaf in leaves if leaf.data_index in derivation.compiled.written}
        task, argument = derivation.task, derivation.caller_arguments[position]
        role = task.role_of(position)
        is_in_tuple = are_kept or task.is_batched or (role is Role.INTO and not task.single)
        for each in types_of_lanes(primal, argument, kind, task):
            check_destination(primal, argument, role, each, written)
            if role.takes_derivative:
                check_written_back(primal, argument, each, is_in_tuple=is_in_tuple)
