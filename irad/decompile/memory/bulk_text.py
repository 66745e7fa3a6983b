"""Calls that move or fill memory, as slices."""

from __future__ import annotations

import ast

from irad.decompile import trees
from irad.decompile.arithmetic.expressions import array_text, natural_text, sum_text
from irad.decompile.arithmetic.integers import polynomial_of
from irad.decompile.memory.arrays import items_in
from irad.decompile.memory.memory import ArrayPlace
from irad.decompile.memory.pointers import place_of
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.ir.instructions import CallSite
from irad.ir.values import ConstantInt, Value


def bulk_statements(sheet: Sheet, call: CallSite) -> list[ast.stmt] | None:
    """The statements of a call; None where it is another call."""
    name = call.callee.name or ""
    arguments = call.arguments
    if name.startswith("llvm.memset"):
        return _fill(sheet, call, arguments)
    if name.startswith(("llvm.memcpy", "llvm.memmove")):
        into, source, size = arguments[:3]
        if place_of(sheet, into).array.is_result or place_of(sheet, source).array.is_result:
            return None
        return [trees.assign(_slice(sheet, into, size), _slice(sheet, source, size))]
    if name.startswith("irad.copy_adjoint"):
        into, source, size = arguments
        taken, grown = _slice(sheet, into, size), _slice(sheet, source, size)
        return [_added(grown, taken), trees.assign(taken, trees.number(0.0))]
    return None


def _fill(sheet: Sheet, call: CallSite, arguments: list[Value]) -> list[ast.stmt] | None:
    pointer, byte, size = arguments[:3]
    place = place_of(sheet, pointer)
    if not isinstance(byte, ConstantInt) or (byte.value and place.array.itemsize != 1):
        raise refused("memory that is filled with bytes other than zero", call)
    if place.array.is_result:
        return [] if place.array.is_shadow else None
    number = trees.number(byte.value if place.array.itemsize == 1 else 0.0)
    return [trees.assign(_slice(sheet, pointer, size), number)]


def _added(into: ast.expr, amount: ast.expr) -> ast.stmt:
    return trees.assign(into, trees.binary(into, ast.Add(), amount))


def _slice(sheet: Sheet, pointer: Value, size: Value) -> ast.expr:
    """The items that so many bytes behind a pointer are."""
    place: ArrayPlace = place_of(sheet, pointer)
    array = place.array
    first, number = (items_in(total, array.itemsize) for total in (place.offset, polynomial_of(sheet, size)))
    base = array_text(sheet, array)
    if len(array.strides) > 1 or array.is_flat:
        base = ast.Call(ast.Attribute(base, "reshape", ast.Load()), [trees.number(-1)], [])
    written = natural_text if array.is_view else sum_text
    lower = written(sheet, first) if first.terms else None
    upper = sum_text(sheet, first + number)
    return ast.Subscript(base, ast.Slice(lower, upper), ast.Load())
