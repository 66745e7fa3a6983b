"""Emits the call of a derivative into the function that Numba is lowering.

The order of one call: arguments are flattened; memory of the caller is checked; shadows are allocated; the augmented
primal runs; the return value's cotangent is put into its shadow; the reverse sweep runs; gradients are built. When
the primal raises, all that was allocated is released and Numba's own protocol carries the exception on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext

from irad.errors import SignatureError
from irad.frontend.calls import seeding
from irad.frontend.calls.annotations import Returns, Role, Seed
from irad.frontend.calls.failure import Failure
from irad.frontend.calls.lanes import seeds_of_lanes, targets_of_lanes
from irad.frontend.calls.result_types import derivative_type, gradient_types_of, structured
from irad.frontend.calls.retry import check_for_nan
from irad.frontend.calls.sweeps import Extras, Lane, Sweeps
from irad.frontend.calls.watched import output_names
from irad.frontend.derivation import Derivation
from irad.frontend.memory.given_arrays import memory_at
from irad.frontend.memory.kept_notes import KeptNotes
from irad.frontend.memory.returned_walk import kept_notes
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind

_VOID_POINTER = cgutils.voidptr_t
_STATUS = ir.IntType(32)


def emit_call(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    arguments: Sequence[Any],
    result_type: Any,
    extras: Extras,
) -> Any:
    """Emits both sweeps.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        derivation: what is called.
        arguments: the caller's values, one per parameter of the primal.
        result_type: the Numba type of the result.
        extras: what the caller passes besides.

    Returns:
        The result, a new reference.
    """
    keeps_value = derivation.task.returns is not Returns.GRADIENT
    first, *others = targets_of_lanes(builder, extras.targets, derivation.task)
    sweeps = Sweeps(context, builder, derivation, arguments, replace(extras, targets=first), keeps_value)
    for targets in others:
        sweeps.add_lane(targets)
    _check_scalars(sweeps, extras)
    frame = sweeps.frame_on_stack()
    arena = sweeps.open_arena()
    sweeps.watch(arena, arguments, extras, output_names(derivation, extras.targets))
    status = sweeps.run_augmented(frame, arena)
    result = sweeps.zeroed(context.get_value_type(result_type))
    with sweeps.succeeded(status, arena):
        misfits = _seed(sweeps, extras, arena)
        sweeps.run_reverse(frame, arena)
        failure = Failure.of(context, builder, arena)
        sweeps.close_arena(arena)
        _raise_on_bad_seed(sweeps, misfits)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
            sweeps.drop_value()
            sweeps.references.release()
            failure.raise_it(context, builder, sweeps.watched.when_full if sweeps.watched else None)
        if derivation.compiled.derivative.is_speculative:
            check_for_nan(sweeps)
        for lane in sweeps.lanes:
            lane.memory.copy_out()
        _store_scalars(sweeps, extras)
        value = sweeps.held_value()
        builder.store(_result(sweeps, extras), result)
        sweeps.references.release_transient()
        sweeps.finish_watched(extras, arguments, value, (builder.load(result), result_type))
    return builder.load(result)


def _scalar_targets(sweeps: Sweeps, extras: Extras) -> Iterator[tuple[Argument, Content, Any, Any]]:
    """The numbers whose derivative is written to an array, each with that array and its type."""
    for argument, leaf in sweeps.derivation.active_numbers():
        if sweeps.derivation.task.role_of(argument.position) is Role.INTO:
            target = extras.targets[argument.position]
            yield argument, leaf, *memory_at(sweeps.context, sweeps.builder, *target, leaf.path)


def _check_scalars(sweeps: Sweeps, extras: Extras) -> None:
    for argument, _, array, _ in _scalar_targets(sweeps, extras):
        shape = cgutils.unpack_tuple(sweeps.builder, array.shape)
        sweeps.references.refuse(
            sweeps.builder.icmp_signed("!=", array.nitems, cgutils.intp_t(1)),
            f"the destination of {argument}, a number, is an array with more or fewer than one element",
            "pass an array with one element: np.zeros(1)",
            "the derivative with respect to a number is a single number",
            (shape, [cgutils.intp_t(1)] * len(shape)),
        )


def _seed(sweeps: Sweeps, extras: Extras, arena: Value) -> list[seeding.Misfit]:
    """Writes the cotangents of the return value; the result says where a seed has another shape."""
    context, builder, derivation = sweeps.context, sweeps.builder, sweeps.derivation
    shadows = [lane.return_shadow for lane in sweeps.lanes]
    match derivation.task.seed:
        case Seed.ONE:
            for shadow in shadows:
                seeding.store_unit(builder, shadow, (0,) if derivation.task.has_aux else ())
        case Seed.GIVEN:
            assert extras.seed is not None
            value = sweeps.value()
            seeds = seeds_of_lanes(builder, extras.seed, derivation.task)
            lanes = [(shadow, partial(_notes, sweeps, arena, shadow)) for shadow in shadows]
            return seeding.add_seeds(context, builder, derivation.return_type, value, seeds, lanes)
        case Seed.NONE:
            pass
    return []


def _notes(sweeps: Sweeps, arena: Value, shadow: Value, content: Content) -> KeptNotes:
    """Notes of where the derivative of a part of the value lies."""

    def fail() -> None:
        sweeps.close_arena(arena)
        sweeps.drop_value()
        sweeps.references.fail()

    places = seeding.places_of(sweeps.builder, (sweeps.return_pointer, shadow), content)
    return kept_notes(sweeps.context, sweeps.builder, content, places, arena, fail)


def _raise_on_bad_seed(sweeps: Sweeps, misfits: Sequence[seeding.Misfit]) -> None:
    for misfit in misfits:
        with sweeps.builder.if_then(misfit.is_there, likely=False):
            sweeps.drop_value()
            sweeps.references.release()
            misfit.raise_it(sweeps.context, sweeps.builder, SignatureError)


def _store_scalars(sweeps: Sweeps, extras: Extras) -> None:
    """Writes derivatives of numbers to the one-element arrays given for them."""
    for _, leaf, array, array_type in _scalar_targets(sweeps, extras):
        sweeps.builder.store(sweeps.cotangents.value(leaf, array_type.dtype), array.data)


def _result(sweeps: Sweeps, extras: Extras) -> Any:
    """Builds what the task returns; the value is dropped where it is not part of that."""
    context, builder, task = sweeps.context, sweeps.builder, sweeps.derivation.task
    if task.returns is Returns.VALUE:
        return sweeps.kept_value()
    target_types = {p: kind for p, (_, kind) in extras.targets.items()}
    found = [_gradients(sweeps, lane, number, target_types) for number, lane in enumerate(sweeps.lanes)]
    if task.is_batched:
        found = [[_packed(context, builder, lanes) for lanes in zip(*found, strict=True)]]
    gradient, _ = found[0][0] if task.single else _packed(context, builder, found[0])
    result_type = derivative_type(sweeps.derivation, target_types)
    value = sweeps.kept_value()
    match task.returns:
        case Returns.GRADIENT:
            if task.has_aux:
                value_type = sweeps.derivation.return_type
                assert isinstance(value_type, types.BaseTuple)
                aux = builder.extract_value(value, 1)
                context.nrt.decref(builder, value_type.types[0], builder.extract_value(value, 0))
                return context.make_tuple(builder, result_type, (gradient, aux))
            sweeps.drop_value()
            return gradient
        case Returns.VALUE_AND_GRADIENT:
            return context.make_tuple(builder, result_type, (value, gradient))
        case Returns.GRADIENT_AND_VALUE:
            return context.make_tuple(builder, result_type, (gradient, value))


def _gradients(sweeps: Sweeps, lane: Lane, number: int, target_types: Mapping[int, Any]) -> list[tuple[Any, Any]]:
    """The derivatives of one direction that are returned, with their types."""
    context, builder, derivation = sweeps.context, sweeps.builder, sweeps.derivation
    objects = lane.memory.object_gradients()

    def make(leaf: Content, gradient_type: Any) -> Any:
        if leaf.kind.has_memory:
            return lane.memory.gradient_of(leaf, gradient_type)
        if leaf.index in objects:
            return objects[leaf.index]
        if leaf.kind is LeafKind.LIST:
            return lane.memory.list_gradient(leaf, gradient_type)
        return lane.cotangents.value(leaf, gradient_type)

    found = []
    for position in derivation.task.returned:
        numba_type = derivation.caller_arguments[position].type
        item_type = gradient_types_of(derivation, position, target_types)[number]
        leaves = iter(derivation.arguments[position].leaves)
        found.append((structured(context, builder, numba_type, item_type, leaves, make), item_type))
    return found


def _packed(context: BaseContext, builder: IRBuilder, items: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Values with their types as a tuple, with its type."""
    kind = types.BaseTuple.from_types(tuple(kind for _, kind in items))
    return context.make_tuple(builder, kind, [value for value, _ in items]), kind
