"""Emits the forward sweep that is called separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.calls.annotations import Role
from irad.frontend.calls.kept import raise_kept
from irad.frontend.calls.lanes import targets_of_lanes
from irad.frontend.calls.seeding import place_of, places_of
from irad.frontend.calls.separate.state import State, new_state
from irad.frontend.calls.separate.sweep_types import augmented_type, objects_given
from irad.frontend.calls.sweeps import Extras, Lane, Sweeps
from irad.frontend.calls.watched import output_names
from irad.frontend.derivation import Derivation
from irad.frontend.memory.returned_walk import noted_words
from irad.frontend.memory.shadows import MEMINFO_TYPE, all_of
from irad.frontend.values import build

_INTP = cgutils.intp_t
_I64 = ir.IntType(64)
_VOID_POINTER = cgutils.voidptr_t


def emit_augmented(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    values: Sequence[Any],
    number: int,
    given: Extras,
) -> Any:
    """Emits the forward sweep; the result has the type `augmented_type`.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        derivation: what is called.
        values: the arguments.
        number: of the specialisation, which the sweep returns.
        given: what the caller passes besides.
    """
    first, *others = targets_of_lanes(builder, given.targets, derivation.task)
    state, owner, array = new_state(context, builder, derivation, given.held)
    extras = Extras(first, held=(*given.held, (owner, MEMINFO_TYPE)), places=(state.value, state.shadows[0]))
    sweeps = Sweeps(context, builder, derivation, values, extras, keeps_value=True, keeps_tape=True)
    for targets, shadow in zip(others, state.shadows[1:], strict=True):
        sweeps.add_lane(targets, shadow)
    arena = sweeps.open_arena()
    sweeps.watch(arena, values, replace(extras, targets=given.targets), output_names(derivation, {})[: 1 + len(values)])
    status = sweeps.run_augmented(state.frame, arena)
    result_type = augmented_type(derivation, {position: kind for position, (_, kind) in given.targets.items()})
    result = sweeps.zeroed(context.get_value_type(result_type))
    with sweeps.succeeded(status, arena):
        builder.store(arena, state.field("arena", _VOID_POINTER))
        _note_returned(sweeps, state, arena)
        sweeps.references.defer_transient(sweeps.support("irad.arena_defer", ir.VoidType(), [_VOID_POINTER] * 2), arena)
        kinds = iter(result_type.types[3].types)
        every = [shadow for lane in sweeps.lanes for shadow in _shadows(sweeps, lane, given.targets, kinds)]
        shadows = context.make_tuple(builder, result_type.types[3], every)
        items = (_INTP(number), sweeps.kept_value(), array, shadows)
        builder.store(context.make_tuple(builder, result_type, items), result)
        looked_at = [(sweeps.value(), derivation.return_type), *zip(values, derivation.argument_types, strict=True)]
        _finish_watching(sweeps, state, looked_at, [*given.held, (builder.load(result), result_type)])
    return builder.load(result)


def _note_returned(sweeps: Sweeps, state: State, arena: Value) -> None:
    """Notes where the derivatives of the lists, dictionaries and instances lie that the function returned."""
    context, builder, references = sweeps.context, sweeps.builder, sweeps.references
    references.on_failure = sweeps.drop_value
    for lane, notes in zip(sweeps.lanes, state.notes, strict=True):
        for part, flags in build.returned_references(sweeps.derivation.return_type).items():
            slot = references.slot(references.transient)
            loaded = (builder.load(place_of(builder, sweeps.return_pointer, flag)) for flag in flags)
            with builder.if_then(all_of(builder, (cgutils.as_bool_bit(builder, each) for each in loaded))):
                places = places_of(builder, (sweeps.return_pointer, lane.return_shadow), part)
                builder.store(noted_words(context, builder, part, places, arena, references, slot), notes[part])
    references.on_failure = None


def _shadows(sweeps: Sweeps, lane: Lane, targets: Any, kinds: Iterator[Any]) -> Iterator[Any]:
    """The shadows of the arguments in one direction, in the order of their types, which are taken."""
    derivation, memory = sweeps.derivation, lane.memory
    for argument, leaf in derivation.active_memory():
        kind = next(kinds)
        if argument.position in targets:
            yield memory.given_to(leaf)
            continue
        shadow = memory.gradient_of(leaf, kind)
        if derivation.task.role_of(argument.position) is Role.WORKSPACE:  # whose shadow the arena releases as well
            sweeps.context.nrt.incref(sweeps.builder, kind, shadow)
        yield shadow
    blocks = *(memory.list_shadow(leaf) for _, leaf in derivation.active_lists()), *memory.object_state()
    for shadow in (*blocks, *(memory.object_given(*each) for each in objects_given(derivation))):
        next(kinds)
        yield shadow


def _finish_watching(sweeps: Sweeps, state: State, looked_at: Sequence[Any], held: Sequence[tuple[Any, Any]]) -> None:
    """Ends the sweep as a call of debug mode: raises if something is wrong with what the function gave."""
    if sweeps.watched is None:
        return
    context, builder = sweeps.context, sweeps.builder
    builder.store(sweeps.watched.call, state.field("call", _I64))
    with builder.if_then(sweeps.watched.finish_augmented(looked_at), likely=False):
        for value, numba_type in held:
            context.nrt.decref(builder, numba_type, value)
        raise_kept(context, builder)
