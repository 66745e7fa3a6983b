"""Code around the functions of a rule: annotates arguments, keeps values for the reverse, takes cotangents out.

The frame of a call of a rule holds

    pointers    shadows of the arguments' arrays, in the order of their LLVM parameters; shadow of the returned value
    values      the arguments as the primal took them; the shadow of the result; the tape

The references in it belong to the arena, which drops them when the derivative ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.types import Type

from irad.errors import RuleError
from irad.frontend import resident
from irad.frontend.calls import seeding
from irad.frontend.calls.seeding import part_of, place_of
from irad.frontend.custom.rule_types import Annotated, Result, at_path, writable
from irad.frontend.emit import Emit
from irad.frontend.packing.packed import way_through
from irad.frontend.values import abi
from irad.frontend.values.tree import Content, LeafKind

_POINTER: Final = cgutils.voidptr_t
SHAPE_MISFIT: Final = (
    "the augmented primal of a rule returns a shadow whose shape differs from that of its array",
    "return a shadow of the same shape: np.zeros_like(y)",
    "it needs an element for the cotangent of each element",
)


def annotate(
    emit: Emit,
    arguments: Sequence[Annotated],
    values: Sequence[Value],
    lanes: Sequence[tuple[Iterator[Value], Iterator[Value]]],
) -> list[Value]:
    """The annotated arguments, new references.

    Args:
        arguments: their descriptions.
        values: as the primal takes them.
        lanes: for each direction that the rule is given, pointers to the shadows of the arrays that take part; in
            forward mode also the tangents of the numbers that do.
    """
    given = zip(arguments, values, strict=True)
    return [_annotated(emit, *each, lanes) for each in given]


def _annotated(
    emit: Emit,
    argument: Annotated,
    value: Value,
    lanes: Sequence[tuple[Iterator[Value], Iterator[Value]]],
) -> Value:
    context, builder = emit.context, emit.builder
    if isinstance(argument.type, types.Omitted):  # the caller has left it out
        seen = context.get_constant_generic(builder, argument.value_type, argument.type.value)
    else:
        seen = context.cast(builder, value, argument.type, argument.value_type)
    context.nrt.incref(builder, argument.value_type, seen)
    parts = [seen]
    companion = argument.companion_type
    if companion is not None:
        one = argument.direction_type
        found = [_companion(emit, argument.type, one, value, *lane) for lane in lanes]
        parts.append(in_lanes(emit, companion, found, argument.lanes))
    return context.make_tuple(builder, argument.numba_type, parts)


def in_lanes(emit: Emit, numba_type: Type, values: Sequence[Value], lanes: int | None) -> Value:
    """Values of all directions as a rule takes them: a tuple, if it takes all at once."""
    is_single = lanes is None or numba_type == types.none
    return values[0] if is_single else emit.context.make_tuple(emit.builder, numba_type, values)


def of_lanes(builder: IRBuilder, numba_type: Type, value: Value, lanes: int | None) -> list[Value]:
    """The reverse: the items of such a tuple."""
    if lanes is None:
        return [value]
    return [value] * lanes if numba_type == types.none else cgutils.unpack_tuple(builder, value, lanes)


def of_lane(emit: Emit, value_type: Type, value: Value, lane: int) -> tuple[Type, Value]:
    """The value and its tangent or shadow in one direction, from those in all directions."""
    builder = emit.builder
    assert isinstance(value_type, types.BaseTuple)
    primal_type, all_types = value_type.types[:2]
    if not isinstance(all_types, types.BaseTuple):  # None: not needed
        return value_type, value
    one = types.Tuple([primal_type, all_types.types[lane]])
    found = builder.extract_value(builder.extract_value(value, 1), lane)
    return one, emit.context.make_tuple(builder, one, [builder.extract_value(value, 0), found])


def _companion(
    emit: Emit,
    numba_type: Type,
    shadow_type: Type,
    value: Value,
    shadows: Iterator[Value],
    numbers: Iterator[Value],
) -> Value:
    """The tangent or shadow of a value, in its structure: numbers; arrays over memory of shadows, without an owner."""
    context, builder = emit.context, emit.builder
    if isinstance(numba_type, types.BaseTuple):
        assert isinstance(shadow_type, types.BaseTuple)
        pairs = enumerate(zip(numba_type.types, shadow_type.types, strict=True))
        items = [
            _companion(emit, item, its_shadow, builder.extract_value(value, i), shadows, numbers)
            for i, (item, its_shadow) in pairs
        ]
        return context.make_tuple(builder, shadow_type, items)
    if shadow_type == types.none:
        return context.get_dummy_value()
    if numba_type == types.voidptr:
        return next(shadows)
    if not isinstance(numba_type, types.Array):
        return next(numbers)
    primal = context.make_array(numba_type)(context, builder, value)
    array = context.make_array(shadow_type)(context, builder)
    for name in ("nitems", "itemsize", "shape", "strides"):
        setattr(array, name, getattr(primal, name))
    array.data = builder.bitcast(next(shadows), primal.data.type)
    return array._getvalue()


def numbers(emit: Emit, parts: dict[Content, list[bool]], floats: Iterator[Value]) -> Iterator[Value]:
    """The tangents of numbers from those of their floats that take part: the others are zero."""
    for leaf, takes_part in parts.items():
        number_type = emit.context.get_value_type(leaf.type)
        if leaf.float_count == 1:
            yield next(floats)
            continue
        number: Value = cgutils.get_null_value(number_type)
        for i, has_tangent in enumerate(takes_part):
            if has_tangent:
                number = emit.builder.insert_value(number, next(floats), i)
        yield number


def frame_type(context: BaseContext, held: Type, pointers: int) -> ir.LiteralStructType:
    """The LLVM type of a frame that holds pointers, then a value of a Numba type."""
    return ir.LiteralStructType([ir.ArrayType(_POINTER, pointers), context.get_value_type(held)])


def keep(
    emit: Emit,
    arena: Value,
    frame: Value,
    number: int,
    pointers: Sequence[Value],
    held: Type,
    value: Value,
) -> None:
    """Fills a frame, one of several in a row, and gives the references in it to the arena."""
    builder = emit.builder
    place = builder.bitcast(frame, frame_type(emit.context, held, len(pointers)).as_pointer())
    for index, pointer in enumerate(pointers):
        builder.store(pointer, cgutils.gep_inbounds(builder, place, number, 0, index))
    builder.store(value, cgutils.gep_inbounds(builder, place, number, 1))
    give_to_arena(emit, arena, held, value)


def give_to_arena(emit: Emit, arena: Value, held: Type, value: Value) -> None:
    """Keeps the memory of a value until the derivative ends."""
    context, builder = emit.context, emit.builder
    context.nrt.incref(builder, held, value)
    defer = resident.declared(builder.module, "irad.arena_defer", ir.VoidType(), [_POINTER, _POINTER])
    for _, meminfo in context.nrt.get_meminfos(builder, held, value):
        builder.call(defer, [arena, meminfo])


def kept(emit: Emit, frame: Value, number: int, held: Type, count: int) -> tuple[Sequence[Value], Value]:
    """Pointers and value in a frame, one of several in a row; borrowed."""
    builder = emit.builder
    place = builder.bitcast(frame, frame_type(emit.context, held, count).as_pointer())
    pointers = [builder.load(cgutils.gep_inbounds(builder, place, number, 0, index)) for index in range(count)]
    return pointers, builder.load(cgutils.gep_inbounds(builder, place, number, 1))


def store_result(
    emit: Emit,
    result: Result,
    returned: Value | None,
    returned_shadow: Value,
    value_type: Type,
    value: Value,
    shape_misfit: tuple[str, str, str] = SHAPE_MISFIT,
) -> Value:
    """Puts the result of the rule's function that runs the primal where its caller expects it.

    Args:
        result: return value of the primal.
        returned: memory for the value; None: another direction has brought it.
        returned_shadow: its shadow.
        value_type: of a tuple that begins with the value and its shadow, or tangent.
        value: the tuple.
        shape_misfit: says that a shadow has another shape than its array.

    Returns:
        The shadow, as a value of the type ``result.cotangent_type``, borrowed; numbers in it are zero.
    """
    context, builder = emit.context, emit.builder
    assert isinstance(value_type, types.BaseTuple)
    primal_type, shadow_type = value_type.types[:2]
    primal = builder.extract_value(value, 0)
    return_type = abi.return_llvm_type(result.type).as_pointer()
    if primal_type == types.none:  # not needed
        primal = context.get_constant_null(result.type)
    else:
        if returned is not None:
            context.nrt.incref(builder, primal_type, primal)
        primal = context.cast(builder, primal, primal_type, result.type)
    if returned is not None:
        builder.store(context.get_return_value(builder, result.type, primal), builder.bitcast(returned, return_type))
    if not result.is_active:
        return context.get_dummy_value()
    _check_shapes(emit, result, primal, shadow_type, builder.extract_value(value, 1), shape_misfit)
    place = builder.bitcast(returned_shadow, return_type)
    shadow = _result_shadow(emit, result.type, result.cotangent_type, shadow_type, value)
    for leaf in result.arrays:
        part = part_of(builder, shadow, leaf.path)
        builder.store(part, place_of(builder, place, leaf.path))
    return shadow


def _result_shadow(emit: Emit, result_type: Type, cotangent_type: Type, shadow_type: Type, value: Value) -> Value:
    context, builder = emit.context, emit.builder
    given = builder.extract_value(value, 1)

    def part(numba_type: Type, wanted: Type, found: Type, path: tuple[int, ...]) -> Value:
        if isinstance(numba_type, types.BaseTuple):
            inner = found.types if isinstance(found, types.BaseTuple) else [types.none] * len(numba_type.types)
            assert isinstance(wanted, types.BaseTuple)
            triples = enumerate(zip(numba_type.types, wanted.types, inner, strict=True))
            return context.make_tuple(builder, wanted, [part(*each, (*path, i)) for i, each in triples])
        if isinstance(numba_type, types.Array) and wanted != types.none:
            return context.cast(builder, part_of(builder, given, path), found, writable(numba_type))
        return context.get_constant_null(wanted)

    return part(result_type, cotangent_type, shadow_type, ())


def _check_shapes(
    emit: Emit,
    result: Result,
    primal: Value,
    shadow_type: Type,
    shadow: Value,
    texts: tuple[str, str, str],
) -> None:
    """Raises an error if a shadow does not have the shape of its array."""
    parts = [
        seeding.SeededPart(leaf, at_path(shadow_type, leaf.path), leaf.path, (), way_through(shadow_type, leaf.path))
        for leaf in result.arrays
    ]
    for misfit in seeding.misfits(emit, primal, shadow, parts):
        with emit.builder.if_then(misfit.is_there, likely=False):
            misfit.raise_it(emit, RuleError, texts)


def cotangent(emit: Emit, result: Result, returned_shadow: Value, shadow: Value) -> Value:
    """The cotangent of the result, borrowed: numbers are taken out of the shadow, which is cleared for older content.

    Args:
        result: return value of the primal.
        returned_shadow: the shadow of the memory for the value.
        shadow: result of `store_result`.
    """
    builder = emit.builder
    if not result.is_active:
        return shadow
    place = builder.bitcast(returned_shadow, abi.return_llvm_type(result.type).as_pointer())
    for leaf in result.leaves:
        if leaf.kind is not LeafKind.NUMBER:
            continue
        number = builder.load(place_of(builder, place, leaf.path))
        seeding.store_zero(builder, place, leaf.path)
        shadow = builder.insert_value(shadow, number, list(leaf.path)) if leaf.path else number
    return shadow


def clear(emit: Emit, result: Result, shadow: Value) -> None:
    """Clears the shadows of returned arrays, for the next run of the reverse sweep.

    Not those that are shadows of arguments: these are up to the rule, and their memory has no owner.

    Args:
        result: return value of the primal.
        shadow: result of `cotangent`.
    """
    context, builder = emit.context, emit.builder
    for leaf in result.arrays:
        array_type = writable(leaf.type)
        assert isinstance(array_type, types.Array)
        array = context.make_array(array_type)(context, builder, part_of(builder, shadow, leaf.path))
        zero = context.get_constant_null(array_type.dtype)
        with builder.if_then(cgutils.is_not_null(builder, array.meminfo)):
            shape = cgutils.unpack_tuple(builder, array.shape, array_type.ndim)
            with cgutils.loop_nest(builder, shape, shape[0].type if shape else cgutils.intp_t) as indices:
                place = cgutils.get_item_pointer(context, builder, array_type, array, indices, wraparound=False)
                context.pack_value(builder, array_type.dtype, zero, place)


def deliver(
    emit: Emit,
    arguments: Sequence[Annotated],
    parts: dict[Content, list[bool]],
    returned_type: Type,
    returned: Value,
    outs: Iterator[Value],
    lane: tuple[int, ...],
) -> None:
    """Stores the cotangents that a reverse returned.

    Args:
        arguments: arguments of the primal.
        parts: for each number which of its floats take part.
        returned_type: the type of what the reverse returned.
        returned: that value.
        outs: pointers for the floats that take part, in the order of the LLVM parameters.
        lane: where an argument's cotangent is what the reverse returned for it: the number of a direction, if any.
    """
    builder = emit.builder
    for position, argument in enumerate(arguments):
        for leaf in argument.leaves:
            if leaf.kind is not LeafKind.NUMBER or leaf not in argument.active:
                continue
            path = (position, *lane, *leaf.path)
            value = part_of(builder, returned, path)
            given = at_path(returned_type, path)
            assert given is not None
            number = emit.context.cast(builder, value, given, leaf.type)
            floats = [number] if leaf.float_count == 1 else [builder.extract_value(number, i) for i in (0, 1)]
            for each, takes_part in zip(floats, parts[leaf], strict=True):
                if takes_part:
                    builder.store(each, builder.bitcast(next(outs), each.type.as_pointer()))
