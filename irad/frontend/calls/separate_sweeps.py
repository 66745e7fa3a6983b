"""Emits the two sweeps of `irad.vjp` and `irad.split`, which are called separately.

The forward sweep fills a state; the reverse sweep reads it, and makes gradients of cotangents. Where the function
returns nothing, the cotangent of a pullback is that of what it leaves in its arrays: a tuple with an entry for each
argument, None where there is none. The shadows of the arguments hold it when the reverse sweep begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils, types
from numba.core.cgutils import ValueStructProxy
from numba.core.types import Type
from numba.core.typing import Signature

from irad.errors import SignatureError
from irad.frontend.calls import seeding
from irad.frontend.calls.exceptions import Failure, arena_field, raise_kept
from irad.frontend.calls.lanes import seeds_of_lanes, targets_of_lanes
from irad.frontend.calls.result_types import gradient_types_of, structured
from irad.frontend.calls.seeding import place_of, places_of
from irad.frontend.calls.separate_state import State, augmented_type, gradients_type, new_state, objects_given
from irad.frontend.calls.sweeps import Cotangents, Extras, Lane, Sweeps
from irad.frontend.calls.task import Role
from irad.frontend.calls.watched import WatchedCall, output_names
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.arrays import copy_arrays, returned_shadow
from irad.frontend.memory.caller_values import SHADOW, CallerShadows, CallerValues, GivenObject, Visit, VisitBlock
from irad.frontend.memory.list_shadows import clear_block, list_of_block
from irad.frontend.memory.object_shadows import clear_objects, copy_objects
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import TableNotes
from irad.frontend.memory.shadows import MEMINFO_TYPE, all_of, clear, extent_of_array
from irad.frontend.memory.walks import notes_in_table
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import have_parts_alike, way_through
from irad.frontend.values import abi, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind
from irad.passes.mode import REVERSE

_I64 = ir.IntType(64)


# --- the forward sweep ------------------------------------------------------------------------------------------------


def emit_augmented(
    emit: Emit,
    derivation: Derivation,
    values: Sequence[Value],
    number: int,
    given: Extras,
) -> Value:
    """Emits the forward sweep; the result has the type `augmented_type`.

    Args:
        derivation: derivation of the called derivative.
        values: the arguments.
        number: of the specialisation, which the sweep returns.
        given: further arguments from the caller.
    """
    context, builder = emit.context, emit.builder
    first, *others = targets_of_lanes(builder, given.targets, derivation.task)
    state, owner, array = new_state(emit, derivation, given.held)
    extras = Extras(first, held=(*given.held, (owner, MEMINFO_TYPE)), places=(state.value, state.shadows[0]))
    sweeps = Sweeps(emit, derivation, values, extras, keeps_value=True, keeps_tape=True)
    for targets, shadow in zip(others, state.shadows[1:], strict=True):
        sweeps.add_lane(targets, shadow)
    arena = sweeps.open_arena()
    sweeps.watch(arena, values, replace(extras, targets=given.targets), output_names(derivation, {})[: 1 + len(values)])
    status = sweeps.run_augmented(state.frame, arena)
    result_type = augmented_type(derivation, {position: kind for position, (_, kind) in given.targets.items()})
    result = sweeps.zeroed(context.get_value_type(result_type))
    with sweeps.succeeded(status, arena):
        # Only a sweep that succeeded leaves an arena to the pullback.
        builder.store(arena, state.field("arena", VOID_POINTER))
        _note_returned(sweeps, state, arena)
        # The pullback reads what these hold, so they are dropped with the arena.
        sweeps.references.defer_transient(arena)
        kinds = iter(result_type.types[3].types)
        every = [shadow for lane in sweeps.lanes for shadow in _shadows_of_lane(sweeps, lane, given.targets, kinds)]
        shadows = context.make_tuple(builder, result_type.types[3], every)
        items = (INTP(number), sweeps.kept_value(), array, shadows)
        builder.store(context.make_tuple(builder, result_type, items), result)
        debug_values = [(sweeps.value(), derivation.return_type), *zip(values, derivation.argument_types, strict=True)]
        _finish_watching(sweeps, state, debug_values, [*given.held, (builder.load(result), result_type)])
    return builder.load(result)


def _note_returned(sweeps: Sweeps, state: State, arena: Value) -> None:
    """Notes where the derivatives of the lists, dictionaries and instances lie that the function returned."""
    builder, references = sweeps.builder, sweeps.references
    references.on_failure = sweeps.drop_value
    for lane, notes in zip(sweeps.lanes, state.notes, strict=True):
        for part, flags in tree.returned_references(sweeps.derivation.return_type).items():
            slot = references.slot(references.transient)
            loaded = (builder.load(place_of(builder, sweeps.return_pointer, flag)) for flag in flags)
            with builder.if_then(all_of(builder, (cgutils.as_bool_bit(builder, each) for each in loaded))):
                places = places_of(builder, (sweeps.return_pointer, lane.return_shadow), part)
                builder.store(notes_in_table(sweeps.emit, part, places, arena, references, slot), notes[part])
    references.on_failure = None


def _shadows_of_lane(sweeps: Sweeps, lane: Lane, targets: Any, kinds: Iterator[Any]) -> Iterator[Any]:
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


def _finish_watching(
    sweeps: Sweeps, state: State, debug_values: Sequence[Any], held: Sequence[tuple[Any, Any]]
) -> None:
    """Ends the sweep as a call of debug mode: raises if the function's results are NaN or infinite."""
    if sweeps.watched is None:
        return
    context, builder = sweeps.context, sweeps.builder
    builder.store(sweeps.watched.call, state.field("call", _I64))
    with builder.if_then(sweeps.watched.finish_augmented(debug_values), likely=False):
        for value, numba_type in held:
            context.nrt.decref(builder, numba_type, value)
        raise_kept(sweeps.emit)


