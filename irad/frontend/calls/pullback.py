"""The two sweeps of `irad.vjp` and `irad.split`, which are called separately: one fills a state, the other reads it.

The state holds the tape (`irad.frontend.calls.state`); beside it are the shadows of the arguments, those that irad made
and those that the caller gave. `ForwardDispatcher` is the forward sweep, with a pullback for each specialisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import typeof
from numba.core import cgutils, types
from numba.core.base import BaseContext

from irad.debug.calls import WatchedCall
from irad.debug.outputs import output_names
from irad.errors import ActivityError, IradError, SignatureError, UnsupportedProgram
from irad.frontend.calls import seeding
from irad.frontend.calls.annotations import Returns, Role, Seed, Task
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import (
    INTERNAL,
    DerivativeDispatcher,
    check_targets,
    make_wrapper,
    parameter_names,
    target_types,
    target_values,
)
from irad.frontend.calls.failure import Failure, arena_field
from irad.frontend.calls.final_arrays import add_final, check_final, final_parts
from irad.frontend.calls.kept import raise_kept
from irad.frontend.calls.result_types import gradient_type_of, structured
from irad.frontend.calls.signature import check_representable, may_have_derivative, without_derivative
from irad.frontend.calls.state import STATE_TYPE, State, new_state
from irad.frontend.calls.sweeps import Cotangents, Extras, Sweeps
from irad.frontend.custom import entry, packs
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.memory.argument_memory import returned_shadow
from irad.frontend.memory.buffers import copy_arrays
from irad.frontend.memory.list_memory import clear_block, list_of_block
from irad.frontend.memory.object_memory import clear_objects, copy_objects
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import (
    BYTES,
    MEMINFO_TYPE,
    clear,
    extent_of_array,
)
from irad.frontend.numba import private
from irad.frontend.numba.boxing import with_numpy_numbers
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.private import compiler_lock
from irad.frontend.values import abi, build, gradients
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind
from irad.options import Options
from irad.passes.mode import REVERSE

_INTP = cgutils.intp_t
_I64 = ir.IntType(64)
_VOID_POINTER = cgutils.voidptr_t


@dataclass(frozen=True)
class Separate:
    """How two sweeps are called separately.

    Attributes:
        kind: the name of the public function.
        task_for: what they do with arguments of some types.
        otherwise: what they do instead where active values are stored in a constant argument.
        destinations: positions of the arguments whose shadow the caller gives.
        modified: positions of the arguments that may change between the sweeps; None: all.
        repeats: whether the reverse sweep may run more than once.
        writes_seeded: where the function returns nothing, the cotangent is that of the arrays that it writes to.
    """

    kind: str
    task_for: Callable[[Any, tuple[Any, ...]], Task]
    destinations: tuple[int, ...] = ()
    modified: tuple[int, ...] | None = None
    repeats: bool = True
    writes_seeded: bool = False
    otherwise: Callable[[Any, tuple[Any, ...]], Task] | None = None

    def derivation(self, primal: Any, argument_types: tuple[Any, ...]) -> Derivation:
        """The derivation for some types of arguments.

        Raises:
            IradError: there is none.
        """
        try:
            return self._derivation(primal, argument_types, self.task_for)
        except IradError as error:
            several = error.errors if isinstance(error, UnsupportedProgram) else (error,)
            if self.otherwise is None or not any(isinstance(each, ActivityError) for each in several):
                raise
        return self._derivation(primal, argument_types, self.otherwise)

    def _derivation(
        self, primal: Any, argument_types: tuple[Any, ...], task_for: Callable[[Any, tuple[Any, ...]], Task]
    ) -> Derivation:
        task, unmodified = task_for(primal, argument_types), frozenset[int]()
        if self.modified is not None:
            count = len(abi.arguments_of(primal.py_func, argument_types))
            unmodified = frozenset(range(count)).difference(self.modified)
        return derivation_of(primal, argument_types, task, arguments_may_change=True, unmodified=unmodified)


@dataclass(frozen=True)
class Specialisation:
    """The sweeps for some types of arguments.

    Attributes:
        derivation: what they are made from.
        pullback: the compiled ``(state, shadows, cotangent) -> gradients``.
        shadows: the type of the shadows.
    """

    derivation: Derivation
    pullback: DerivativeDispatcher
    shadows: Any

    @property
    def has_rules(self) -> bool:
        """Whether rules that users wrote take part."""
        return bool(self.derivation.compiled.derivative.ruled)


class ForwardDispatcher(DerivativeDispatcher):
    """The forward sweep of a function: returns a number, the value, the state and the shadows of the arguments.

    It takes shadows that the caller gives in front of the arguments.

    Attributes:
        sweeps: how they are called.
        specialisations: the sweeps by that number.
        options: how the derivative is made.
        numbers: the number for each tuple of argument types, behind which the type of the given shadows may stand.
    """

    def __init__(self, primal: Any, sweeps: Separate, options: Options, rebuild: tuple[Any, ...]) -> None:
        self.sweeps, self.options = sweeps, options
        self.specialisations: list[Specialisation] = []
        self.numbers = dict[tuple[Any, ...], int]()
        names = parameter_names(primal.py_func)
        has_targets = bool(sweeps.destinations)

        def define(given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
            argument_types = given[: len(names)]
            derivation = sweeps.derivation(primal, argument_types)
            targets = target_types(primal, derivation.task, given[-1]) if has_targets else {}
            check_targets(primal, derivation, targets)
            number = self.numbers[given] = len(self.specialisations)
            result_type = forward_type(derivation, targets)
            pullback = _pullback(primal, derivation, sweeps, targets)
            self.specialisations.append(Specialisation(derivation, pullback, result_type.types[3]))

            def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
                if private.shadow().is_here():
                    library: Any = context.active_code_library
                    library.pullback = primal.py_func.__qualname__
                held = tuple(zip(values, signature.args, strict=True))
                extras = Extras(target_values(builder, targets, values[-1]) if has_targets else {}, held=held)
                return emit_forward(context, builder, derivation, values[: len(names)], number, extras)

            return result_type(*given), lower

        call = Definition([*names, *(["irad_targets"] if has_targets else [])], define)
        leading = [f"{INTERNAL}target{position}" for position in sweeps.destinations]
        more = [f"({''.join(each + ', ' for each in leading)})"] if has_targets else []
        body = f"irad_call({', '.join(['{arguments}', *more])})"
        wrapper = make_wrapper(sweeps.kind, primal.py_func, leading, body, call)
        super().__init__(wrapper, call, primal, sweeps.kind, rebuild, lambda result: result)

    def number_of(self, given: Sequence[Any]) -> int:
        """The number of a specialisation, by the types that it was compiled for, the given shadows first."""
        count = len(self.sweeps.destinations)
        taken = [typeof(each.value) if isinstance(each, types.Omitted) else each for each in given[count:]]
        return self.numbers[(*taken, types.BaseTuple.from_types(tuple(given[:count]))) if count else tuple(taken)]


def task_for(
    primal: Any, argument_types: tuple[Any, ...], options: Options, argnums: tuple[int, ...] | None = None
) -> Task:
    """What `irad.vjp` does with arguments of some types; they may change before the pullback runs.

    Raises:
        SignatureError: none of them has a derivative.
    """
    check_representable(primal.py_func, argument_types)
    arguments = abi.arguments_of(primal.py_func, argument_types)
    wanted = [a for a in arguments if (may_have_derivative(a) if argnums is None else a.position in argnums)]
    roles = tuple((a.position, Role.GRADIENT) for a in wanted)
    if not roles:
        raise without_derivative(primal, arguments)
    writes_only = returned_type(primal, argument_types, options) == types.none and any(
        leaf.is_array and leaf.kind is LeafKind.ARRAY for a in arguments for leaf in a.leaves
    )
    seed = Seed.NONE if writes_only else Seed.GIVEN
    return Task(roles, seed, returns=Returns.VALUE_AND_GRADIENT, options=options)  # so rules know the value is needed


def returned_type(primal: Any, argument_types: tuple[Any, ...], options: Options) -> Any:
    """The type of what a function returns."""
    with compiler_lock():
        packs.load()
        program = load_program(
            entry.caller_of(primal), argument_types, peels=not options.debug, checks=options.boundscheck
        )
    return program.signature.return_type


def _pullback(
    primal: Any, derivation: Derivation, sweeps: Separate, targets: Mapping[int, Any]
) -> DerivativeDispatcher:
    seeds_arrays = sweeps.writes_seeded and derivation.task.seed is Seed.NONE

    def define(given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        if seeds_arrays:
            check_final(primal.py_func.__qualname__, derivation.caller_arguments, given[2])
        else:
            seeding.check_seed(primal.py_func.__qualname__, derivation.return_type, given[2])

        def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
            return emit_pullback(context, builder, derivation, sweeps, targets, signature, values)

        return gradients_type(derivation, targets)(*given), lower

    def like(state: Any, shadows: Value, cotangent: Any) -> None:
        """Parameters of a pullback."""

    call = Definition(parameter_names(like), define)
    wrapper = make_wrapper("pullback", like, [], "irad_call({arguments})", call)
    return DerivativeDispatcher(wrapper, call, primal, "pullback", (_no_pickle, ()), with_numpy_numbers)


def _no_pickle() -> None:
    raise TypeError("a pullback holds memory of this process and cannot be pickled")


# --- types ------------------------------------------------------------------------------------------------------------


def forward_type(derivation: Derivation, targets: Mapping[int, Any]) -> Any:
    """What the forward sweep returns; ``targets`` are the types of the given shadows, by position."""
    shadows = types.BaseTuple.from_types(
        (
            *(_shadow_type(argument, leaf, targets) for argument, leaf in derivation.active_memory()),
            *(BYTES for _ in derivation.active_lists()),
            *((BYTES, BYTES) if derivation.active_objects() else ()),
        )
    )
    return types.Tuple((types.intp, gradients.owned_type(derivation.return_type), STATE_TYPE, shadows))


def _shadow_type(argument: Argument, leaf: Content, targets: Mapping[int, Any]) -> Any:
    """The type of the shadow of an array or record; that of a record is an array of one."""
    if not leaf.is_array:
        return types.Array(leaf.type, 0, "C")
    if argument.position not in targets:
        return types.Array(leaf.type.dtype, leaf.type.ndim, leaf.type.layout)
    given = targets[argument.position]
    for step in leaf.path:
        given = given.types[step]
    return given


def gradients_type(derivation: Derivation, targets: Mapping[int, Any]) -> Any:
    """What the pullback returns: one entry for each argument."""
    return types.BaseTuple.from_types(
        tuple(
            gradient_type_of(derivation.caller_arguments[a.position].type, targets.get(a.position))
            if derivation.task.role_of(a.position).is_returned
            else types.none
            for a in derivation.arguments
        )
    )


# --- forward ----------------------------------------------------------------------------------------------------------


def emit_forward(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    values: Sequence[Any],
    number: int,
    given: Extras,
) -> Any:
    """Emits the forward sweep; the result has the type `forward_type`."""
    targets = given.targets
    state, owner, array = new_state(context, builder, derivation, given.held)
    extras = Extras(targets, held=(*given.held, (owner, MEMINFO_TYPE)), places=(state.value, state.shadow))
    sweeps = Sweeps(context, builder, derivation, values, extras, keeps_value=True, keeps_tape=True)
    arena = sweeps.open_arena()
    sweeps.watch(arena, values, extras, output_names(derivation, {})[: 1 + len(values)])
    status = sweeps.run_augmented(state.frame, arena)
    result_type = forward_type(derivation, {position: kind for position, (_, kind) in targets.items()})
    result = sweeps.zeroed(context.get_value_type(result_type))
    with sweeps.succeeded(status, arena):
        builder.store(arena, state.field("arena", _VOID_POINTER))
        sweeps.references.defer_transient(sweeps.support("irad.arena_defer", ir.VoidType(), [_VOID_POINTER] * 2), arena)
        memory = zip(derivation.active_memory(), result_type.types[3].types, strict=False)
        shadows = [
            sweeps.memory.given_to(leaf) if argument.position in targets else sweeps.memory.gradient_of(leaf, kind)
            for (argument, leaf), kind in memory
        ]
        shadows += [sweeps.memory.list_shadow(leaf) for _, leaf in derivation.active_lists()]
        shadows += sweeps.memory.object_state()
        items = (
            _INTP(number),
            sweeps.kept_value(),
            array,
            context.make_tuple(builder, result_type.types[3], shadows),
        )
        builder.store(context.make_tuple(builder, result_type, items), result)
        if sweeps.watched is not None:
            builder.store(sweeps.watched.call, state.field("call", _I64))
            looked_at = [(sweeps.value(), derivation.return_type), *zip(values, derivation.argument_types, strict=True)]
            with builder.if_then(sweeps.watched.finish_augmented(looked_at), likely=False):
                for value, numba_type in (*given.held, (builder.load(result), result_type)):
                    context.nrt.decref(builder, numba_type, value)
                raise_kept(context, builder)
    return builder.load(result)


# --- pullback ---------------------------------------------------------------------------------------------------------


def emit_pullback(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    sweeps: Separate,
    targets: Mapping[int, Any],
    signature: Any,
    values: Sequence[Any],
) -> Any:
    """Emits the reverse sweep of a state; the result has the type `gradients_type`.

    The shadows that irad made and the cotangent of the value are cleared first: the sweep leaves both as it pleases.
    """
    seed, seed_type = values[2], signature.args[2]
    references = References(context, builder, None, list(zip(values, signature.args, strict=True)))
    derivation.compiled.library.link_into(context.active_code_library)
    state = State.of(context, builder, derivation, values[0])
    shadows = _Shadows(context, builder, derivation, targets, (values[1], signature.args[1]))
    arrays, array_types = [each for each, _ in shadows.own], [kind for _, kind in shadows.own]
    blocks, given = shadows.blocks, shadows.given
    objects = [abi.reference_of(leaf) for _, leaf in derivation.active_objects()]
    state.take(context, references)
    _clear(context, builder, derivation, state.shadow, arrays, array_types)
    for (_, leaf), block_array in zip(derivation.active_lists(), blocks, strict=bool(not objects)):
        clear_block(builder, leaf.type, block_array.data, block_array.nitems)
    if objects:
        clear_objects(context, builder, objects, blocks[0].data)
    if sweeps.writes_seeded and derivation.task.seed is Seed.NONE:
        _seed_arrays(context, builder, derivation, shadows.own, (seed, seed_type), references, state)
    else:
        value = context.get_returned_value(builder, derivation.return_type, builder.load(state.value))
        seeded = seeding.seeded_parts(derivation.return_type, seed_type)
        _raise_on_misfits(context, builder, seeding.misfits(context, builder, value, seed, seeded), references, state)
        for part in seeded:
            seeding.add_seed(context, builder, state.shadow, value, seed, part)
    watched = _watched_pullback(context, builder, derivation, shadows, (seed, seed_type))
    cotangents = _run_reverse(context, builder, derivation, sweeps, state, references, watched)
    written = derivation.compiled.written
    may_overlap = len(arrays) > 1 and any(leaf.data_index in written for _, leaf in derivation.active_memory())
    made: list[Any] = []
    if objects:
        moved, made = copy_objects(context, builder, objects, blocks, (arrays, array_types), references)
        copies = iter(moved)
    else:
        copies = iter(copy_arrays(context, builder, arrays, array_types, may_overlap, references))
    lists, instances, passed = iter(blocks), iter(made), iter(given)

    def make(argument: Argument, leaf: Content, gradient_type: Any) -> Any:
        match leaf.kind:
            case LeafKind.NUMBER | LeafKind.OPTIONAL:
                return cotangents.value(leaf, gradient_type)
            case LeafKind.OBJECT | LeafKind.LIST if objects:
                return next(instances)
            case LeafKind.LIST:
                return list_of_block(context, builder, gradient_type, next(lists).data, references)
            case LeafKind.ARRAY | LeafKind.RECORD if argument.position in targets:
                return returned_shadow(context, builder, *next(passed), leaf, references)
            case LeafKind.ARRAY | LeafKind.RECORD | LeafKind.OBJECT | LeafKind.INERT:
                return next(copies)

    result_type = gradients_type(derivation, targets)
    items = []
    for argument, gradient_type in zip(derivation.arguments, result_type.types, strict=True):
        if gradient_type == types.none:
            items.append(context.get_dummy_value())
            continue
        caller_type = derivation.caller_arguments[argument.position].type
        make_leaf = partial(make, argument)
        items.append(structured(context, builder, caller_type, gradient_type, iter(argument.leaves), make_leaf))
    result = context.make_tuple(builder, result_type, items)
    if watched is not None:
        augmented = builder.load(state.field("call", _I64))
        outputs = [*zip(items, result_type.types, strict=True), *((each._getvalue(), kind) for each, kind in given)]
        with builder.if_then(watched.finish(outputs, augmented), likely=False):
            references.release()
            raise_kept(context, builder)
    references.release_transient()
    return result


class _Shadows:
    """What a pullback finds beside the state.

    Attributes:
        own: the shadows of arrays and records that irad made, each as Numba's array and its type.
        given: those that the caller gave, with the names of their arguments in ``names``.
        blocks: the shadows of lists and objects.
    """

    def __init__(
        self,
        context: BaseContext,
        builder: IRBuilder,
        derivation: Derivation,
        targets: Mapping[int, Any],
        shadows: tuple[Value, Any],
    ) -> None:
        value, kind = shadows
        parts = cgutils.unpack_tuple(builder, value)
        every = [(context.make_array(t)(context, builder, part), t) for part, t in zip(parts, kind.types, strict=True)]
        memory = derivation.active_memory()
        found = list(zip(memory, every, strict=False))
        self.own = [each for (argument, _), each in found if argument.position not in targets]
        self.given = [each for (argument, _), each in found if argument.position in targets]
        self.names = [argument.name for argument, _ in memory if argument.position in targets]
        self.blocks = [array for array, _ in every[len(memory) :]]


def _watched_pullback(
    context: BaseContext, builder: IRBuilder, derivation: Derivation, shadows: _Shadows, seed: tuple[Any, Any]
) -> WatchedCall | None:
    """The reverse sweep as a call of its own in debug mode."""
    if not derivation.task.options.debug:
        return None
    names = (*(argument.name for argument in derivation.arguments), *shadows.names)
    outputs = [f"the derivative with respect to {name}" for name in names]
    inputs = [
        (f"the memory given for the derivative with respect to {name}", array._getvalue(), kind)
        for name, (array, kind) in zip(shadows.names, shadows.given, strict=True)
    ]
    return WatchedCall(context, builder, derivation, [*inputs, ("the cotangent", *seed)], outputs, has_tape=False)


def _clear(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    return_shadow: Any,
    arrays: Sequence[Any],
    array_types: Any,
) -> None:
    """Clears the cotangents that an earlier call left: those of argument memory and of returned numbers."""
    for array, array_type in zip(arrays, array_types, strict=True):
        extent = extent_of_array(context, builder, array, array_type)
        start = builder.inttoptr(extent.low, _VOID_POINTER)
        clear(builder, start, extent.size(builder), derivation.compiled.clear)
    for leaf in build.returned_leaves(derivation.return_type):
        if leaf.kind is LeafKind.NUMBER:
            seeding.store_zero(builder, return_shadow, leaf.path)


def _raise_on_misfits(
    context: BaseContext, builder: IRBuilder, misfits: Iterable[seeding.Misfit], references: References, state: State
) -> None:
    for misfit in misfits:
        with builder.if_then(misfit.is_there, likely=False):
            state.give_back()
            references.release()
            misfit.raise_it(context, builder, SignatureError)


def _seed_arrays(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    shadows: Sequence[tuple[Any, Any]],
    seed: tuple[Any, Any],
    references: References,
    state: State,
) -> None:
    """Adds the cotangents of what the function wrote to the shadows of its arrays."""
    parts = list(final_parts(context, builder, derivation, shadows, seed))
    misfits = (seeding.misfit_of_final(builder, given[0], shadow[0]) for shadow, given in parts)
    _raise_on_misfits(context, builder, misfits, references, state)
    for shadow, given in parts:
        add_final(context, builder, shadow, given)


def _run_reverse(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    sweeps: Separate,
    state: State,
    references: References,
    watched: WatchedCall | None,
) -> Cotangents:
    """Calls the reverse sweep; the result holds the cotangents of numbers.

    The sweep reports in the arena when the stack was too short for it; an earlier report is taken back.
    """
    arena = state.arena()
    failed = arena_field(builder, arena, "failed", ir.IntType(32))
    builder.store(ir.IntType(32)(0), failed)
    if watched is not None:
        with cgutils.if_unlikely(builder, watched.enter(arena)):
            state.give_back()
            references.release()
            raise_kept(context, builder)
    cotangents = Cotangents(context, builder, derivation)
    values = [state.frame, arena, *cotangents.pointers()]
    function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    symbol = derivation.compiled.library.symbols[derivation.compiled.derivative.symbols[REVERSE]]
    builder.call(cgutils.get_or_insert_function(builder.module, function_type, symbol), values)
    failure = Failure.of(context, builder, arena)
    state.give_back(is_used=not sweeps.repeats)
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
        references.release()
        failure.raise_it(context, builder)
    return cotangents
