"""Emits the call of a derivative into the function that Numba is lowering, in reverse or in forward mode.

The order of one call in reverse mode: arguments are flattened; memory of the caller is checked; shadows are allocated;
the augmented primal runs; the return value's cotangent is put into its shadow; the reverse sweep runs; gradients are
built.

In forward mode: the tangents of arrays become their shadows; the primal runs beside its tangents; the tangent of the
value is read from the shadow of the memory that it was returned through.

When the primal raises, all that was allocated is released and Numba's own protocol carries the exception on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llvmlite import ir
from llvmlite.ir import Constant, Value
from numba.core import cgutils, types

from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls import seeding
from irad.frontend.calls.exceptions import Failure
from irad.frontend.calls.lanes import seeds_of_lanes, targets_of_lanes
from irad.frontend.calls.nan_checks import check_for_nan
from irad.frontend.calls.result_types import derivative_type, gradient_types_of, structured
from irad.frontend.calls.seeding import part_of, place_of, places_of
from irad.frontend.calls.sweeps import Extras, Lane, Sweeps
from irad.frontend.calls.task import Returns, Role, Seed
from irad.frontend.calls.watched import output_names
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.arrays import memory_at
from irad.frontend.memory.object_gradients import ObjectGradients
from irad.frontend.memory.regions import SsaNotes
from irad.frontend.memory.shadows import ALIGNMENT
from irad.frontend.memory.visitor import Cursor
from irad.frontend.memory.walks import notes_in_ssa
from irad.frontend.numba.boxing import owned_record
from irad.frontend.numba.messages import described, location_of
from irad.frontend.values import gradients, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import (
    FLAG_OF_OPTIONAL,
    Content,
    LeafKind,
    OptionalContent,
    RecordContent,
    TupleContent,
    may_hold_floats,
    unknown_part,
)

_STATUS = ir.IntType(32)


def emit_call(
    emit: Emit,
    derivation: Derivation,
    arguments: Sequence[Value],
    result_type: types.Type,
    extras: Extras,
) -> Value:
    """Emits both sweeps.

    Args:
        derivation: derivation of the called derivative.
        arguments: the caller's values, one per parameter of the primal.
        result_type: the Numba type of the result.
        extras: further arguments from the caller.

    Returns:
        The result, a new reference.
    """
    builder = emit.builder
    keeps_value = derivation.task.returns is not Returns.GRADIENT
    first, *others = targets_of_lanes(builder, extras.targets, derivation.task)
    sweeps = Sweeps(emit, derivation, arguments, replace(extras, targets=first), keeps_value)
    for targets in others:
        sweeps.add_lane(targets)
    _check_scalars(sweeps, extras)
    frame = sweeps.frame_on_stack()
    arena = sweeps.open_arena()
    sweeps.watch(arena, arguments, extras, output_names(derivation, extras.targets))
    status = sweeps.run_augmented(frame, arena)
    result = sweeps.zeroed(emit.context.get_value_type(result_type))
    with sweeps.succeeded(status, arena):
        misfits = _seed(sweeps, extras, arena)
        sweeps.run_reverse(frame, arena)
        failure = Failure.of(emit, arena)
        sweeps.close_arena(arena)
        # Not earlier: whatever is raised, the arena has to be closed first.
        _raise_on_bad_seed(sweeps, misfits)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
            sweeps.drop_value()
            sweeps.references.release()
            failure.raise_it(emit, sweeps.watched.when_full if sweeps.watched else None)
        if derivation.compiled.derivative.is_speculative:
            check_for_nan(sweeps)
        for lane in sweeps.lanes:
            lane.memory.copy_out()
        _store_scalars(sweeps, extras)
        value = sweeps.held_value()
        builder.store(_reverse_result(sweeps, extras), result)
        sweeps.references.release_transient()
        sweeps.finish_watched(extras, arguments, value, (builder.load(result), result_type))
    return builder.load(result)


def _scalar_targets(sweeps: Sweeps, extras: Extras) -> Iterator[tuple[Argument, Content, Any, Any]]:
    """The numbers whose derivative is written to an array, each with that array and its type."""
    for argument, leaf in sweeps.derivation.active_numbers():
        if sweeps.derivation.task.role_of(argument.position) is Role.INTO:
            target = extras.targets[argument.position]
            yield argument, leaf, *memory_at(sweeps.emit, *target, leaf.path)


def _check_scalars(sweeps: Sweeps, extras: Extras) -> None:
    for argument, _, array, _ in _scalar_targets(sweeps, extras):
        shape = cgutils.unpack_tuple(sweeps.builder, array.shape)
        sweeps.references.refuse(
            sweeps.builder.icmp_signed("!=", array.nitems, INTP(1)),
            f"the destination of {argument}, a number, is an array with more or fewer than one element",
            "pass an array with one element: np.zeros(1)",
            "the derivative with respect to a number is a single number",
            (shape, [INTP(1)] * len(shape)),
        )


def _seed(sweeps: Sweeps, extras: Extras, arena: Value) -> list[seeding.Misfit]:
    """Writes the cotangents of the return value; the result says where a seed has another shape."""
    builder, derivation = sweeps.builder, sweeps.derivation
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
            return seeding.add_seeds(sweeps.emit, derivation.return_type, value, seeds, lanes)
        case Seed.NONE:
            pass
    return []


def _notes(sweeps: Sweeps, arena: Value, shadow: Value, content: Content) -> SsaNotes:
    """Notes of where the derivative of a part of the value lies."""

    def fail() -> None:
        sweeps.close_arena(arena)
        sweeps.drop_value()
        sweeps.references.fail()

    places = seeding.places_of(sweeps.builder, (sweeps.return_pointer, shadow), content)
    return notes_in_ssa(sweeps.emit, content, places, arena, fail)


def _raise_on_bad_seed(sweeps: Sweeps, misfits: Sequence[seeding.Misfit]) -> None:
    for misfit in misfits:
        with sweeps.builder.if_then(misfit.is_there, likely=False):
            sweeps.drop_value()
            sweeps.references.release()
            misfit.raise_it(sweeps.emit, SignatureError)


def _store_scalars(sweeps: Sweeps, extras: Extras) -> None:
    """Writes derivatives of numbers to the one-element arrays given for them."""
    for _, leaf, array, array_type in _scalar_targets(sweeps, extras):
        sweeps.builder.store(sweeps.cotangents.value(leaf, array_type.dtype), array.data)


def _reverse_result(sweeps: Sweeps, extras: Extras) -> Any:
    """Builds the result of the task; the value is dropped if it is not part of that."""
    context, builder, task = sweeps.context, sweeps.builder, sweeps.derivation.task
    if task.returns is Returns.VALUE:
        return sweeps.kept_value()
    target_types = {p: kind for p, (_, kind) in extras.targets.items()}
    found = [_gradients(sweeps, lane, number, target_types) for number, lane in enumerate(sweeps.lanes)]
    if task.is_batched:
        found = [[_packed(sweeps.emit, lanes) for lanes in zip(*found, strict=True)]]
    gradient, _ = found[0][0] if task.single else _packed(sweeps.emit, found[0])
    result_type = derivative_type(sweeps.derivation, target_types)
    value = sweeps.kept_value()
    match task.returns:
        case Returns.GRADIENT:
            if task.has_aux:
                value_type = sweeps.derivation.return_type
                assert isinstance(value_type, types.BaseTuple)
                aux = builder.extract_value(value, 1)
                # Of the value only aux is returned, so nobody else drops the reference to the rest.
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
    derivation = sweeps.derivation
    objects = lane.memory.object_gradients()

    def make(leaf: Content, gradient_type: types.Type) -> Any:
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
        found.append((structured(sweeps.emit, numba_type, item_type, leaves, make), item_type))
    return found


def _packed(emit: Emit, items: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Values with their types as a tuple, with its type."""
    kind = types.BaseTuple.from_types(tuple(kind for _, kind in items))
    return emit.context.make_tuple(emit.builder, kind, [value for value, _ in items]), kind


