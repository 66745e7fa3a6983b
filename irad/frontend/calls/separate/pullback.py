"""Emits the reverse sweep that is called separately: it reads a state, and makes gradients of cotangents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext

from irad.errors import SignatureError
from irad.frontend.calls import seeding
from irad.frontend.calls.failure import Failure, arena_field
from irad.frontend.calls.kept import raise_kept
from irad.frontend.calls.lanes import seeds_of_lanes
from irad.frontend.calls.result_types import gradient_types_of, structured
from irad.frontend.calls.separate.final_arrays import add_final, final_parts
from irad.frontend.calls.separate.state import State
from irad.frontend.calls.separate.sweep_types import gradients_type, objects_given
from irad.frontend.calls.sweeps import Cotangents
from irad.frontend.calls.watched import WatchedCall
from irad.frontend.derivation import Derivation
from irad.frontend.memory.buffers import copy_arrays
from irad.frontend.memory.given_arrays import returned_shadow
from irad.frontend.memory.given_shadows import GivenObject, GivenShadows
from irad.frontend.memory.given_values import SHADOW, GivenValues, Visit, VisitBlock
from irad.frontend.memory.list_memory import clear_block, list_of_block
from irad.frontend.memory.object_gradients import NotedWords
from irad.frontend.memory.object_memory import clear_objects, copy_objects
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import clear, extent_of_array
from irad.frontend.packing.classes import way_through
from irad.frontend.values import abi, build
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind
from irad.passes.mode import REVERSE

_I64 = ir.IntType(64)
_VOID_POINTER = cgutils.voidptr_t


def _notes(builder: IRBuilder, notes: Mapping[Any, Any], content: Content) -> NotedWords:
    return NotedWords(builder, builder.load(notes[content]))


def emit_pullback(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    targets: Mapping[int, Any],
    signature: Any,
    values: Sequence[Any],
    *,
    repeats: bool,
    seeds_arrays: bool,
) -> Any:
    """Emits the reverse sweep of a state; the result has the type `gradients_type`.

    The shadows that irad made and the cotangent of the value are cleared first: the sweep leaves both as it pleases.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        derivation: what the state belongs to.
        targets: the types of the shadows that the caller of the forward sweep gave, by position.
        signature: of the call: the state, the shadows, the cotangent.
        values: these.
        repeats: whether the state may be used again.
        seeds_arrays: whether the cotangent is that of what the function leaves in its arrays.
    """
    pullback = _Pullback(context, builder, derivation, targets, signature, values)
    pullback.take()
    pullback.put()
    pullback.seed(seeds_arrays=seeds_arrays)
    cotangents = pullback.run(repeats=repeats)
    return pullback.result(cotangents)


class _Shadows:
    """What a pullback finds beside the state, in one direction.

    Attributes:
        own: the shadows of arrays and records that irad made, each as Numba's array and its type.
        given: those that the caller gave, by the first LLVM parameter of the array; ``names`` are of their arguments.
        returned: those of ``own`` that are gradients, and not those of workspace, likewise.
        blocks: the shadows of lists and objects.
        objects: the memory that the caller gave for objects, with its type, by their first LLVM parameter.
    """

    def __init__(
        self,
        context: BaseContext,
        builder: IRBuilder,
        derivation: Derivation,
        targets: Mapping[int, Any],
        shadows: Sequence[tuple[Value, Any]],
    ) -> None:
        memory, given = derivation.active_memory(), objects_given(derivation)
        count = len(shadows) - len(given)
        every = [(context.make_array(kind)(context, builder, part), kind) for part, kind in shadows[:count]]
        self.objects = {leaf.index: each for (_, leaf), each in zip(given, shadows[count:], strict=True)}
        found = list(zip(memory, every, strict=False))
        own = [(argument, leaf, each) for (argument, leaf), each in found if argument.position not in targets]
        self.own = [each for _, _, each in own]
        role_of = derivation.task.role_of
        self.returned = {leaf.index: each for argument, leaf, each in own if role_of(argument.position).is_returned}
        self.given = {leaf.index: each for (argument, leaf), each in found if argument.position in targets}
        self.names = [argument.name for argument, _ in memory if argument.position in targets]
        self.blocks = [array for array, _ in every[len(memory) :]]


class _Pullback:
    """The code of one pullback, in the order in which it is emitted."""

    def __init__(
        self,
        context: BaseContext,
        builder: IRBuilder,
        derivation: Derivation,
        targets: Mapping[int, Any],
        signature: Any,
        values: Sequence[Any],
    ) -> None:
        self._context, self._builder, self._derivation, self._targets = context, builder, derivation, targets
        self._cotangent, self._cotangent_type = values[2], signature.args[2]
        self._seeds = seeds_of_lanes(builder, (values[2], signature.args[2]), derivation.task)
        self._references = References(context, builder, None, list(zip(values, signature.args, strict=True)))
        derivation.compiled.library.link_into(context.active_code_library)
        self._state = State.of(context, builder, derivation, values[0])
        parts = list(zip(cgutils.unpack_tuple(builder, values[1]), signature.args[1].types, strict=True))
        each = len(parts) // len(self._seeds)
        self._lanes = [
            _Shadows(context, builder, derivation, targets, parts[each * lane : each * (lane + 1)])
            for lane in range(len(self._seeds))
        ]
        self._objects = [abi.reference_of(leaf) for _, leaf in derivation.active_objects()]
        self._watched: WatchedCall | None = None

    def take(self) -> None:
        """Takes the state, and clears the cotangents that an earlier call left."""
        context, builder, derivation = self._context, self._builder, self._derivation
        self._state.take(context, self._references)
        for shadows, returned in zip(self._lanes, self._state.shadows, strict=True):
            for array, array_type in shadows.own:
                extent = extent_of_array(context, builder, array, array_type)
                start = builder.inttoptr(extent.low, _VOID_POINTER)
                clear(builder, start, extent.size(builder), derivation.compiled.clear)
            for leaf in build.returned_leaves(derivation.return_type):
                if leaf.kind is LeafKind.NUMBER:
                    seeding.store_zero(builder, returned, leaf.path)
            if self._objects:
                clear_objects(context, builder, self._objects, shadows.blocks[0].data)
                continue
            for (_, leaf), block in zip(derivation.active_lists(), shadows.blocks, strict=True):
                clear_block(builder, leaf.type, block.data, block.nitems)

    def put(self) -> None:
        """Puts what the memory that the caller gave for objects holds into their shadows."""
        self._references.on_failure = self._state.give_back
        self._objects_given = [self._given_shadows(lane) for lane in self._lanes]
        for each in self._objects_given:
            each.put()
        self._references.on_failure = None

    def seed(self, *, seeds_arrays: bool) -> None:
        """Adds the cotangent to the shadow of the value, or to those of the arrays that the function wrote to."""
        context, builder, derivation, state = self._context, self._builder, self._derivation, self._state
        if seeds_arrays:
            lanes = zip(self._lanes, self._seeds, strict=True)
            finals = [
                each for shadows, seed in lanes for each in final_parts(context, builder, derivation, shadows.own, seed)
            ]
            self._raise_on(seeding.misfit_of_final(builder, given[0], shadow[0]) for shadow, given in finals)
            for shadow, given in finals:
                add_final(context, builder, shadow, given)
            return
        value = context.get_returned_value(builder, derivation.return_type, builder.load(state.value))
        returned = [
            (shadow, partial(_notes, builder, notes)) for shadow, notes in zip(state.shadows, state.notes, strict=True)
        ]
        seeding.add_seeds(context, builder, derivation.return_type, value, self._seeds, returned, self._raise_on)

    def _raise_on(self, misfits: Iterable[seeding.Misfit]) -> None:
        for misfit in misfits:
            with self._builder.if_then(misfit.is_there, likely=False):
                self._state.give_back()
                self._references.release()
                misfit.raise_it(self._context, self._builder, SignatureError)

    def run(self, *, repeats: bool) -> list[Cotangents]:
        """Calls the reverse sweep; the result holds the cotangents of numbers in each direction.

        The sweep reports in the arena when the stack was too short for it; an earlier report is taken back.
        """
        context, builder, derivation = self._context, self._builder, self._derivation
        state, references = self._state, self._references
        arena = state.arena()
        failed = arena_field(builder, arena, "failed", ir.IntType(32))
        builder.store(ir.IntType(32)(0), failed)
        references.on_failure = state.give_back
        self._watched = self._watched_call()
        if self._watched is not None:
            with cgutils.if_unlikely(builder, self._watched.enter(arena)):
                references.release()
                raise_kept(context, builder)
        references.on_failure = None
        cotangents = [Cotangents(context, builder, derivation) for _ in self._lanes]
        values = [state.frame, arena, *(pointer for each in cotangents for pointer in each.pointers())]
        function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        symbol = derivation.compiled.library.symbols[derivation.compiled.derivative.symbols[REVERSE]]
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, symbol), values)
        failure = Failure.of(context, builder, arena)
        state.give_back(is_used=not repeats)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
            references.release()
            failure.raise_it(context, builder)
        for each in self._objects_given:
            each.take()
        return cotangents

    def _given_shadows(self, lane: _Shadows) -> GivenShadows:
        """The memory that the caller gave for objects; the sweep ends where it does not fit any longer."""
        context, builder, derivation = self._context, self._builder, self._derivation
        objects = [
            GivenObject(
                abi.reference_of(leaf),
                argument.name + way_through(argument.type, leaf.path),
                derivation.task.role_of(argument.position),
                lane.objects.get(leaf.index),
            )
            for argument, leaf in (derivation.active_objects() if lane.objects else ())
        ]

        def follow(visit: Visit | None, visit_block: VisitBlock | None) -> GivenValues:
            noted = NotedWords(builder, lane.blocks[0].data)
            return GivenValues(context, builder, noted, self._references.refuse, SHADOW, visit, visit_block)

        return GivenShadows(context, builder, self._references, objects, follow)

    def _watched_call(self) -> WatchedCall | None:
        """The reverse sweep as a call of its own in debug mode."""
        derivation = self._derivation
        if not derivation.task.options.debug:
            return None
        names = (*(argument.name for argument in derivation.arguments), *(name for name, _ in self._given()))
        outputs = [f"the derivative with respect to {name}" for name in names]
        inputs = [
            (f"the memory given for the derivative with respect to {name}", array._getvalue(), kind)
            for name, (array, kind) in self._given()
        ]
        inputs.append(("the cotangent", self._cotangent, self._cotangent_type))
        return WatchedCall(self._context, self._builder, derivation, inputs, outputs, has_tape=False)

    def _given(self) -> list[tuple[str, Any]]:
        """The shadows that the caller gave, with the names of their arguments."""
        return [each for lane in self._lanes for each in zip(lane.names, lane.given.values(), strict=True)]

    def result(self, cotangents: Sequence[Cotangents]) -> Any:
        """One gradient for each argument; for several directions a tuple of them."""
        context, builder, result_type = self._context, self._builder, gradients_type(self._derivation, self._targets)
        lanes = [self._gradients(*each) for each in zip(self._lanes, cotangents, strict=True)]
        if self._derivation.task.is_batched:
            items = [
                context.get_dummy_value() if kind == types.none else context.make_tuple(builder, kind, parts)
                for kind, parts in zip(result_type.types, zip(*lanes, strict=True), strict=True)
            ]
        else:
            [items] = lanes
        self._finish_watching(list(zip(items, result_type.types, strict=True)))
        self._references.release_transient()
        return context.make_tuple(builder, result_type, items)

    def _gradients(self, shadows: _Shadows, cotangents: Cotangents) -> list[Any]:
        """One gradient for each argument, in one direction."""
        context, builder, derivation = self._context, self._builder, self._derivation
        copies, instances = self._copies(shadows)
        lists = dict(zip((leaf.index for _, leaf in derivation.active_lists()), shadows.blocks, strict=False))

        def make(argument: Argument, leaf: Content, gradient_type: Any) -> Any:
            match leaf.kind:
                case LeafKind.NUMBER | LeafKind.OPTIONAL:
                    return cotangents.value(leaf, gradient_type)
                case LeafKind.OBJECT | LeafKind.LIST if leaf.index in shadows.objects:
                    memory, kind = shadows.objects[leaf.index]
                    context.nrt.incref(builder, kind, memory)
                    return self._references.keep(kind, memory)
                case LeafKind.OBJECT | LeafKind.LIST if self._objects:
                    return instances[leaf.index]
                case LeafKind.LIST:
                    block = lists[leaf.index].data
                    return list_of_block(context, builder, gradient_type, block, None, self._references)
                case LeafKind.ARRAY | LeafKind.RECORD if argument.position in self._targets:
                    given = shadows.given[leaf.index]
                    return returned_shadow(context, builder, *given, leaf, self._references)
                case LeafKind.ARRAY | LeafKind.RECORD | LeafKind.OBJECT | LeafKind.INERT:
                    return copies[leaf.index]

        lane = self._lanes.index(shadows)
        items = []
        for argument in derivation.arguments:
            if not derivation.task.role_of(argument.position).is_returned:
                items.append(context.get_dummy_value())
                continue
            caller_type = derivation.caller_arguments[argument.position].type
            gradient_type = gradient_types_of(derivation, argument.position, self._targets)[lane]
            make_leaf = partial(make, argument)
            items.append(structured(context, builder, caller_type, gradient_type, iter(argument.leaves), make_leaf))
        return items

    def _copies(self, shadows: _Shadows) -> tuple[dict[int, Any], dict[int, Any]]:
        """Copies of the shadows that are gradients, and instances with those of objects, by their first parameter."""
        context, builder, derivation, found = self._context, self._builder, self._derivation, shadows.returned
        arrays, array_types = [each for each, _ in found.values()], [kind for _, kind in found.values()]
        if self._objects:
            role_of, own = derivation.task.role_of, (arrays, array_types)
            is_made = {
                abi.reference_of(leaf): role_of(a.position).is_returned and leaf.index not in shadows.objects
                for a, leaf in derivation.active_objects()
            }
            moved, made = copy_objects(context, builder, is_made, shadows.blocks, own, self._references)
            indices = [leaf.index for leaf, flag in is_made.items() if flag]
            return dict(zip(found, moved, strict=True)), dict(zip(indices, made, strict=True))
        written = derivation.compiled.written
        may_overlap = len(arrays) > 1 and any(leaf.data_index in written for _, leaf in derivation.active_memory())
        copies = copy_arrays(context, builder, arrays, array_types, may_overlap, self._references)
        return dict(zip(found, copies, strict=True)), {}

    def _finish_watching(self, gradients: Sequence[tuple[Any, Any]]) -> None:
        if self._watched is None:
            return
        augmented = self._builder.load(self._state.field("call", _I64))
        outputs = [*gradients, *((array._getvalue(), kind) for _, (array, kind) in self._given())]
        with self._builder.if_then(self._watched.finish(outputs, augmented), likely=False):
            self._references.release()
            raise_kept(self._context, self._builder)
