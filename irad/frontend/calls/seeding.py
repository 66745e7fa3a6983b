"""Puts the cotangent of the return value into the shadow of the memory that the function returned it through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types

from irad.errors import HERE, IradError, SignatureError
from irad.frontend.calls.exceptions import raise_misfit
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory import caller_values
from irad.frontend.memory.caller_values import NotesOf
from irad.frontend.memory.shadows import any_of, differ
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import have_parts_alike, shown_structure, structure_of, ways_of
from irad.frontend.values import layouts, tree
from irad.frontend.values.gradients import may_be_cotangent
from irad.frontend.values.tree import Content, LeafKind
from irad.records import dataclass

_DATA_FIELD = 4  # of Numba's array: meminfo, parent, nitems, itemsize, data, …
_WEIGHS = "the cotangent holds a weight for each element of the value"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A part of a seed that may not fit its value.

    Attributes:
        is_there: whether it does not.
        texts: problem, remedy and reason.
        shapes: of an array its shape, and that of the array in the value.
    """

    is_there: Any
    texts: tuple[str, str, str]
    shapes: tuple[Sequence[Any], Sequence[Any]] | None = None

    def raise_it(
        self,
        emit: Emit,
        error: type[IradError],
        texts: tuple[str, str, str] | None = None,
    ) -> None:
        """Ends the function that is being generated with an error that says this, or other texts."""
        if self.shapes is None:
            emit.context.call_conv.return_user_exc(emit.builder, error, (*(texts or self.texts), HERE))
        else:
            raise_misfit(emit, error, texts or self.texts, *self.shapes)


@dataclass(frozen=True, slots=True)
class SeededPart:
    """A number, array or record in the return value that gets a cotangent.

    Attributes:
        leaf: with its path through the value.
        type: the Numba type of the cotangent.
        path: the way to that through the seed.
        flags: paths through the value to the flags that tell whether it is there, where it may be None.
        way: path to it in Python syntax.
    """

    leaf: Content
    type: Any
    path: tuple[int, ...]
    flags: tuple[tuple[int, ...], ...]
    way: str


def check_seed(name: str, return_type: types.Type, seed_type: types.Type) -> None:
    """Checks the structure of a seed against that of the return value.

    Args:
        name: name of the function.
        return_type: its return type.
        seed_type: the type of the seed.

    Raises:
        SignatureError: it is another one.
    """
    _check(name, return_type, seed_type, "")


def _check(name: str, return_type: Any, seed_type: Any, at: str) -> None:
    if isinstance(return_type, types.BaseTuple):
        if seed_type == types.none:
            return
        if not isinstance(seed_type, types.BaseTuple) or not have_parts_alike(return_type, seed_type):
            known = structure_of(return_type)
            wanted = f"a tuple with {len(return_type.types)} entries" if known is None else shown_structure(known)
            raise _misfit(name, return_type, seed_type, at, f"{wanted}, in this order" if known else wanted)
        for way, item, seed in zip(ways_of(return_type), return_type.types, seed_type.types, strict=True):
            _check(name, item, seed, at + way)
        return
    if isinstance(return_type, types.Optional):
        _check(name, return_type.type, seed_type, at)
        return
    match tree.kind_of(return_type):
        case LeafKind.NUMBER:
            is_complex = return_type in layouts.COMPLEX
            good = isinstance(seed_type, types.Float | types.Integer) or (is_complex and seed_type in layouts.COMPLEX)
            wanted = f"a {'complex number' if is_complex else 'float'}, or None for no weight"
        case LeafKind.ARRAY:
            good = isinstance(seed_type, types.Array) and (seed_type.dtype, seed_type.ndim) == (
                return_type.dtype,
                return_type.ndim,
            )
            wanted = "an array of the same dtype and shape (np.ones_like(value)), or None for no weight"
        case LeafKind.RECORD:
            good, wanted = seed_type == return_type, "a record of the same dtype, or None for no weight"
        case LeafKind.LIST | LeafKind.OBJECT:
            good = may_be_cotangent(tree.content_of(return_type), seed_type)
            wanted = "a value of the same type and structure (irad.data.make_zero makes one), or None for no weight"
        case LeafKind.INERT | LeafKind.OPTIONAL:
            good, wanted = False, "None: the value has no derivative"
    if not good and seed_type != types.none:
        raise _misfit(name, return_type, seed_type, at, wanted)


def _misfit(name: str, return_type: types.Type, seed_type: types.Type, at: str, wanted: str) -> SignatureError:
    what = f"value{at}" if at else "the value"
    return SignatureError(
        f"the cotangent of {what} of {name} is {described(seed_type)}, but {what} is {described(return_type)}",
        f"pass {wanted}",
        "the cotangent, or seed, holds a weight for each number in the value, so it has the structure of the value",
    )


