"""Targets of the pointers of a sweep: the array, and the element of it."""

from __future__ import annotations

from dataclasses import replace

from irad.decompile.arrays import Array, ArrayElement, element_at, flat_element, items_in
from irad.decompile.integers import is_index, iteration_number, polynomial_of
from irad.decompile.pair_memory import HEADER_DATA, ArrayPlace, byte_offset
from irad.decompile.polynomial import Polynomial
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.ir import types
from irad.ir.instructions import Freeze, GetElementPtr, Load, Phi, Select
from irad.ir.trip_count import affine_variables
from irad.ir.values import Constant, Value


def place_of(sheet: Sheet, pointer: Value) -> ArrayPlace:
    """Array and element that a pointer points to.

    Raises:
        UnsupportedError: it does not point into an array in a way that Python can say.
    """
    saved = sheet.reads.saved.get(pointer)
    if saved is not None:
        return _saved_place(sheet, pointer, saved)
    known = sheet.memory.starts.get(pointer)
    if known is not None:
        return known
    moved = _moved(sheet, pointer)
    if moved is not None:
        start, offset = moved
        begin = place_of(sheet, start)
        return ArrayPlace(begin.array, begin.offset + offset, begin.is_header)
    match pointer:
        case Load(operands=[address]):
            found = place_of(sheet, address)
            if found.is_header and found.offset.number == HEADER_DATA:
                return ArrayPlace(found.array, Polynomial.constant(0))
        case Freeze(operands=[value]) | Phi(operands=[value]) if pointer not in sheet.reads.affine:
            return place_of(sheet, value)
        case Phi() | Select():
            raise refused("a pointer to one array or another, or one that moves through an array,", pointer)
        case _:
            pass
    raise refused("a pointer that is loaded from memory or computed", pointer)


def _saved_place(sheet: Sheet, pointer: Value, saved: Value) -> ArrayPlace:
    """Target of a pointer that was saved: by loop variables and parameters, or by the index that was saved."""
    assert sheet.augmented is not None
    place = place_of(sheet.augmented, saved)
    if saved not in sheet.augmented.tape or saved is place.array.origin:
        return place
    return ArrayPlace(place.array, Polynomial.of(pointer).scaled(place.array.itemsize))


def _moved(sheet: Sheet, pointer: Value) -> tuple[Value, Polynomial] | None:
    """The pointer that another is computed from, and the bytes between them."""
    if isinstance(pointer, GetElementPtr):
        return pointer.operands[0], byte_offset(pointer, pointer.operands[1:], lambda v: polynomial_of(sheet, v))
    if not sheet.is_reverse and isinstance(pointer, Phi) and pointer in sheet.affine:
        return _affine_start(sheet, pointer), sheet.affine[pointer]
    read = sheet.reads.affine.get(pointer)
    if read is not None:
        step = Polynomial.constant(read.step) if isinstance(read.step, int) else polynomial_of(sheet, read.step)
        return read.start, iteration_number(sheet, read.loop) * step
    return None


def _affine_start(sheet: Sheet, pointer: Phi) -> Value:
    """The pointer that a loop moves, as it is at the start."""
    form = next(f for f in sheet.forms.values() if pointer in affine_variables(f.twin))
    return affine_variables(form.twin)[pointer].start


def origin_of(sheet: Sheet, pointer: Value) -> Value:
    """The pointer that another is computed from: the start of an array, a saved pointer, a choice between pointers."""
    while pointer not in sheet.memory.starts and pointer not in sheet.reads.saved:
        read = sheet.reads.affine.get(pointer)
        match pointer:
            case _ if read is not None:
                pointer = read.start
            case Phi() if not sheet.is_reverse and pointer in sheet.affine:
                pointer = _affine_start(sheet, pointer)
            case GetElementPtr(operands=[base, *_]) | Load(operands=[base]) | Freeze(operands=[base]):
                pointer = base
            case _:
                return pointer
    return pointer


def address_of(sheet: Sheet, pointer: Value) -> Polynomial | None:
    """A pointer as a number: the address of its array plus an offset; None if it is not an item of an array."""
    if pointer in sheet.memory.allocations or isinstance(pointer, Constant):
        return None
    place = place_of(sheet, pointer)
    if place.is_header or place.array.is_result:
        return None
    return Polynomial.of(sheet.memory.address_of(place.array)) + place.offset


def is_unsigned(sheet: Sheet, value: Value) -> bool:
    """True if Python has a value as a number without sign: parameters and elements of such types."""
    if isinstance(value, Load):
        return place_of(sheet, value.operands[0]).array.dtype.startswith("np.uint")
    return sheet.reads.saved.get(value, value) in sheet.unsigned


def is_truth(sheet: Sheet, value: Value) -> bool:
    """True if Python has a value as True or False: parameters and elements of that type."""
    if isinstance(value, Load):
        return place_of(sheet, value.operands[0]).array.dtype == "np.bool_"
    return sheet.reads.saved.get(value, value) in sheet.truths


def flat_index(sheet: Sheet, pointer: Value) -> Polynomial:
    """Target of a pointer in elements of its array, counted in the order of memory."""
    place = place_of(sheet, pointer)
    return items_in(place.offset, place.array.itemsize)


def element_of(sheet: Sheet, pointer: Value, type_: types.Type) -> ArrayElement:
    """The element that an access is to."""
    place = place_of(sheet, pointer)
    if place.is_header:
        raise refused("an access to the header of an array", pointer)
    if place.array.is_result:
        return ArrayElement(place.array, (place.offset,))
    array = place.array
    if array.is_view or array.is_flat:
        return replace(element_at(array, place.offset, types.size_of(type_)), is_flat=array.is_flat)
    found = element_at(array, place.offset, types.size_of(type_))
    is_ambiguous = len(found.indices) > 1 and array.shape and array.layout != "A"
    pairs = zip(found.indices[1:], array.shape[1:], strict=True) if is_ambiguous else ()
    if not all(is_index(sheet, index, length) for index, length in pairs):
        return flat_element(array, place.offset, found.part)
    return found


def slot_name(sheet: Sheet, array: Array, offset: int) -> str:
    """The variable for a number in a stack slot or in the place of the result."""
    known = array.slots.get(offset)
    if known is None and array.slots:
        raise refused("a result of this form", array.origin)
    return known or (array.name if offset == 0 else f"{array.name}_{offset // 8}")