# --- forward mode -----------------------------------------------------------------------------------------------------


def check_forward(derivation: Derivation) -> None:
    """Checks that the tangent of a function's result can be represented.

    Raises:
        UnsupportedError: it cannot.
    """
    function = derivation.function
    for leaf in tree.returned_leaves(derivation.differentiated_type):
        if leaf.kind is LeafKind.INERT and may_hold_floats(leaf):
            part = unknown_part(leaf)
            raise UnsupportedError(
                f"{function.__qualname__} returns {described(leaf.type)}, whose tangent irad cannot represent"
                + (f": it holds {part}" if part else ""),
                "return the numbers in it as arrays or in a tuple",
                "a tangent has an entry for each float, and irad cannot tell where the floats are here",
                location_of(function),
            )


def emit_forward_call(
    emit: Emit,
    derivation: Derivation,
    arguments: Sequence[Value],
    result_type: types.Type,
    extras: Extras,
) -> Value:
    """Emits the primal with its tangents: as `irad.frontend.calls.lowering.emit_call`, with tangents as targets."""
    context, builder = emit.context, emit.builder
    returns = derivation.task.returns
    first, *others = targets_of_lanes(builder, extras.targets, derivation.task)
    in_lane = replace(extras, targets=first)
    sweeps = Sweeps(emit, derivation, arguments, in_lane, returns is not Returns.GRADIENT)
    for targets in others:
        sweeps.add_lane(targets)
    arena = sweeps.open_arena()
    sweeps.watch(arena, arguments, extras, output_names(derivation, extras.targets))
    no_frame = Constant(VOID_POINTER, None)
    tangents = [number for targets in (first, *others) for number in _tangents_of_numbers(sweeps, targets)]
    status = sweeps.run_augmented(no_frame, arena, tangents)
    result = sweeps.zeroed(context.get_value_type(result_type))
    with sweeps.succeeded(status, arena):
        failure = Failure.of(emit, arena)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
            sweeps.close_arena(arena)
            sweeps.drop_value()
            sweeps.references.release()
            failure.raise_it(emit)
        tangent = _tangent_of_value(sweeps, arena, status)
        sweeps.close_arena(arena)
        value = sweeps.held_value()
        items = _forward_result(sweeps, tangent)
        made = items[0] if len(items) == 1 else context.make_tuple(builder, result_type, items)
        builder.store(made, result)
        sweeps.references.release_transient()
        sweeps.finish_watched(extras, arguments, value, (builder.load(result), result_type))
    return builder.load(result)


