"""What is known about the order of integers: which branches were taken, which values a loop variable has.

Comparisons that are the same for all arguments are decided, indices are told from what may be negative.
"""

from __future__ import annotations

from collections.abc import Iterator

from irad.decompile.arithmetic.integers import is_nonnegative, may_wrap, plain_bounds, polynomial_of
from irad.decompile.arithmetic.polynomial import Polynomial
from irad.decompile.control.loop_forms import LoopForm
from irad.decompile.sheet import Sheet
from irad.errors import InternalError
from irad.ir import types
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import Binary, CondBr, ICmp, Select
from irad.ir.module import Block
from irad.ir.types import I1, IntType
from irad.ir.values import ConstantInt, Value


def is_run(sheet: Sheet, form: LoopForm) -> bool:
    """Whether the range of a loop is not empty when the loop of the forward sweep is reached."""
    sheet = sheet.augmented or sheet
    start, stop, step = plain_bounds(sheet, form)
    distance = stop - start if step > 0 else start - stop
    lacking = distance - Polynomial.constant(1)
    if is_nonnegative(sheet, lacking):
        return True
    assert form.twin.preheader is not None
    for known, least in facts(sheet, sheet.dominators, form.twin.preheader):
        if is_nonnegative(sheet, lacking - known + Polynomial.constant(least)):
            return True
    return False


def facts(sheet: Sheet, tree: DominatorTree, block: Block) -> Iterator[tuple[Polynomial, int]]:
    """What branches in front of a block say: polynomials, and what they are at least."""
    current: Block | None = block
    while current is not None:
        parent = tree.immediate.get(current)
        if parent is not None and isinstance(parent.terminator, CondBr):
            yes, no = parent.terminator.targets
            if yes is not no and current in (yes, no) and len(sheet.cfg.predecessors[current]) == 1:
                yield from _said(sheet, parent.terminator.operands[0], current is yes)
        current = parent


def _said(sheet: Sheet, condition: Value, truth: bool) -> Iterator[tuple[Polynomial, int]]:
    match condition:
        case Binary(opcode="and" | "or" as opcode, operands=parts) if truth == (opcode == "and"):
            for part in parts:
                yield from _said(sheet, part, truth)
        case Binary(opcode="xor", operands=[inner, ConstantInt()]):
            yield from _said(sheet, inner, not truth)
        case Select(operands=[a, b, ConstantInt(value=0)]) if truth:
            yield from _said(sheet, a, True)
            yield from _said(sheet, b, True)
        case ICmp(operands=[a, b]) if a.type is not I1 and not str(a.type).startswith("ptr"):
            yield from _compared(sheet, condition, truth)
        case _:
            pass


def _compared(sheet: Sheet, test: ICmp, truth: bool) -> Iterator[tuple[Polynomial, int]]:
    a, b = (polynomial_of(sheet, v) for v in test.operands)
    predicate = test.predicate if truth else _NEGATED[test.predicate]
    both = is_nonnegative(sheet, a) and is_nonnegative(sheet, b)
    if predicate[0] == "u" and not both and "samesign" not in test.flags:
        return
    match predicate if predicate in ("eq", "ne") else predicate[1:]:
        case "gt":
            yield a - b, 1
        case "ge":
            yield a - b, 0
        case "lt":
            yield b - a, 1
        case "le":
            yield b - a, 0
        case "eq":
            yield a - b, 0
            yield b - a, 0
        case "ne":
            for difference in (a - b, b - a):
                if is_nonnegative(sheet, difference):
                    yield difference, 1
        case unknown:
            raise InternalError(f"a comparison by {unknown}")


_NEGATED = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip


def least(sheet: Sheet, sum_: Polynomial) -> Polynomial:
    """A polynomial that is at most as large: loop variables take the value at the end where the sum is smallest."""
    for form in reversed(sheet.forms.values()):  # inner loops first: their bounds may be outer variables
        factor = sum_.terms.get((form.variable,))
        if factor is None or form.index is None or not is_run(sheet, form):
            continue
        start, stop, step = plain_bounds(sheet.augmented or sheet, form)
        last = stop - Polynomial.constant(1 if step > 0 else -1)
        low, high = (start, last) if step > 0 else (last, start)
        end = low if factor > 0 else high
        sum_ = sum_ - Polynomial.of(form.variable).scaled(factor) + end.scaled(factor)
    return sum_


