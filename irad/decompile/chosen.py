"""Pointers that choose between arrays: variables that are one array or another.

    a, b = b, a             two phis of a loop
    w = x if c else y       a select
    source = x[1:]          Numba reads a slice from a copy if it overlaps with what is assigned

Input   a sweep.
Output  `Sheet.chosen`: these pointers; each begins an `Array` of its own, whose `sources` are
        the arrays that it may be.
Method  a pointer that an access needs is followed to where it begins. A phi or select whose operands all point to one
        place is that place; any other is a variable. Its sources, over all operands, tell what kind of array it is.
Limit   a variable that begins within an array is a view, `x[k:]`. Python counts negative k, and negative indices of the
        view, from the end: where their sign is not known, the exact form raises if they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from irad.decompile import trees
from irad.decompile.arrays import Array, items_in
from irad.decompile.expressions import array_text, natural_text, text_of
from irad.decompile.pair_memory import ArrayPlace, is_allocation
from irad.decompile.pointers import address_of, origin_of, place_of
from irad.decompile.polynomial import Polynomial
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.decompile.variables import is_silent
from irad.ir.instructions import Call, CallSite, Cast, ICmp, Instruction, Load, Phi, Select, Store
from irad.ir.types import PointerType
from irad.ir.values import Poison, Undef, Value
from irad.ir.worklist import reachable


def find_chosen(sheet: Sheet) -> None:
    """Notes the pointers that are variables, and the arrays that begin there.

    Raises:
        UnsupportedError: its alternatives have no common form in Python.
    """
    pending = [p for inst in sheet.function.instructions() for p in _accessed(inst)]
    if not sheet.is_reverse:
        pending += [v for v in sheet.captured.plan.saved if isinstance(v.type, PointerType)]

    def choices(pointers: Iterable[Value]) -> list[Instruction]:
        origins = (origin_of(sheet, pointer) for pointer in pointers)
        return [origin for origin in origins if isinstance(origin, Phi | Select)]

    found = set(reachable(choices(pending), lambda choice: choices(ways(sheet, choice))))
    ordered = [i for block in sheet.cfg.order for i in block.instructions if i in found]
    _merge_equal(sheet, ordered)
    chosen = [pointer for pointer in ordered if pointer not in sheet.memory.starts]
    if chosen and sheet.is_reverse:
        raise refused("a choice between arrays that only the reverse sweep makes", chosen[0])
    sheet.chosen = set(chosen)
    _describe(sheet, chosen)
    for inst in sheet.function.instructions():
        if isinstance(inst, Cast) and inst.opcode == "ptrtoint":
            number = address_of(sheet, inst.operands[0])
            if number is None:
                raise refused("the address of something other than an array, as a number,", inst)
            sheet.affine[inst] = number


def _accessed(inst: Instruction) -> Iterator[Value]:
    """The pointers whose place the text of an instruction names."""
    match inst:
        case Load(operands=[pointer]) if not isinstance(inst.type, PointerType):
            yield pointer
        case Store() | ICmp() | Cast():
            yield from (v for v in inst.operands if isinstance(v.type, PointerType))
        case CallSite() if not is_silent(inst) and not (isinstance(inst, Call) and is_allocation(inst)):
            yield from (v for v in inst.arguments if isinstance(v.type, PointerType))
        case _:
            pass


def ways(sheet: Sheet, pointer: Instruction) -> list[Value]:
    """Values that a phi or select may be, without undefined ones."""
    known = sheet.same.get(pointer)
    if known is not None:
        return [known]
    values = pointer.operands[isinstance(pointer, Select) :]
    return [v for v in values if v is not pointer and not isinstance(v, Undef | Poison)]


def _merge_equal(sheet: Sheet, candidates: list[Instruction]) -> None:
    """Replaces the candidates whose operands all point to one place by that place: they are not variables."""
    starts = sheet.memory.starts
    changed = True
    while changed:
        changed = False
        for pointer in (p for p in candidates if p not in starts):
            leads = ways(sheet, pointer)
            if not leads or any(isinstance(origin_of(sheet, v), Phi | Select) for v in leads):
                continue
            first, *others = [place_of(sheet, v) for v in leads]
            if first.offset.number is not None and all(_is_same(first, other) for other in others):
                starts[pointer] = first
                changed = True


def _is_same(a: ArrayPlace, b: ArrayPlace) -> bool:
    return a.array is b.array and a.offset.equals(b.offset) and a.is_header == b.is_header


def _describe(sheet: Sheet, chosen: list[Instruction]) -> None:
    """Creates an array for each pointer, then fills them in: they may be each other's sources."""
    starts = sheet.memory.starts
    for pointer in chosen:
        starts[pointer] = ArrayPlace(Array("array", pointer), Polynomial.constant(0))
    leads = {pointer: [place_of(sheet, way) for way in ways(sheet, pointer)] for pointer in chosen}
    sources = {pointer: {p.array: None for p in places} for pointer, places in leads.items()}
    views = {p for p, places in leads.items() if any(place.offset.terms for place in places)}
    changed = True
    while changed:
        changed = False
        for pointer in chosen:
            origins = [array.origin for array in sources[pointer]]
            inner = [origin for origin in origins if isinstance(origin, Instruction) and origin in sources]
            reached = dict.fromkeys(a for origin in inner for a in sources[origin]) | sources[pointer]
            is_view = pointer in views or not views.isdisjoint(inner)
            if len(reached) > len(sources[pointer]) or is_view != (pointer in views):
                sources[pointer] = reached
                views |= {pointer} if is_view else set()
                changed = True
    for pointer in chosen:
        roots = [a for a in sources[pointer] if a.origin not in sources]
        headers = {place.is_header for place in leads[pointer] if place.array in roots}
        if headers == {True}:
            starts[pointer] = ArrayPlace(starts[pointer].array, Polynomial.constant(0), is_header=True)
        elif len(headers) > 1:
            raise refused("a variable that is an array or its header", pointer)
        _fill(sheet, pointer, starts[pointer].array, roots, is_view=pointer in views)