def _forward_result(sweeps: Sweeps, tangent: Any) -> list[Any]:
    """Results of the call, part by part; the value is dropped if it is not among them."""
    task = sweeps.derivation.task
    if task.returns is Returns.GRADIENT and not task.has_aux:
        sweeps.drop_value()
        return [tangent]
    parts = [sweeps.kept_value()]
    value, *aux = cgutils.unpack_tuple(sweeps.builder, parts[0]) if task.has_aux else parts
    match task.returns:
        case Returns.VALUE_AND_GRADIENT:
            return [value, tangent, *aux]
        case Returns.GRADIENT_AND_VALUE:
            return [tangent, value, *aux]
        case _:
            sweeps.context.nrt.decref(sweeps.builder, sweeps.derivation.differentiated_type, value)
            return [tangent, *aux]


def _tangent_of_value(sweeps: Sweeps, arena: Any, status: Any) -> Any:
    """The tangent of the returned value; for several lanes a tuple."""
    found = [_TangentOfValue(sweeps, arena, lane.return_shadow).build(status) for lane in sweeps.lanes]
    if not sweeps.derivation.task.is_batched:
        return found[0]
    tangent_type = gradients.tangent_type(sweeps.derivation.differentiated_type)
    return sweeps.context.make_tuple(sweeps.builder, types.UniTuple(tangent_type, len(found)), found)


def _tangents_of_numbers(sweeps: Sweeps, targets: Mapping[int, tuple[Any, Any]]) -> Iterator[Any]:
    """The tangents of all floats passed by value, in the order of the LLVM parameters."""
    builder = sweeps.builder
    for argument, leaf in sweeps.derivation.active_numbers():
        value, given = targets[argument.position]
        for step in leaf.path:
            if given == types.none:
                break
            value, given = part_of(builder, value, (step,)), given.types[step]
        yield from _floats_of(sweeps.emit, leaf, value, given)