def is_index(sheet: Sheet, index: Polynomial, length: Polynomial) -> bool:
    """Whether a part of an offset may be taken for an index: it is not negative."""
    from_end = (length - index).number
    if from_end is not None and from_end > 0:
        return True  # n - 1, written as -1
    return is_known_natural(sheet, index)


def compared(sheet: Sheet, left: Polynomial, word: str, right: Polynomial) -> tuple[Polynomial, str, Polynomial]:
    """A comparison as people write it: without differences, and with the smaller number: n >= 1 is n > 0."""
    if may_wrap(sheet, left) or may_wrap(sheet, right):
        return left, word, right
    difference = left - right
    other = {"gt": ("ge", -1), "ge": ("gt", 1), "lt": ("le", 1), "le": ("lt", -1)}.get(word)
    number = difference.terms.get((), 0)
    if other is not None and abs(number + other[1]) < abs(number):
        word, difference = other[0], difference + Polynomial.constant(other[1])
    more = Polynomial({m: c for m, c in difference.terms.items() if c > 0})
    less = Polynomial({m: -c for m, c in difference.terms.items() if c < 0})
    if not more.values:
        more, less = less, more
        word = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}.get(word, word)
    if word == "le" and not less.terms and is_nonnegative(sheet, more):
        word = "eq"
    return more, word, less


def decided(sheet: Sheet, inst: ICmp) -> bool | None:
    """The truth of a comparison that is the same for all arguments."""
    a, b = inst.operands
    if not isinstance(a.type, IntType) or a.type is types.I1:
        return None
    difference = polynomial_of(sheet, a) - polynomial_of(sheet, b)
    number = difference.number
    if number is not None and inst.predicate[0] != "u":
        return {
            "eq": number == 0, "ne": number != 0, "slt": number < 0,
            "sle": number <= 0, "sgt": number > 0, "sge": number >= 0,
        }[inst.predicate]  # fmt: skip
    for sign, (less, more) in ((1, ("lt", "ge")), (-1, ("gt", "le"))):
        if inst.predicate[1:] in (less, more) and (inst.predicate[0] == "s" or _are_natural(sheet, a, b)):
            if is_known_natural(sheet, difference.scaled(sign)):
                return inst.predicate[1:] == more
            if is_known_natural(sheet, difference.scaled(-sign) - Polynomial.constant(1)):
                return inst.predicate[1:] == less
    return _is_beyond_memory(sheet, inst)


def find_choices(sheet: Sheet) -> None:
    """Notes which of two values a choice always takes."""
    for inst in sheet.function.instructions():
        match inst:
            case Select(operands=[ICmp() as test, yes, no]):
                known = decided(sheet, test)
                if known is not None:
                    sheet.same[inst] = yes if known else no
            case _:
                pass


def _are_natural(sheet: Sheet, *values: Value) -> bool:
    return all(is_nonnegative(sheet, polynomial_of(sheet, value)) for value in values)


def is_known_natural(sheet: Sheet, sum_: Polynomial) -> bool:
    """Whether a sum is not negative, whatever values the loop variables in it have."""
    return is_nonnegative(sheet, sum_) or is_nonnegative(sheet, least(sheet, sum_))


_MOST_ITEMS = 1 << 56  # no address space has as many


def _is_beyond_memory(sheet: Sheet, inst: ICmp) -> bool | None:
    """`x.size > 2**60 - 1` of an array that exists: no; nor, of numbers without sign, `x.size - 2**60 < -2**61`."""
    a, b = inst.operands
    size = polynomial_of(sheet, a)
    number = size.terms.get((), 0)
    factors = [c for m, c in size.terms.items() if m]
    is_size = len(factors) == 1 and 0 < factors[0] < 16 and all(len(m) <= 1 for m in size.terms)
    if (
        not is_size
        or not size.values <= sheet.sizes
        or not isinstance(b, ConstantInt)
        or inst.predicate[0] == "e"
        or inst.predicate == "ne"
    ):
        return None
    low, high, bound = number, number + factors[0] * _MOST_ITEMS, b.value
    if inst.predicate[0] == "u":
        low, high, bound = low % (1 << 64), high % (1 << 64), bound % (1 << 64)
    if low > high or low <= bound <= high:
        return None
    return (inst.predicate[1:] in ("lt", "le")) == (high < bound)
