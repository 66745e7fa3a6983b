"""Puts the cotangent of the return value into the shadow of the memory that the function returned it through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from irad.errors import SignatureError
from irad.frontend import abi, layouts
from irad.frontend.abi import Leaf, LeafKind
from irad.frontend.numba_messages import described
from irad.frontend.numba_untyped import types

_DATA_FIELD = 4


@dataclass(frozen=True)
class Misfit:
    """An array of a seed that may have another shape than what it is the cotangent of.

    Attributes:
        is_there: whether it has.
        path: where in the value, "[0]" for instance.
        given, wanted: its shape, and that of the array in the value.
    """

    is_there: Any
    path: str
    given: tuple[Any, ...]
    wanted: tuple[Any, ...]

    @property
    def texts(self) -> tuple[str, str, str]:
        """Problem, remedy and reason."""
        return (
            f"the cotangent{self.path} has another shape than the array that the function returned",
            f"give an array of the shape of the value: np.ones_like(value{self.path})",
            "the cotangent says how much each element of the value weighs",
        )


def check_seed(name: str, return_type: Any, seed_type: Any) -> None:
    """Checks the structure of a seed against that of the return value.

    Raises:
        SignatureError: it is another one.
    """
    _check(name, return_type, seed_type, "")


def _check(name: str, return_type: Any, seed_type: Any, at: str) -> None:
    if isinstance(return_type, types.BaseTuple):
        if seed_type == types.none:
            return
        if not isinstance(seed_type, types.BaseTuple) or len(seed_type.types) != len(return_type.types):
            raise _misfit(name, return_type, seed_type, at, f"a tuple of {len(return_type.types)}")
        for i, (item, seed) in enumerate(zip(return_type.types, seed_type.types, strict=True)):
            _check(name, item, seed, f"{at}[{i}]")
        return
    match abi.kind_of(return_type):
        case LeafKind.NUMBER:
            is_complex = return_type in layouts.COMPLEX
            good = isinstance(seed_type, types.Float | types.Integer) or (is_complex and seed_type in layouts.COMPLEX)
            wanted = f"a {'complex number' if is_complex else 'float'}, or None if it weighs nothing"
        case LeafKind.ARRAY:
            good = isinstance(seed_type, types.Array) and (seed_type.dtype, seed_type.ndim) == (
                return_type.dtype,
                return_type.ndim,
            )
            wanted = "an array of the same dtype and shape (np.ones_like(value)), or None if it weighs nothing"
        case LeafKind.RECORD:
            good, wanted = seed_type == return_type, "a record of the same dtype, or None if it weighs nothing"
        case LeafKind.LIST:
            good, wanted = False, "None: irad takes no cotangent of a list; return an array of its items"
        case LeafKind.OBJECT:
            good, wanted = False, "None: irad takes no cotangent of an object; return the arrays and numbers in it"
        case LeafKind.OPTIONAL:
            good, wanted = False, "None: irad takes no cotangent of a part that may be None"
        case LeafKind.INERT:
            good, wanted = False, "None: the value has no derivative"
    if not good and seed_type != types.none:
        raise _misfit(name, return_type, seed_type, at, wanted)


def _misfit(name: str, return_type: Any, seed_type: Any, at: str, wanted: str) -> SignatureError:
    return SignatureError(
        f"the cotangent of the value{at} of {name} is {described(seed_type)}, the value is {described(return_type)}",
        f"give {wanted}",
        "the cotangent, or seed, says how much each number in the value weighs: it has the structure of the value",
    )


def store_unit(builder: Any, shadow: Any, path: tuple[int, ...]) -> None:
    """Makes 1 the cotangent of the float at a path of the returned value."""
    place = place_of(builder, shadow, path)
    builder.store(ir.Constant(place.type.pointee, 1.0), place)


def store_zero(builder: Any, shadow: Any, path: tuple[int, ...]) -> None:
    """Makes 0 the cotangent of the number at a path of the returned value."""
    place = place_of(builder, shadow, path)
    builder.store(cgutils.get_null_value(place.type.pointee), place)


def seeded_leaves(return_type: Any, seed_type: Any, path: tuple[int, ...] = ()) -> list[tuple[Leaf, Any]]:
    """The leaves of the return value that get a cotangent, each with the type of its seed."""
    if seed_type == types.none:
        return []
    if isinstance(return_type, types.BaseTuple):
        pairs = enumerate(zip(return_type.types, seed_type.types, strict=True))
        return [found for i, (item, seed) in pairs for found in seeded_leaves(item, seed, (*path, i))]
    return [(Leaf(return_type, abi.kind_of(return_type), 0, path), seed_type)]


def misfits(context: Any, builder: Any, value: Any, seed: Any, leaves: Sequence[tuple[Leaf, Any]]) -> list[Misfit]:
    """For each array of the seed whether it has the shape of the array it is the cotangent of."""
    found = []
    for leaf, seed_type in leaves:
        if leaf.is_array:
            returned = context.make_array(leaf.type)(context, builder, part_of(builder, value, leaf.path))
            given = context.make_array(seed_type)(context, builder, part_of(builder, seed, leaf.path))
            shapes = [tuple(cgutils.unpack_tuple(builder, array.shape)) for array in (given, returned)]
            is_there = cgutils.false_bit
            for left, right in zip(*shapes, strict=True):
                is_there = builder.or_(is_there, builder.icmp_signed("!=", left, right))
            found.append(Misfit(is_there, "".join(f"[{i}]" for i in leaf.path), shapes[0], shapes[1]))
    return found


def any_of(builder: Any, misfits: Sequence[Misfit]) -> Any:
    """Whether there is one."""
    found = cgutils.false_bit
    for misfit in misfits:
        found = builder.or_(found, misfit.is_there)
    return found


def add_seed(context: Any, builder: Any, shadow: Any, value: Any, seed: Any, leaf: Leaf, seed_type: Any) -> None:
    """Adds the seed of one leaf.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        shadow: the shadow of the memory the value was returned through.
        value: the whole value, as Numba holds it.
        seed: the whole seed, as Numba holds it.
        leaf: the part of the value.
        seed_type: the Numba type of its seed.
    """
    place = place_of(builder, shadow, leaf.path)
    part = part_of(builder, seed, leaf.path)
    if leaf.kind is LeafKind.NUMBER:
        builder.store(context.cast(builder, part, seed_type, leaf.type), place)
        return
    if leaf.kind is LeafKind.RECORD:
        data = builder.load(place)
        with cgutils.if_likely(builder, cgutils.is_not_null(builder, data)):
            _add_floats(builder, leaf.type, data, part)
        return
    data = builder.load(cgutils.gep_inbounds(builder, place, 0, _DATA_FIELD))
    with cgutils.if_likely(builder, cgutils.is_not_null(builder, data)):
        returned = context.make_array(leaf.type)(context, builder, part_of(builder, value, leaf.path))
        given = context.make_array(seed_type)(context, builder, part)
        _add_elements(context, builder, leaf.type, data, returned, seed_type, given)


def _add_elements(
    context: Any, builder: Any, target_type: Any, data: Any, returned: Any, seed_type: Any, given: Any
) -> None:
    shape = cgutils.unpack_tuple(builder, returned.shape)
    strides = cgutils.unpack_tuple(builder, returned.strides)
    with cgutils.loop_nest(builder, shape, cgutils.intp_t) as indices:
        place = cgutils.get_item_pointer2(context, builder, data, shape, strides, target_type.layout, indices)
        item = cgutils.get_item_pointer(context, builder, seed_type, given, indices)
        _add_floats(builder, target_type.dtype, place, item)


def _add_floats(builder: Any, element: Any, place: Any, item: Any) -> None:
    """Adds each float of the element at ``item`` to that of the element at ``place``."""
    target, source = (builder.bitcast(pointer, cgutils.voidptr_t) for pointer in (place, item))
    for offset, float_type in layouts.floats_of_element(element):
        pointer = float_type.as_pointer()
        to, other = (builder.bitcast(builder.gep(base, [cgutils.intp_t(offset)]), pointer) for base in (target, source))
        total = builder.fadd(builder.load(to, align=1), builder.load(other, align=1))
        builder.store(total, to, align=1)


def place_of(builder: Any, pointer: Any, path: tuple[int, ...]) -> Any:
    """Where a part of a tuple in memory lies."""
    return cgutils.gep_inbounds(builder, pointer, 0, *path) if path else pointer


def part_of(builder: Any, value: Any, path: tuple[int, ...]) -> Any:
    """A part of a tuple."""
    return builder.extract_value(value, list(path)) if path else value