def _floats_of(emit: Emit, leaf: Content, value: Value, given: Any) -> Iterator[Any]:
    context, builder = emit.context, emit.builder
    zero: Any = cgutils.get_null_value(context.get_value_type(leaf.number))
    number = zero if given == types.none else context.cast(builder, value, given, leaf.number)
    if leaf.float_count == 1:
        yield number
    else:
        for part in range(leaf.float_count):
            yield builder.extract_value(number, part)


class _TangentOfValue:
    """Builds the tangent of the primal's result.

    Args:
        sweeps: sweeps of the call.
        arena: holds shadows until it is closed.
        shadow: shadow of the memory that the value was returned through.
    """

    def __init__(self, sweeps: Sweeps, arena: Any, shadow: Any) -> None:
        self.emit, self.context, self.builder = sweeps.emit, sweeps.context, sweeps.builder
        self.sweeps, self.arena, self.shadow = sweeps, arena, shadow

    def build(self, status: Any) -> Any:
        """A value of the type `tangent_type`, a new reference; the status tells whether the primal returned None."""
        return_type = self.sweeps.derivation.return_type
        if isinstance(return_type, types.Optional):
            return self._optional(return_type, self.builder.not_(status.is_none), tree.content_of(return_type.type))
        content = tree.content_of(return_type)
        if self.sweeps.derivation.task.has_aux:
            assert isinstance(content, TupleContent)
            content = content.parts[0]
        return self._part(content)

    def _part(self, content: Content) -> Any:
        """The tangent of a part of the value."""
        wanted = gradients.tangent_type(content.type)
        if wanted == types.none:
            return self.context.get_dummy_value()
        if isinstance(content, TupleContent):
            return self.context.make_tuple(self.builder, wanted, [self._part(part) for part in content.parts])
        if isinstance(content, OptionalContent):
            flag = place_of(self.builder, self.sweeps.return_pointer, (*content.path, FLAG_OF_OPTIONAL))
            is_there = cgutils.as_bool_bit(self.builder, self.builder.load(flag))
            return self._optional(content.type, is_there, content.inside)
        places = places_of(self.builder, (self.sweeps.return_pointer, self.shadow), content)
        if isinstance(content, RecordContent):
            return self.sweeps.references.keep(wanted, self._record(content, places[1]))
        noted = notes_in_ssa(self.emit, content, places, self.arena, self.fail)
        tangent = ObjectGradients(self.emit, noted, None, self.fail).visit(content, Cursor(shadow=places[1]))
        return self.sweeps.references.keep(wanted, tangent)

    def _record(self, content: RecordContent, shadow: Any) -> Any:
        """A copy of the memory that a shadow points to; zeros if it is null."""
        build, nrt, size = self.builder, self.context.nrt, INTP(content.type.size)
        data = build.load(build.bitcast(shadow, VOID_POINTER.as_pointer()))
        meminfo = nrt.meminfo_alloc_aligned_unchecked(build, size, ALIGNMENT)
        with cgutils.if_unlikely(build, cgutils.is_null(build, meminfo)):
            self.fail()
        start = nrt.meminfo_data(build, meminfo)
        with build.if_else(cgutils.is_null(build, data), likely=False) as (without, with_shadow):
            with without:
                cgutils.memset(build, start, size, 0)
            with with_shadow:
                cgutils.raw_memcpy(build, start, data, size, 1)
        return owned_record(self.context, build, content.type, meminfo, start)

    def _optional(self, return_type: types.Type, is_there: Any, inside: Content) -> Any:
        """The tangent of an optional value: ``inside`` if ``is_there``."""
        wanted, builder, results = gradients.tangent_type(return_type), self.builder, self.sweeps.references.results
        if wanted == types.none:
            return self.context.get_dummy_value()
        place, before, held = self.sweeps.zeroed(self.context.get_value_type(wanted)), builder.block, len(results)
        with builder.if_then(is_there):
            found = self.context.make_optional_value(builder, wanted.type, self._part(inside))
            builder.store(found, place)
        with builder.goto_block(before):
            for slot in results[held:]:  # of an earlier call, where this is a loop
                builder.store(cgutils.get_null_value(slot.type.pointee), slot)
        return builder.load(place)

    def fail(self) -> None:
        """Ends the call when there is no memory."""
        self.sweeps.close_arena(self.arena)
        self.sweeps.drop_value()
        self.sweeps.references.fail()
