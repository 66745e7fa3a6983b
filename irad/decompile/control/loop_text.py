"""The ranges of loops, in both directions."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from irad.decompile import trees
from irad.decompile.arithmetic.expressions import sum_text
from irad.decompile.arithmetic.facts import is_run
from irad.decompile.arithmetic.integers import first_index, is_fixed, plain_bounds, polynomial_of
from irad.decompile.arithmetic.polynomial import Polynomial
from irad.decompile.control.loop_forms import LoopForm, exit_of
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.ir.instructions import CondBr, ICmp, Instruction, Phi
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.types import I64
from irad.ir.values import ConstantInt, Value


@dataclass(frozen=True, slots=True)
class Range:
    """The head of a `for`, the block that ends its iterations, and where the loop goes when they are exhausted."""

    variable: str
    iterator: ast.expr
    last: Block
    exit: Block


def range_text(sheet: Sheet, loop: Loop) -> Range | None:
    """The range of a loop of a sweep; None where it is a `while`."""
    return _reverse_range(sheet, loop) if sheet.is_reverse else _forward_range(sheet, loop)


def _forward_range(sheet: Sheet, twin: Loop) -> Range | None:
    form = next((f for f in sheet.forms.values() if f.twin.header is twin.header), None)
    if form is None or form.count is None:
        return None
    latch = form.twin.latch
    assert latch is not None
    return Range(str(form.variable.name), _iterator(sheet, form), latch, exit_of(form))


def _iterator(sheet: Sheet, form: LoopForm) -> ast.expr:
    start, stop, step = bounds(sheet, form)
    if form.index is not None:
        return _range(sheet, start, stop, step)
    if abs(step) == 1:
        return trees.call("range", sum_text(sheet, (stop - start).scaled(step)))
    return trees.call("range", trees.call("len", _range(sheet, start, stop, step)))


def bounds(sheet: Sheet, form: LoopForm) -> tuple[Polynomial, Polynomial, int]:
    """Start, stop and step of the range of a loop of the forward sweep, empty only if the loop is not run."""
    start, stop, step = plain_bounds(sheet, form)
    if not is_run(sheet, form):
        first = start + Polynomial.constant(1 if step > 0 else -1)
        stop = Polynomial.of(_extreme(sheet, stop, first, "max" if step > 0 else "min"))
    return start, stop, step


def _extreme(sheet: Sheet, stop: Polynomial, first: Polynomial, function: str) -> Value:
    """`max(stop, start + 1)`: a range that is run at least once."""
    made = Value(I64)
    sheet.extremes[made] = stop.values | first.values
    sheet.texts[made] = lambda: trees.call(function, sum_text(sheet, stop), sum_text(sheet, first))
    return made


def _range(sheet: Sheet, start: Polynomial, stop: Polynomial, step: int) -> ast.expr:
    arguments = [sum_text(sheet, start), sum_text(sheet, stop)]
    if step != 1:
        arguments.append(trees.number(step))
    elif not start.terms:
        arguments = arguments[1:]
    return trees.call("range", *arguments)


def _reverse_range(sheet: Sheet, loop: Loop) -> Range | None:
    """Of the reversed loop: the same range backwards, from the last iteration that was run."""
    numbers = sheet.reads.numbers.items()
    known = next(((p, n) for p, n in numbers if isinstance(n, Instruction) and n.block is loop.header), None)
    if known is None:
        return None
    primal, number = known
    form = sheet.forms[primal]
    last, exit_ = _last_block(sheet, loop, number)
    if form.is_for and sheet.captured.loops.trips.get(primal) is not None and sheet.augmented is not None:
        start, stop, _ = bounds(sheet.augmented, form)
        if all(is_fixed(sheet.augmented, v) for v in start.values | stop.values):
            return Range(str(form.variable.name), trees.call("reversed", _iterator(sheet.augmented, form)), last, exit_)
    first = _first_number(sheet, loop, number)
    count = polynomial_of(sheet, first) + Polynomial.constant(1)
    iterator: ast.expr = trees.call("range", sum_text(sheet, count))
    if form.index is not None:
        start, step = first_index(sheet, form), form.index.step
        iterator = _range(sheet, start, start + count.scaled(step), step)
    return Range(str(form.variable.name), trees.call("reversed", iterator), last, exit_)


def _last_block(sheet: Sheet, loop: Loop, number: Value) -> tuple[Block, Block]:
    """The block that looks whether iteration 0 is done, and where it goes then."""
    for block in loop.order:
        match block.terminator:
            case CondBr(operands=[ICmp(predicate="eq", operands=[tested, ConstantInt(value=0)])], targets=[out, _]):
                if tested is number and out not in loop.blocks:
                    return block, out
            case _:
                pass
    raise refused("a loop that is reversed in this way", number)


def _first_number(sheet: Sheet, loop: Loop, number: Value) -> Value:
    assert isinstance(number, Phi)
    outside = [v for v, b in number.incoming() if b not in loop.blocks]
    if len({id(v) for v in outside}) != 1:
        raise refused("a loop that is entered at several places", number)
    return outside[0]
