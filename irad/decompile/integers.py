"""Integers of a sweep as polynomials in values that have a text of their own.

An index that LLVM took apart is put together again; what is known of its sign tells ranges and indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irad.decompile.loops import LoopForm, LoopVariable
from irad.decompile.pair_memory import Address, callee_name
from irad.decompile.polynomial import Polynomial
from irad.decompile.sheet import Sheet
from irad.errors import InternalError
from irad.ir import types
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import (
    Binary,
    Call,
    Cast,
    CondBr,
    ExtractValue,
    FCmp,
    Freeze,
    ICmp,
    Instruction,
    Phi,
    Select,
    Unary,
)
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.trip_count import affine_variables
from irad.ir.types import I1, IntType, PointerType
from irad.ir.values import ConstantInt, Value


@dataclass(eq=False, slots=True)
class LoopCount(Value):
    """The number of the iteration of a loop whose index moves by other steps than one."""

    form: LoopForm | None = None


def find_affine(sheet: Sheet) -> None:
    """Records the integers that a loop moves by a constant step."""
    if sheet.is_reverse:
        for loop, number in sheet.reads.numbers.items():
            sheet.affine[number] = iteration_number(sheet, loop)
        return
    for form in sheet.forms.values():
        if form.is_for:
            _add_affine(sheet, form)


def _add_affine(sheet: Sheet, form: LoopForm) -> None:
    assert form.count is not None
    number = iteration_number(sheet, form.loop)
    for phi, variable in affine_variables(form.twin).items():
        if form.index is not None and phi is form.index.phi:
            sheet.affine[phi] = Polynomial.of(form.variable)
        elif isinstance(phi.type, PointerType):
            sheet.affine[phi] = number * _step(sheet, variable.step)
        elif form.index is None or abs(form.index.step) == 1:
            sheet.affine[phi] = polynomial_of(sheet, variable.start) + number * _step(sheet, variable.step)


def iteration_number(sheet: Sheet, loop: Loop) -> Polynomial:
    """The number of an iteration in terms of the loop's variable."""
    form = sheet.forms[loop]
    variable = Polynomial.of(form.variable)
    if form.index is None:
        return variable
    if abs(form.index.step) != 1:
        return Polynomial.of(LoopCount(types.I64, None, form))
    return (variable - first_index(sheet, form)).scaled(form.index.step)


def first_index(sheet: Sheet, form: LoopForm) -> Polynomial:
    """First index of a loop, in the words of the forward sweep."""
    assert form.index is not None
    return polynomial_of(sheet.augmented or sheet, form.index.start)


def polynomial_of(sheet: Sheet, value: Value) -> Polynomial:
    """An integer as a polynomial in values that have a text of their own."""
    value = sheet.same.get(value, value)
    if value in sheet.affine and not isinstance(value.type, PointerType):
        return sheet.affine[value]
    if value in sheet.texts:
        return Polynomial.of(value)
    match value:
        case ConstantInt(value=number):
            return Polynomial.constant(number)
        case Binary() if is_sum(value):
            return sum_of(sheet, value)
        case Cast(opcode="sext", operands=[source]) if source.type is not types.I1:
            return polynomial_of(sheet, source)
        case Cast(opcode="zext", operands=[source]) if source.type is not types.I1 and (
            "nneg" in value.flags or is_nonnegative(sheet, polynomial_of(sheet, source))
        ):
            return polynomial_of(sheet, source)
        case Call() if callee_name(value).startswith(("llvm.smax", "llvm.smin")):
            return _extreme(sheet, value)
        case ExtractValue(indices=(0,), operands=[Call() as call]) if is_checked_arithmetic(call):
            return _checked(sheet, call)
        case Freeze(operands=[source]) if value not in sheet.reads.saved and value not in sheet.reads.affine:
            return polynomial_of(sheet, source)
        case Freeze() if value in sheet.reads.affine:
            return _affine_read(sheet, value)
        case Freeze():
            saved = sheet.reads.saved.get(value)
            if saved is None or not _is_one_number(sheet, saved):
                return Polynomial.of(value)
            saved = sheet.same.get(saved, saved)
            if sheet.augmented is not None and isinstance(saved, Instruction):
                return polynomial_of(sheet.augmented, saved)
            return sheet.affine.get(saved, Polynomial.of(saved))
        case _:
            return Polynomial.of(value)


