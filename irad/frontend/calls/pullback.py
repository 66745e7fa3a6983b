"""The two sweeps of `irad.vjp`, which may run far apart: forward fills a state, the pullback reads it.

The state is one block of memory: the frame, the returned struct, its shadow, the arena. Shadows of the arguments are
arrays beside it. The arena is deleted by `close_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext

from irad.debug.calls import WatchedCall
from irad.debug.outputs import output_names
from irad.errors import ActivityError, IradError, SignatureError, UnsupportedProgram
from irad.frontend.calls import seeding
from irad.frontend.calls.annotations import Returns, Role, Seed, Task
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import DerivativeDispatcher, make_wrapper, parameter_names
from irad.frontend.calls.failure import Failure, arena_field, field_of
from irad.frontend.calls.final_arrays import add_final, check_final, final_parts
from irad.frontend.calls.kept import raise_kept
from irad.frontend.calls.result_types import structured
from irad.frontend.calls.signature import check_representable, may_have_derivative, without_derivative
from irad.frontend.calls.state import STATE_TYPE, Layout, layout_of, places_in
from irad.frontend.calls.sweeps import Cotangents, Extras, Sweeps
from irad.frontend.custom import entry, packs
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.memory.buffers import copy_arrays
from irad.frontend.memory.list_memory import clear_block, list_of_block
from irad.frontend.memory.object_memory import clear_objects, copy_objects
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import (
    BYTES,
    MEMINFO_TYPE,
    bytes_at,
    clear,
    extent_of_array,
)
from irad.frontend.numba.boxing import with_numpy_numbers
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.private import compiler_lock
from irad.frontend.values import abi, build, gradients
from irad.frontend.values.tree import Content, LeafKind
from irad.options import Options
from irad.passes.mode import REVERSE

_INTP = cgutils.intp_t
_I64 = ir.IntType(64)
_VOID_POINTER = cgutils.voidptr_t


class ForwardDispatcher(DerivativeDispatcher):
    """The forward sweep of a function: returns a number, the value, the state and the shadows of the arguments.

    Attributes:
        pullbacks: for each number a compiled ``(state, shadows, seed) -> gradients``.
        has_rules: for each number whether rules that users wrote take part in it.
        options: how the derivative is made.
        numbers: the number for each tuple of argument types.

    Args:
        primal: the dispatcher of the function.
        options: as above.
        rebuild: how pickle makes it again.
        argnums: the arguments whose cotangents are wanted; None for all.
    """

    def __init__(
        self, primal: Any, options: Options, rebuild: tuple[Any, ...], argnums: tuple[int, ...] | None = None
    ) -> None:
        self.pullbacks: list[DerivativeDispatcher] = []
        self.options, self.numbers = options, dict[tuple[Any, ...], int]()
        self.has_rules: list[bool] = []
        names = parameter_names(primal.py_func)

        def define(argument_types: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
            derivation = derivation_for(primal, argument_types, options, argnums)
            number = self.numbers[argument_types] = len(self.pullbacks)
            self.pullbacks.append(_pullback(primal, derivation))
            self.has_rules.append(bool(derivation.compiled.derivative.ruled))
            result_type = forward_type(derivation)

            def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
                held = tuple(zip(values, signature.args, strict=True))
                return emit_forward(context, builder, derivation, values, number, held)

            return result_type(*argument_types), lower

        call = Definition(names, define)
        wrapper = make_wrapper("vjp", primal.py_func, [], "irad_call({arguments})", call)
        super().__init__(wrapper, call, primal, "vjp", rebuild, lambda result: result)


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
    writes_only = returns_nothing(primal, argument_types, options) and any(
        leaf.is_array and leaf.kind is LeafKind.ARRAY for a in arguments for leaf in a.leaves
    )
    seed = Seed.NONE if writes_only else Seed.GIVEN
    return Task(roles, seed, returns=Returns.VALUE_AND_GRADIENT, options=options)  # so rules know the value is needed


def returns_nothing(primal: Any, argument_types: tuple[Any, ...], options: Options) -> bool:
    """Whether a function returns no value, so that its results are what it writes to its arrays."""
    return bool(returned_type(primal, argument_types, options) == types.none)


def returned_type(primal: Any, argument_types: tuple[Any, ...], options: Options) -> Any:
    """The type of what a function returns."""
    with compiler_lock():
        packs.load()
        program = load_program(
            entry.caller_of(primal), argument_types, peels=not options.debug, checks=options.boundscheck
        )
    return program.signature.return_type


def derivation_for(
    primal: Any, argument_types: tuple[Any, ...], options: Options, argnums: tuple[int, ...] | None = None
) -> Derivation:
    """The derivation behind `irad.vjp` for some types.

    Where active values are stored in an argument that is not one of ``argnums``, all have cotangents.

    Raises:
        IradError: there is none.
    """
    if argnums is not None:
        try:
            return _derivation_for(primal, argument_types, options, argnums)
        except IradError as error:
            several = error.errors if isinstance(error, UnsupportedProgram) else (error,)
            if not any(isinstance(each, ActivityError) for each in several):
                raise
    return _derivation_for(primal, argument_types, options, None)


def _derivation_for(
    primal: Any, argument_types: tuple[Any, ...], options: Options, argnums: tuple[int, ...] | None
) -> Derivation:
    task = task_for(primal, argument_types, options, argnums)
    return derivation_of(primal, argument_types, task, arguments_may_change=True)


def _pullback(primal: Any, derivation: Derivation) -> DerivativeDispatcher:
    def define(given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        if derivation.task.seed is Seed.NONE:
            check_final(primal.py_func.__qualname__, derivation.caller_arguments, given[2])
        else:
            seeding.check_seed(primal.py_func.__qualname__, derivation.return_type, given[2])

        def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
            return emit_pullback(context, builder, derivation, signature, values)

        return gradients_type(derivation)(*given), lower

    def like(state: Any, shadows: Value, cotangent: Any) -> None:
        """Parameters of a pullback."""

    call = Definition(parameter_names(like), define)
    wrapper = make_wrapper("pullback", like, [], "irad_call({arguments})", call)
    return DerivativeDispatcher(wrapper, call, primal, "pullback", (_no_pickle, ()), with_numpy_numbers)


def _no_pickle() -> None:
    raise TypeError("a pullback holds memory of this process and cannot be pickled")


# --- types ------------------------------------------------------------------------------------------------------------


def forward_type(derivation: Derivation) -> Any:
    """What the forward sweep returns."""
    shadows = types.BaseTuple.from_types(
        (
            *(_shadow_type(leaf) for _, leaf in derivation.active_memory()),
            *(BYTES for _ in derivation.active_lists()),
            *((BYTES, BYTES) if derivation.active_objects() else ()),
        )
    )
    return types.Tuple((types.intp, gradients.owned_type(derivation.return_type), STATE_TYPE, shadows))


def _shadow_type(leaf: Content) -> Any:
    if not leaf.is_array:
        return types.Array(leaf.type, 0, "C")
    return types.Array(leaf.type.dtype, leaf.type.ndim, leaf.type.layout)


def gradients_type(derivation: Derivation) -> Any:
    """What the pullback returns: one entry for each argument."""
    return types.BaseTuple.from_types(
        tuple(
            types.none
            if derivation.task.role_of(a.position) is Role.CONST
            else gradients.gradient_type(derivation.caller_arguments[a.position].type)
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
    held: Sequence[tuple[Any, Any]],
) -> Any:
    """Emits the forward sweep; the result has the type `forward_type`."""
    layout = layout_of(derivation)
    state = References(context, builder, None, held).scratch(_INTP(layout.size))
    block = context.nrt.meminfo_data(builder, state)
    places = places_in(builder, derivation, block, layout)
    extras = Extras({}, held=(*held, (state, MEMINFO_TYPE)), places=places)
    sweeps = Sweeps(context, builder, derivation, values, extras, keeps_value=True)
    arena = sweeps.open_arena("irad.arena_new")
    sweeps.watch(arena, values, extras, "irad.arena_delete", output_names(derivation, {})[: 1 + len(values)])
    status = sweeps.run_augmented(block, arena)
    result_type = forward_type(derivation)
    result = sweeps.zeroed(context.get_value_type(result_type))
    with sweeps.succeeded(status, arena, "irad.arena_delete"):
        builder.store(arena, field_of(builder, block, layout.arena, _VOID_POINTER))
        sweeps.references.defer_transient(sweeps.support("irad.arena_defer", ir.VoidType(), [_VOID_POINTER] * 2), arena)
        leaves = [leaf for _, leaf in derivation.active_memory()]
        shadows = [sweeps.memory.gradient_of(leaf, _shadow_type(leaf)) for leaf in leaves]
        shadows += [sweeps.memory.list_shadow(leaf) for _, leaf in derivation.active_lists()]
        shadows += sweeps.memory.object_state()
        items = (
            _INTP(number),
            sweeps.kept_value(),
            bytes_at(context, builder, block, _INTP(layout.size), state),
            context.make_tuple(builder, result_type.types[3], shadows),
        )
        builder.store(context.make_tuple(builder, result_type, items), result)
        if sweeps.watched is not None:
            builder.store(sweeps.watched.call, field_of(builder, block, layout.call, _I64))
            looked_at = [(sweeps.value(), derivation.return_type), *zip(values, derivation.argument_types, strict=True)]
            with builder.if_then(sweeps.watched.finish_augmented(looked_at), likely=False):
                sweeps.close_arena("irad.arena_delete", arena)
                for value, numba_type in (*held, (builder.load(result), result_type)):
                    context.nrt.decref(builder, numba_type, value)
                raise_kept(context, builder)
    return builder.load(result)


# --- pullback ---------------------------------------------------------------------------------------------------------


def emit_pullback(
    context: BaseContext, builder: IRBuilder, derivation: Derivation, signature: Any, values: Sequence[Any]
) -> Any:
    """Emits the reverse sweep of a state; the result has the type `gradients_type`.

    Argument shadows and the cotangent of the return value are cleared first: the sweep leaves both as it pleases.
    """
    state, shadows, seed = values
    shadows_type, seed_type = signature.args[1:]
    references = References(context, builder, None, list(zip(values, signature.args, strict=True)))
    derivation.compiled.library.link_into(context.active_code_library)
    layout = layout_of(derivation)
    block = context.make_array(STATE_TYPE)(context, builder, state).data
    return_pointer, return_shadow = places_in(builder, derivation, block, layout)
    parts = zip(shadows_type.types, cgutils.unpack_tuple(builder, shadows), strict=True)
    arrays = [context.make_array(array_type)(context, builder, part) for array_type, part in parts]
    count = len(derivation.active_memory())
    arrays, array_types, blocks = arrays[:count], shadows_type.types[:count], arrays[count:]
    objects = [abi.reference_of(leaf) for _, leaf in derivation.active_objects()]
    _clear(context, builder, derivation, return_shadow, arrays, array_types)
    for (_, leaf), block_array in zip(derivation.active_lists(), blocks, strict=bool(not objects)):
        clear_block(builder, leaf.type, block_array.data, block_array.nitems)
    if objects:
        clear_objects(context, builder, objects, blocks[0].data)
    if derivation.task.seed is Seed.NONE:
        final = list(zip(arrays, array_types, strict=True))
        _seed_arrays(context, builder, derivation, final, (seed, seed_type), references)
    else:
        value = context.get_returned_value(builder, derivation.return_type, builder.load(return_pointer))
        seeded = seeding.seeded_parts(derivation.return_type, seed_type)
        _raise_on_misfits(context, builder, seeding.misfits(context, builder, value, seed, seeded), references)
        for part in seeded:
            seeding.add_seed(context, builder, return_shadow, value, seed, part)
    watched = _watched_pullback(context, builder, derivation, (seed, seed_type))
    cotangents = _run_reverse(context, builder, derivation, block, layout, references, watched)
    written = derivation.compiled.written
    may_overlap = count > 1 and any(leaf.data_index in written for _, leaf in derivation.active_memory())
    made: list[Any] = []
    if objects:
        moved, made = copy_objects(context, builder, objects, blocks, (arrays, array_types), references)
        copies = iter(moved)
    else:
        copies = iter(copy_arrays(context, builder, arrays, array_types, may_overlap, references))
    lists, instances = iter(blocks), iter(made)

    def make(leaf: Content, gradient_type: Any) -> Any:
        match leaf.kind:
            case LeafKind.NUMBER | LeafKind.OPTIONAL:
                return cotangents.value(leaf, gradient_type)
            case LeafKind.OBJECT | LeafKind.LIST if objects:
                return next(instances)
            case LeafKind.LIST:
                return list_of_block(context, builder, gradient_type, next(lists).data, references)
            case LeafKind.ARRAY | LeafKind.RECORD | LeafKind.OBJECT | LeafKind.INERT:
                return next(copies)

    result_type = gradients_type(derivation)
    items = []
    for argument, gradient_type in zip(derivation.arguments, result_type.types, strict=True):
        if gradient_type == types.none:
            items.append(context.get_dummy_value())
            continue
        caller_type = derivation.caller_arguments[argument.position].type
        items.append(structured(context, builder, caller_type, gradient_type, iter(argument.leaves), make))
    result = context.make_tuple(builder, result_type, items)
    if watched is not None:
        augmented = builder.load(field_of(builder, block, layout.call, _I64))
        with builder.if_then(watched.finish(list(zip(items, result_type.types, strict=True)), augmented), likely=False):
            references.release()
            raise_kept(context, builder)
    references.release_transient()
    return result


def _watched_pullback(
    context: BaseContext, builder: IRBuilder, derivation: Derivation, seed: tuple[Any, Any]
) -> WatchedCall | None:
    """The reverse sweep as a call of its own in debug mode."""
    if not derivation.task.options.debug:
        return None
    outputs = [f"the derivative with respect to {argument.name}" for argument in derivation.arguments]
    return WatchedCall(context, builder, derivation, [("the cotangent", *seed)], outputs, has_tape=False)


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
    context: BaseContext, builder: IRBuilder, misfits: Iterable[seeding.Misfit], references: References
) -> None:
    for misfit in misfits:
        with builder.if_then(misfit.is_there, likely=False):
            references.release()
            misfit.raise_it(context, builder, SignatureError)


def _seed_arrays(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    shadows: Sequence[tuple[Any, Any]],
    seed: tuple[Any, Any],
    references: References,
) -> None:
    """Adds the cotangents of what the function wrote to the shadows of its arrays."""
    parts = list(final_parts(context, builder, derivation, shadows, seed))
    misfits = (seeding.misfit_of_final(builder, given[0], shadow[0]) for shadow, given in parts)
    _raise_on_misfits(context, builder, misfits, references)
    for shadow, given in parts:
        add_final(context, builder, shadow, given)


def _run_reverse(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    block: Value,
    layout: Layout,
    references: References,
    watched: WatchedCall | None,
) -> Cotangents:
    """Calls the reverse sweep; the result holds the cotangents of numbers.

    The sweep reports in the arena when the stack was too short for it; an earlier report is taken back.
    """
    arena = builder.load(field_of(builder, block, layout.arena, _VOID_POINTER))
    failed = arena_field(builder, arena, "failed", ir.IntType(32))
    builder.store(ir.IntType(32)(0), failed)
    if watched is not None:
        with cgutils.if_unlikely(builder, watched.enter(arena)):
            references.release()
            raise_kept(context, builder)
    cotangents = Cotangents(context, builder, derivation)
    values = [block, arena, *cotangents.pointers()]
    function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    symbol = derivation.compiled.library.symbols[derivation.compiled.derivative.symbols[REVERSE]]
    builder.call(cgutils.get_or_insert_function(builder.module, function_type, symbol), values)
    failure = Failure.of(context, builder, arena)
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failure.reason)):
        references.release()
        failure.raise_it(context, builder)
    return cotangents