def store_unit(builder: IRBuilder, shadow: Value, path: tuple[int, ...]) -> None:
    """Makes 1 the cotangent of the float at a path of the returned value."""
    place = place_of(builder, shadow, path)
    builder.store(ir.Constant(place.type.pointee, 1.0), place)


def store_zero(builder: IRBuilder, shadow: Value, path: tuple[int, ...]) -> None:
    """Makes 0 the cotangent of the number at a path of the returned value."""
    place = place_of(builder, shadow, path)
    builder.store(cgutils.get_null_value(place.type.pointee), place)


def seeded_parts(return_type: types.Type, seed_type: types.Type) -> list[SeededPart]:
    """Parts of the return value that get a cotangent, in order; None stands for that of a whole tuple, too."""
    return list(_seeded(tree.content_of(return_type), seed_type, (), (), ""))


def _seeded(
    content: Content, seed_type: Any, path: tuple[int, ...], flags: tuple[tuple[int, ...], ...], way: str
) -> Iterator[SeededPart]:
    if seed_type == types.none:
        return
    match content:
        case tree.TupleContent():
            ways = ways_of(content.type)
            for i, part in enumerate(content.parts):
                yield from _seeded(part, seed_type.types[i], (*path, i), flags, way + ways[i])
        case tree.OptionalContent():
            flag = (*content.path, tree.FLAG_OF_OPTIONAL)
            yield from _seeded(content.inside, seed_type, path, (*flags, flag), way)
        case _:
            yield SeededPart(content, seed_type, path, flags, way)


def misfits(
    emit: Emit,
    value: Value,
    seed: Value,
    parts: Sequence[SeededPart],
    notes_of: NotesOf | None = None,
) -> list[Misfit]:
    """Cotangents that may not fit: parts that are None, and parts whose shape or structure differs from the value's.

    Args:
        value: the returned value.
        seed: the cotangent.
        parts: of the value, those that get one.
        notes_of: reads what was noted of lists, dictionaries and instances; None where there are none.
    """
    builder = emit.builder
    found: list[Misfit] = []
    for part in parts:
        is_there = [cgutils.as_bool_bit(builder, part_of(builder, value, flag)) for flag in part.flags]
        found.extend(Misfit(builder.not_(flag), _none(part.way)) for flag in is_there)
        if part.leaf.kind.is_reference:
            assert notes_of is not None
            given = part_of(builder, seed, part.path), part.type
            differs = caller_values.cotangent_misfit(emit, part.leaf, given, notes_of, is_there)
            found.append(Misfit(differs, _another_structure(part.way)))
        if part.leaf.is_array:
            returned = emit.array(part.leaf.type, part_of(builder, value, part.leaf.path))
            its = emit.array(part.type, part_of(builder, seed, part.path))
            shapes = [tuple(cgutils.unpack_tuple(builder, array.shape)) for array in (its, returned)]
            found.append(Misfit(differ(builder, *shapes), _another_shape(part.way), (shapes[0], shapes[1])))
    return found


def misfit_of_final(builder: IRBuilder, given: Any, array: Any) -> Misfit:
    """True if the cotangent of an array that a function wrote has another shape."""
    shapes = [tuple(cgutils.unpack_tuple(builder, each.shape)) for each in (given, array)]
    texts = (
        "the cotangent has a different shape from the array",
        "pass an array of the same shape: np.ones_like(…)",
        _WEIGHS,
    )
    return Misfit(differ(builder, *shapes), texts, (shapes[0], shapes[1]))


def _none(at: str) -> tuple[str, str, str]:
    return f"the cotangent{at} is a value, but value{at} is None", f"pass None for cotangent{at}", _WEIGHS


def _another_shape(at: str) -> tuple[str, str, str]:
    return (
        f"the cotangent{at} has a different shape from the array that the function returned",
        f"pass an array with the shape of the value: np.ones_like(value{at})",
        _WEIGHS,
    )


def _another_structure(at: str) -> tuple[str, str, str]:
    return (
        f"the cotangent{at} has other lengths, keys or shapes than what the function returned",
        f"pass what irad.data.make_zero(value{at}) makes, with other numbers",
        _WEIGHS,
    )