def _is_one_number(sheet: Sheet, saved: Value) -> bool:
    """True if a saved value is one number in all of the reverse sweep."""
    if not isinstance(saved, Instruction) or saved.block is None:
        return True
    return saved.block not in sheet.captured.loops.innermost


def is_fixed(sheet: Sheet, value: Value) -> bool:
    """True if a value of the forward sweep can be named in the reverse sweep: it is never assigned again."""
    if isinstance(value, Instruction):
        return value in sheet.stable
    extreme = sheet.extremes.get(value)
    return extreme is None or all(is_fixed(sheet, each) for each in extreme)


def is_sum(inst: Binary) -> bool:
    """True if an operation of integers is one of polynomials; narrow ones wrap around unless LLVM says otherwise."""
    if not isinstance(inst.type, IntType) or inst.type is types.I1:
        return False
    is_exact = inst.type.bits >= 64 or "nsw" in inst.flags
    match inst.opcode:
        case "add" | "sub" | "mul":
            return is_exact
        case "or":
            return "disjoint" in inst.flags
        case "shl":
            return is_exact and isinstance(inst.operands[1], ConstantInt)
        case "xor":
            return isinstance(inst.operands[1], ConstantInt) and inst.operands[1].value == -1
        case _:
            return False


def sum_of(sheet: Sheet, value: Binary) -> Polynomial:
    """The polynomial that a sum is, in those of its operands."""
    a, b = (polynomial_of(sheet, v) for v in value.operands)
    match value.opcode:
        case "add" | "or":
            return a + b
        case "xor":
            return a.scaled(-1) - Polynomial.constant(1)
        case "sub":
            return a - b
        case "mul":
            return a * b
        case _:
            assert isinstance(value.operands[1], ConstantInt)
            return a.scaled(1 << value.operands[1].value)


def _extreme(sheet: Sheet, call: Call) -> Polynomial:
    """The larger or smaller of two, if it is known which one that is."""
    a, b = (polynomial_of(sheet, v) for v in call.arguments)
    larger, smaller = (a, b) if is_nonnegative(sheet, a - b) else (b, a)
    if not is_nonnegative(sheet, larger - smaller):
        return Polynomial.of(call)
    return larger if callee_name(call).startswith("llvm.smax") else smaller


def may_wrap(sheet: Sheet, total: Polynomial) -> bool:
    """True if a sum may leave 64 bits when the program runs.

    Those of sizes and loop variables and one other number do not; products of numbers that the program computes may.
    """
    loose = [(m, c) for m, c in total.terms.items() if not all(_is_bounded(sheet, v) for v in m)]
    if len(loose) > 1 or any(abs(c) >= 1 << 32 for m, c in total.terms.items() if m):
        return True
    return any(abs(c) != 1 or len(m) > 1 for m, c in loose) or abs(total.terms.get((), 0)) >= 1 << 62


def _is_bounded(sheet: Sheet, value: Value) -> bool:
    return isinstance(value, LoopVariable | LoopCount | Address) or value in sheet.sizes


def _checked(sheet: Sheet, call: Call) -> Polynomial:
    """Arithmetic that tells whether it overflows; that of Python does not."""
    a, b = (polynomial_of(sheet, v) for v in call.arguments)
    operation = callee_name(call)[6:9]
    return a * b if operation == "mul" else a + b if operation == "add" else a - b


def _affine_read(sheet: Sheet, placeholder: Value) -> Polynomial:
    read = sheet.reads.affine[placeholder]
    form = sheet.forms[read.loop]
    if form.index is not None and form.index.phi is read.value:
        return Polynomial.of(form.variable)
    return polynomial_of(sheet, read.start) + iteration_number(sheet, read.loop) * _step(sheet, read.step)


def _step(sheet: Sheet, step: Value | int) -> Polynomial:
    return Polynomial.constant(step) if isinstance(step, int) else polynomial_of(sheet, step)


def is_nonnegative(sheet: Sheet, sum_: Polynomial) -> bool:
    """True if a polynomial is certainly not negative."""
    return all(c >= 0 and all(_is_natural(sheet, v) for v in m) for m, c in sum_.terms.items())


def is_natural(sheet: Sheet, sum_: Polynomial) -> bool:
    """True if a sum is not negative in 64 bits either."""
    return is_nonnegative(sheet, sum_) and not may_wrap(sheet, sum_)