def _fill(sheet: Sheet, pointer: Instruction, array: Array, roots: list[Array], *, is_view: bool) -> None:
    """Says of an array what its sources have in common."""
    if not roots or any(root.is_result for root in roots):
        raise refused("a variable that is an array or a number in memory", pointer)
    first = roots[0]
    names = " or ".join(dict.fromkeys(root.name for root in roots))
    if any(_kind(root) != _kind(first) for root in roots):
        raise refused(f"a variable that is one of arrays with different items ({names})", pointer)
    array.itemsize, array.dtype, array.is_complex, array.is_shadow = _kind(first)
    array.sources = frozenset(roots)
    array.is_view = is_view
    if not is_view and all(_has_form_of(root, first) for root in roots):
        array.strides, array.shape, array.layout = first.strides, first.shape, first.layout
        return
    item = Polynomial.constant(array.itemsize)
    if not all(root.layout == "C" or (len(root.strides) == 1 and root.strides[0].equals(item)) for root in roots):
        raise refused(
            f"a variable that is one array or another ({names}), one of which has gaps or is in Fortran's order,",
            pointer,
        )
    array.strides = (item,)
    array.is_flat = any(len(root.strides) > 1 for root in roots)


def _kind(array: Array) -> tuple[int, str, bool, bool]:
    return array.itemsize, array.dtype, array.is_complex, array.is_shadow


def _has_form_of(array: Array, other: Array) -> bool:
    """True if an index stands for the same number of bytes in both arrays."""
    return (
        array.layout == other.layout
        and len(array.strides) == len(other.strides)
        and all(a.equals(b) for a, b in zip(array.strides, other.strides, strict=True))
        and len(array.shape) == len(other.shape)
        and all(a.equals(b) for a, b in zip(array.shape, other.shape, strict=True))
    )


def array_of(sheet: Sheet, pointer: Value) -> ast.expr:
    """The array that a pointer begins, or the view."""
    if isinstance(pointer, Undef | Poison):
        return ast.Constant(None)
    place = place_of(sheet, pointer)
    text = array_text(sheet, place.array)
    if not place.offset.terms:
        return text
    if len(place.array.strides) > 1 or place.array.is_flat:
        text = ast.Call(ast.Attribute(text, "reshape", ast.Load()), [trees.number(-1)], [])
    return ast.Subscript(text, ast.Slice(natural_text(sheet, items_in(place.offset, place.array.itemsize))), ast.Load())


def choice_text(sheet: Sheet, pointer: Select) -> ast.expr:
    """`x if c else y`."""
    test, yes, no = pointer.operands
    return ast.IfExp(text_of(sheet, test), array_of(sheet, yes), array_of(sheet, no))