def add_seeds(
    emit: Emit,
    return_type: types.Type,
    value: Value,
    seeds: Sequence[tuple[Any, Any]],
    lanes: Sequence[tuple[Any, NotesOf]],
    refuse: Callable[[list[Misfit]], None] | None = None,
) -> list[Misfit]:
    """Adds seeds, with their types, to shadows of the returned memory; the result says where one does not fit.

    Then ``refuse`` raises. Without it, all are left out, so that the reverse sweep can still run and release what it
    holds. Lanes are the shadows of the returned memory, with what reads the notes of what it points to.
    """
    builder = emit.builder
    parts = [seeded_parts(return_type, kind) for _, kind in seeds]
    found = [
        each
        for (seed, _), of_seed, (_, notes_of) in zip(seeds, parts, lanes, strict=True)
        for each in misfits(emit, value, seed, of_seed, notes_of)
    ]
    if refuse is not None:
        refuse(found)
    fits = builder.not_(any_of(builder, (each.is_there for each in found)))
    with nullcontext() if refuse is not None else builder.if_then(fits, likely=True):
        for (seed, _), lane, of_seed in zip(seeds, lanes, parts, strict=True):
            for part in of_seed:
                add_seed(emit, lane, value, seed, part)
    return found


def add_seed(
    emit: Emit,
    lane: tuple[Any, NotesOf],
    value: Value,
    seed: Value,
    seeded: SeededPart,
) -> None:
    """Adds the seed of one part.

    Args:
        lane: the shadow of the memory that the value was returned through, and what reads the notes.
        value: the whole value, as Numba holds it.
        seed: the whole seed, as Numba holds it.
        seeded: the part.
    """
    context, builder = emit.context, emit.builder
    leaf, seed_type, (shadow, notes_of) = seeded.leaf, seeded.type, lane
    part = part_of(builder, seed, seeded.path)
    if leaf.kind.is_reference:
        caller_values.add_cotangent(emit, leaf, (part, seed_type), notes_of)
        return
    place = place_of(builder, shadow, leaf.path)
    if leaf.kind is LeafKind.NUMBER:
        builder.store(context.cast(builder, part, seed_type, leaf.type), place)
        return
    if leaf.kind is LeafKind.RECORD:
        data = builder.load(place)
        # Null where the returned memory has no shadow: it does not depend on anything active.
        with cgutils.if_likely(builder, cgutils.is_not_null(builder, data)):
            _add_floats(builder, leaf.type, data, part)
        return
    data = builder.load(cgutils.gep_inbounds(builder, place, 0, _DATA_FIELD))
    with cgutils.if_likely(builder, cgutils.is_not_null(builder, data)):
        returned = emit.array(leaf.type, part_of(builder, value, leaf.path))
        given = emit.array(seed_type, part)
        add_elements(emit, leaf.type, data, returned, seed_type, given)


def add_elements(emit: Emit, target_type: Any, data: Any, returned: Any, seed_type: Any, given: Any) -> None:
    """Adds each element of an array to that of another one with the same shape.

    Args:
        target_type: target type of the array that is added to.
        data: where its elements lie.
        returned: a value with its shape and strides.
        seed_type: seed type of the array that is added.
        given: that array.
    """
    context, builder = emit.context, emit.builder
    shape = cgutils.unpack_tuple(builder, returned.shape)
    strides = cgutils.unpack_tuple(builder, returned.strides)
    with cgutils.loop_nest(builder, shape, INTP) as indices:
        place = cgutils.get_item_pointer2(context, builder, data, shape, strides, target_type.layout, indices)
        item = cgutils.get_item_pointer(context, builder, seed_type, given, indices)
        _add_floats(builder, target_type.dtype, place, item)


def _add_floats(builder: IRBuilder, element: Any, place: Value, item: Any) -> None:
    """Adds each float of the element at ``item`` to that of the element at ``place``."""
    target, source = (builder.bitcast(pointer, VOID_POINTER) for pointer in (place, item))
    for offset, float_type in layouts.floats_of_element(element):
        pointer = float_type.as_pointer()
        to, other = (builder.bitcast(builder.gep(base, [INTP(offset)]), pointer) for base in (target, source))
        # The fields of a packed record need not be aligned.
        total = builder.fadd(builder.load(to, align=1), builder.load(other, align=1))
        builder.store(total, to, align=1)


def place_of(builder: IRBuilder, pointer: Value, path: tuple[int, ...]) -> Any:
    """Address of a part of a tuple in memory."""
    return cgutils.gep_inbounds(builder, pointer, 0, *path) if path else pointer


def places_of(builder: IRBuilder, pointers: tuple[Value, Value], content: Content) -> tuple[Any, Any]:
    """The addresses of a part of a value in memory, and of its shadow."""
    value, shadow = (builder.bitcast(place_of(builder, each, content.path), VOID_POINTER) for each in pointers)
    return value, shadow


def part_of(builder: IRBuilder, value: Value, path: tuple[int, ...]) -> Any:
    """A part of a tuple."""
    return builder.extract_value(value, list(path)) if path else value