# --- cotangents of arrays that the function wrote to ------------------------------------------------------------------

_WHY: Final = "the function returns nothing; its results are the arrays that it writes to"

TypedArray: TypeAlias = tuple[ValueStructProxy, Type]
"""An array as Numba handles it in code, and its type."""


def check_final(name: str, arguments: Sequence[Argument], given: Any) -> None:
    """Checks the type of a cotangent.

    Args:
        name: name of the function.
        arguments: arguments of the function.
        given: the Numba type of the cotangent.

    Raises:
        SignatureError: it has not an entry for each argument, or one does not fit its argument.
    """
    if not isinstance(given, types.BaseTuple) or len(given.types) != len(arguments):
        raise SignatureError(
            f"the cotangent of what {name} writes is {described(given)}",
            f"pass a tuple with {len(arguments)} entries, one for each argument: an array for an array that {name} "
            "writes to, None for the others",
            _WHY,
        )
    for argument, entry in zip(arguments, given.types, strict=True):
        _check_entry(name, argument, argument.type, entry)


def _check_entry(name: str, argument: Argument, mine: Any, given: Any) -> None:
    if given == types.none:
        return
    if isinstance(mine, types.BaseTuple) and isinstance(given, types.BaseTuple) and have_parts_alike(mine, given):
        for item, entry in zip(mine.types, given.types, strict=True):
            _check_entry(name, argument, item, entry)
        return
    if isinstance(mine, types.BaseTuple) and isinstance(given, types.BaseTuple):
        raise SignatureError(
            f"the cotangent of {argument} of {name} is {described(given)}, the argument is {described(mine)}",
            "pass a tuple for a tuple, and the same keys in the same order, or None",
            _WHY,
        )
    if not isinstance(mine, types.Array):
        raise SignatureError(
            f"a cotangent is given for {argument} of {name}, which is {described(mine)} and not an array",
            "pass None in its place",
            _WHY,
        )
    if not isinstance(given, types.Array) or (mine.dtype, mine.ndim) != (given.dtype, given.ndim):
        raise SignatureError(
            f"the cotangent of {argument} of {name} is {described(given)}, the argument is {described(mine)}",
            "pass an array of the same dtype and shape, or None",
            _WHY,
        )


def final_parts(
    emit: Emit,
    derivation: Derivation,
    shadows: Sequence[TypedArray],
    seed: tuple[Value, Type],
) -> Iterator[tuple[TypedArray, TypedArray]]:
    """The shadow of each array that gets a cotangent, and that cotangent: each as Numba's array and its type.

    Args:
        derivation: the derivation that the pullback belongs to.
        shadows: shadows of all arrays among the arguments.
        seed: the whole cotangent and its type.
    """
    builder = emit.builder
    value, kind = seed
    for (argument, leaf), shadow in zip(derivation.active_memory(), shadows, strict=True):
        path: tuple[int, ...] = ()
        entry = kind
        for step in (argument.position, *leaf.path):
            if entry == types.none:
                break
            assert isinstance(entry, types.BaseTuple)
            path, entry = (*path, step), entry.types[step]
        if entry != types.none:
            yield shadow, (emit.array(entry, seeding.part_of(builder, value, path)), entry)


def add_final(emit: Emit, shadow: TypedArray, given: TypedArray) -> None:
    """Adds a cotangent to the shadow of its array."""
    (array, array_type), (cotangent, cotangent_type) = shadow, given
    seeding.add_elements(emit, array_type, array.data, array, cotangent_type, cotangent)


# --- the reverse sweep ------------------------------------------------------------------------------------------------


def _notes(emit: Emit, notes: Mapping[Any, Any], content: Content) -> TableNotes:
    return TableNotes(emit, emit.builder.load(notes[content]))


