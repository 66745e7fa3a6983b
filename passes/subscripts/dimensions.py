"""Dimensions that the front end has marked: what the subscripts of an element are multiplied by.

Input   a module in normal form.
Output  what each mark says; the module without the calls.
Why     A program may compute i·n + j by itself, with any j. Where the front end lowers `a[i, j]` of a contiguous array,
        j lies between 0 and n, since indices out of bounds are the program's error. It passes n, and the start of the
        array, through a function that LLVM knows nothing of: so the product is still told apart when all is optimised.

    %d = call i64 @irad.dimension(i64 %n, ptr %a)        %d = add i64 %n, 0
    %row = mul i64 %i, %d                                %row = mul i64 %i, %d
"""

from __future__ import annotations

from typing import Final, NamedTuple

from irad.ir.instructions import Binary, Call, replace_uses
from irad.ir.module import Module
from irad.ir.values import ConstantInt, Value, const_int

DIMENSION: Final = "irad.dimension"
"""The symbol of the function."""


class Dimension(NamedTuple):
    """The number of elements along an axis of the array that starts at ``start``; the outermost has none."""

    size: Value
    start: Value


def drop_dimensions(module: Module, most: int) -> None:
    """Puts numbers that are known, and no larger than another, in place of the calls."""
    marker = module.functions.get(DIMENSION)
    for call in list(marker.users) if marker is not None else ():
        assert isinstance(call, Call)
        size = call.arguments[0]
        if isinstance(size, ConstantInt) and size.value <= most:
            replace_uses(call, size)
            call.erase()


def take_dimensions(module: Module) -> dict[Value, Dimension]:
    """Puts the numbers in place of the calls; returns what was marked."""
    found: dict[Value, Dimension] = {}
    marker = module.functions.get(DIMENSION)
    for call in list(marker.users) if marker is not None else ():
        assert isinstance(call, Call)
        assert call.block is not None
        size, start = call.arguments
        plain = Binary(size.type, call.name, operands=[size, const_int(size.type, 0)], block=call.block, opcode="add")
        plain.debug_records, plain.metadata = call.debug_records, call.metadata
        call.block.instructions[call.block.instructions.index(call)] = plain
        replace_uses(call, plain)
        call.block = None
        call.set_operands(())
        found[plain] = Dimension(size, start)
    if marker is not None:
        del module.functions[DIMENSION]
    return found