def _is_natural(sheet: Sheet, value: Value) -> bool:
    if value in sheet.nonnegative:
        return True
    match value:
        case LoopVariable():
            form = next(f for f in sheet.forms.values() if f.variable is value)
            if form.index is None:
                return True
            return form.index.step > 0 and is_nonnegative(sheet, first_index(sheet, form))
        case Call() if callee_name(value).startswith("llvm.smax"):
            return any(is_nonnegative(sheet, polynomial_of(sheet, a)) for a in value.arguments)
        case Cast(opcode="zext") | Address():
            return True
        case Select() if counted_from_end(sheet, value) is not None:
            return True
        case Phi() | Select():
            before = set(sheet.nonnegative)
            sheet.nonnegative.add(value)  # it is, if the others are when it is
            ways = value.operands[isinstance(value, Select) :]
            if all(is_natural(sheet, polynomial_of(sheet, way)) for way in ways):
                return True
            sheet.nonnegative &= before
            return False
        case _:
            return False


def plain_bounds(sheet: Sheet, form: LoopForm) -> tuple[Polynomial, Polynomial, int]:
    """Start, stop and step of the range of a loop: of its index, or of the value that its end compares."""
    count = form.count
    assert count is not None
    step = count.step
    start, stop = polynomial_of(sheet, count.start), polynomial_of(sheet, count.bound)
    if count.predicate.endswith("e") and count.predicate != "ne":
        stop = stop + Polynomial.constant(1 if step > 0 else -1)
    if not count.compares_next:
        stop = stop + Polynomial.constant(step)
    if form.index is None or form.index.phi is count.variable:
        return start, stop, step
    first = polynomial_of(sheet, form.index.start)  # both move by one
    return first, first + (stop - start).scaled(step * form.index.step), form.index.step


def is_checked_arithmetic(call: Call) -> bool:
    """True if a call is integer arithmetic that also returns whether it overflows."""
    name = callee_name(call)
    return name.startswith(("llvm.smul.with", "llvm.sadd.with", "llvm.ssub.with"))


def counted_from_end(sheet: Sheet, value: Value) -> tuple[Polynomial, Polynomial] | None:
    """An index that the length is added to if it is negative: the index and the length."""
    match value:
        case Select(operands=[ICmp(predicate="slt", operands=[tested, ConstantInt(value=0)]), wrapped, plain]):
            index = polynomial_of(sheet, plain)
            length = polynomial_of(sheet, wrapped) - index
            if polynomial_of(sheet, tested).equals(index) and length.terms and is_nonnegative(sheet, length):
                return index, length
        case _:
            pass
    return None


def is_derivable(augmented: Sheet, value: Value) -> bool:
    """True if a value of the forward sweep is computed from what the reverse sweep can name."""
    value = augmented.same.get(value, value)
    if value in augmented.affine or not isinstance(value, Instruction):
        return True
    if value in augmented.texts:
        return value in augmented.stable or value in augmented.derivable
    match value:
        case Binary() | ICmp() | Select() | Cast() | Freeze() | Unary() | FCmp():
            return all(is_derivable(augmented, operand) for operand in value.operands)
        case _:
            return False


def length_if_negative(sheet: Sheet, value: Value) -> tuple[Polynomial, Polynomial] | None:
    """The index and the length, for a value that is the length if the index is negative and otherwise 0."""
    match value:
        case Select(
            operands=[ICmp(predicate="slt", operands=[tested, ConstantInt(value=0)]), length, ConstantInt(value=0)]
        ):
            return polynomial_of(sheet, tested), polynomial_of(sheet, length)
        case _:
            return None


# What is known about the order of integers: which branches were taken, which values a loop variable has.
#
# Decides comparisons that come out the same for all arguments, and tells indices from numbers that may be negative.


def is_run(sheet: Sheet, form: LoopForm) -> bool:
    """True if the range of a loop is not empty when the loop of the forward sweep is reached."""
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
    """Facts from branches before a block: polynomials and their lower bounds."""
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
    """True if a part of an offset may be taken for an index: it is not negative."""
    from_end = (length - index).number
    if from_end is not None and from_end > 0:
        return True  # n - 1, written as -1
    return is_known_natural(sheet, index)


def compared(sheet: Sheet, left: Polynomial, word: str, right: Polynomial) -> tuple[Polynomial, str, Polynomial]:
    """A comparison as people write it: without differences, and with the smaller number: n >= 1 is n > 0."""
    # Where a sum may wrap around, the comparison is another one when a term changes sides.
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
    """True if a sum is not negative, whatever values the loop variables in it have."""
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