def emit_pullback(
    emit: Emit,
    derivation: Derivation,
    targets: Mapping[int, Any],
    signature: Signature,
    values: Sequence[Value],
    *,
    repeats: bool,
    seeds_arrays: bool,
) -> Any:
    """Emits the reverse sweep of a state; the result has the type `gradients_type`.

    The shadows that irad made and the cotangent of the value are cleared first: the sweep leaves both as it pleases.

    Args:
        derivation: the derivation that the state belongs to.
        targets: the types of the shadows that the caller of the forward sweep gave, by position.
        signature: of the call: the state, the shadows, the cotangent.
        values: these.
        repeats: whether the state may be used again.
        seeds_arrays: whether the cotangent is that of what the function leaves in its arrays.
    """
    pullback = _Pullback(emit, derivation, targets, signature, values)
    pullback.take()
    pullback.put()
    pullback.seed(seeds_arrays=seeds_arrays)
    cotangents = pullback.run(repeats=repeats)
    return pullback.result(cotangents)


class _Shadows:
    """Shadows that a pullback finds beside the state, in one direction.

    Attributes:
        own: the shadows of arrays and records that irad made, each as Numba's array and its type.
        given: those that the caller gave, by the first LLVM parameter of the array; ``names`` are of their arguments.
        returned: those of ``own`` that are gradients and not those of workspace, by the same number.
        blocks: the shadows of lists and objects.
        objects: the memory that the caller gave for objects, with its type, by their first LLVM parameter.
    """

    def __init__(
        self,
        emit: Emit,
        derivation: Derivation,
        targets: Mapping[int, Any],
        shadows: Sequence[tuple[Value, Any]],
    ) -> None:
        memory, given = derivation.active_memory(), objects_given(derivation)
        count = len(shadows) - len(given)
        every = [(emit.array(kind, part), kind) for part, kind in shadows[:count]]
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
        emit: Emit,
        derivation: Derivation,
        targets: Mapping[int, Any],
        signature: Any,
        values: Sequence[Any],
    ) -> None:
        context, builder = emit.context, emit.builder
        self._emit, self._context, self._builder = emit, context, builder
        self._derivation, self._targets = derivation, targets
        self._cotangent, self._cotangent_type = values[2], signature.args[2]
        self._seeds = seeds_of_lanes(builder, (values[2], signature.args[2]), derivation.task)
        self._references = References(emit, None, list(zip(values, signature.args, strict=True)))
        derivation.compiled.library.link_into(context.active_code_library)
        self._state = State.of(emit, derivation, values[0])
        parts = list(zip(cgutils.unpack_tuple(builder, values[1]), signature.args[1].types, strict=True))
        each = len(parts) // len(self._seeds)
        self._lanes = [
            _Shadows(emit, derivation, targets, parts[each * lane : each * (lane + 1)])
            for lane in range(len(self._seeds))
        ]
        self._objects = [abi.reference_of(leaf) for _, leaf in derivation.active_objects()]
        self._watched: WatchedCall | None = None

    def take(self) -> None:
        """Takes the state, and clears the cotangents that an earlier call left."""
        builder, derivation = self._builder, self._derivation
        self._state.take(self._references)
        for shadows, returned in zip(self._lanes, self._state.shadows, strict=True):
            for array, array_type in shadows.own:
                extent = extent_of_array(self._emit, array, array_type)
                start = builder.inttoptr(extent.low, VOID_POINTER)
                clear(builder, start, extent.size(builder), derivation.compiled.clear)
            for leaf in tree.returned_leaves(derivation.return_type):
                if leaf.kind is LeafKind.NUMBER:
                    seeding.store_zero(builder, returned, leaf.path)
            if self._objects:
                clear_objects(self._emit, self._objects, shadows.blocks[0].data)
                continue
            for (_, leaf), block in zip(derivation.active_lists(), shadows.blocks, strict=True):
                clear_block(builder, leaf.type, block.data, block.nitems)

    def put(self) -> None:
        """Copies the contents of the caller's memory for objects into their shadows."""
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
                each for shadows, seed in lanes for each in final_parts(self._emit, derivation, shadows.own, seed)
            ]
            self._raise_on(seeding.misfit_of_final(builder, given[0], shadow[0]) for shadow, given in finals)
            for shadow, given in finals:
                add_final(self._emit, shadow, given)
            return
        value = context.get_returned_value(builder, derivation.return_type, builder.load(state.value))
        returned = [
            (shadow, partial(_notes, self._emit, notes))
            for shadow, notes in zip(state.shadows, state.notes, strict=True)
        ]
        seeding.add_seeds(self._emit, derivation.return_type, value, self._seeds, returned, self._raise_on)

    def _raise_on(self, misfits: Iterable[seeding.Misfit]) -> None:
        for misfit in misfits:
            with self._builder.if_then(misfit.is_there, likely=False):
                self._state.give_back()
                self._references.release()
                misfit.raise_it(self._emit, SignatureError)

    def run(self, *, repeats: bool) -> list[Cotangents]:
        """Calls the reverse sweep; the result holds the cotangents of numbers in each direction.

        The sweep reports in the arena when the stack was too short for it; an earlier report is taken back.
        """
        builder, derivation = self._builder, self._derivation
        state, references = self._state, self._references
        arena = state.arena()
        failed = arena_field(builder, arena, "failed", ir.IntType(32))
        builder.store(ir.IntType(32)(0), failed)
        references.on_failure = state.give_back
        self._watched = self._watched_call()
        if self._watched is not None:
            with cgutils.if_unlikely(builder, self._watched.enter(arena)):
                references.release()
                raise_kept(self._emit)
        references.on_failure = None
        cotangents = [Cotangents(self._emit, derivation) for _ in self._lanes]
        values = [state.frame, arena, *(pointer for each in cotangents for pointer in each.pointers())]
        function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        symbol = derivation.compiled.library.symbols[derivation.compiled.derivative.symbols[REVERSE]]
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, symbol), values)
        failure = Failure.of(self._emit, arena)
        state.give_back(is_used=not repeats)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
            references.release()
            failure.raise_it(self._emit)
        for each in self._objects_given:
            each.take()
        return cotangents

    def _given_shadows(self, lane: _Shadows) -> CallerShadows:
        """The caller's memory for objects; the sweep ends if it no longer fits."""
        derivation = self._derivation
        objects = [
            GivenObject(
                abi.reference_of(leaf),
                argument.name + way_through(argument.type, leaf.path),
                derivation.task.role_of(argument.position),
                lane.objects.get(leaf.index),
            )
            for argument, leaf in (derivation.active_objects() if lane.objects else ())
        ]

        def follow(visit: Visit | None, visit_block: VisitBlock | None) -> CallerValues:
            noted = TableNotes(self._emit, lane.blocks[0].data)
            return CallerValues(self._emit, noted, self._references.refuse, SHADOW, visit, visit_block)

        return CallerShadows(self._emit, self._references, objects, follow)

    def _watched_call(self) -> WatchedCall | None:
        """The reverse sweep as a separate call in debug mode."""
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
        return WatchedCall(self._emit, derivation, inputs, outputs, has_tape=False)

    def _given(self) -> list[tuple[str, Any]]:
        """The shadows that the caller gave, with the names of their arguments."""
        return [each for lane in self._lanes for each in zip(lane.names, lane.given.values(), strict=True)]

    def result(self, cotangents: Sequence[Cotangents]) -> Value:
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

        def make(argument: Argument, leaf: Content, gradient_type: Type) -> Any:
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
                    return list_of_block(self._emit, gradient_type, block, None, self._references)
                case LeafKind.ARRAY | LeafKind.RECORD if argument.position in self._targets:
                    given = shadows.given[leaf.index]
                    return returned_shadow(self._emit, *given, leaf, self._references)
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
            items.append(structured(self._emit, caller_type, gradient_type, iter(argument.leaves), make_leaf))
        return items

    def _copies(self, shadows: _Shadows) -> tuple[dict[int, Any], dict[int, Any]]:
        """Copies of the shadows that are gradients, and instances with those of objects, by their first parameter."""
        derivation, found = self._derivation, shadows.returned
        arrays, array_types = [each for each, _ in found.values()], [kind for _, kind in found.values()]
        if self._objects:
            role_of, own = derivation.task.role_of, (arrays, array_types)
            is_made = {
                abi.reference_of(leaf): role_of(a.position).is_returned and leaf.index not in shadows.objects
                for a, leaf in derivation.active_objects()
            }
            moved, made = copy_objects(self._emit, is_made, shadows.blocks, own, self._references)
            indices = [leaf.index for leaf, flag in is_made.items() if flag]
            return dict(zip(found, moved, strict=True)), dict(zip(indices, made, strict=True))
        written = derivation.compiled.written
        may_overlap = len(arrays) > 1 and any(leaf.data_index in written for _, leaf in derivation.active_memory())
        copies = copy_arrays(self._emit, arrays, array_types, may_overlap, self._references)
        return dict(zip(found, copies, strict=True)), {}

    def _finish_watching(self, gradients: Sequence[tuple[Any, Any]]) -> None:
        if self._watched is None:
            return
        augmented = self._builder.load(self._state.field("call", _I64))
        outputs = [*gradients, *((array._getvalue(), kind) for _, (array, kind) in self._given())]
        with self._builder.if_then(self._watched.finish(outputs, augmented), likely=False):
            self._references.release()
            raise_kept(self._emit)
