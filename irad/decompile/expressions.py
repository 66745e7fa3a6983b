"""Values of a sweep as Python expressions."""

from __future__ import annotations

import ast
from typing import Final

import numpy as np

from irad.decompile import trees
from irad.decompile.arrays import Array, ArrayElement, Items
from irad.decompile.integers import (
    LoopCount,
    compared,
    counted_from_end,
    decided,
    first_index,
    is_checked_arithmetic,
    is_derivable,
    is_known_natural,
    is_natural,
    is_nonnegative,
    is_sum,
    length_if_negative,
    may_wrap,
    polynomial_of,
    sum_of,
)
from irad.decompile.loops import LoopVariable
from irad.decompile.pair_memory import STRONG, Address, callee_name, is_allocation
from irad.decompile.pointers import address_of, element_of, is_truth, is_unsigned, slot_name
from irad.decompile.polynomial import Polynomial
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.ir import types
from irad.ir.instructions import (
    Binary,
    Call,
    Cast,
    ExtractValue,
    FCmp,
    Freeze,
    ICmp,
    Instruction,
    Load,
    Select,
    Unary,
)
from irad.ir.types import FloatType, IntType, PointerType
from irad.ir.values import ConstantExpression, ConstantFloat, ConstantInt, ConstantNull, Poison, Undef, Value
from irad.passes.callees import resolve
from irad.ruleset.interface import Elementwise
from irad.ruleset.shortcut_slopes import VALUES

# Operations, on operands that are already written.


def wrapped(text: ast.expr, value: Value) -> ast.expr:
    """The number with sign that the lowest bits are, as many as the type of a value has."""
    return trees.call("wrapped", text, *width(value))


def width(value: Value) -> list[ast.expr]:
    """The number of bits as an argument, where they are not 64."""
    assert isinstance(value.type, IntType)
    return [] if value.type.bits == 64 else [trees.number(value.type.bits)]


def logic(sheet: Sheet, inst: Binary, left: ast.expr, right: ast.expr) -> ast.expr:
    """An operation of truth values."""
    match inst.opcode:
        case "and" | "or":
            return trees.both_or_either(inst.opcode, left, right)
        case "xor" if isinstance(right, ast.Constant):
            return trees.negated(left) if right.value else left
        case "xor":
            return trees.compare(left, ast.NotEq(), right)
        case _:
            raise refused(f"the operation {inst.opcode} of truth values", inst)


def float_comparison(predicate: str, a: ast.expr, b: ast.expr) -> ast.expr:
    """A comparison of floats; those that are true for NaN are negated opposites."""
    if predicate in ("true", "false"):
        return ast.Constant(predicate == "true")
    if predicate in ("ord", "uno"):
        tests = [trees.call("np.isnan", x) for x in (a, b) if not isinstance(x, ast.Constant)]
        if len(tests) == 2 and trees.shown(a) == trees.shown(b):
            tests = tests[:1]
        test = tests[0] if len(tests) == 1 else trees.disjunction(*tests)
        return test if predicate == "uno" else ast.UnaryOp(ast.Not(), test)
    if predicate in ("oeq", "une"):
        return trees.compare(a, ast.Eq() if predicate == "oeq" else ast.NotEq(), b)
    if predicate in ("one", "ueq"):
        differ = trees.disjunction(trees.compare(a, ast.Lt(), b), trees.compare(a, ast.Gt(), b))
        return differ if predicate == "one" else ast.UnaryOp(ast.Not(), differ)
    if predicate[0] == "o":
        return trees.compare(a, COMPARISONS[predicate[1:]](), b)
    return ast.UnaryOp(ast.Not(), trees.compare(a, COMPARISONS[_OPPOSITE[predicate[1:]]](), b))


def pointer_comparison(sheet: Sheet, inst: ICmp) -> ast.expr:
    """Comparison that tells if new memory was given; other addresses are not compared."""
    a, b = inst.operands
    is_new = isinstance(a, Call) and is_allocation(a)
    if is_new and isinstance(b, ConstantNull) and inst.predicate in ("eq", "ne"):
        return ast.Constant(inst.predicate == "ne")  # `np.empty` raises MemoryError by itself
    if isinstance(b, ConstantExpression) and b.opcode == "inttoptr" and inst.predicate[0] == "u":
        (number,) = b.operands
        if isinstance(number, ConstantInt) and number.value < 0:  # no program's memory is at the end of all addresses
            return ast.Constant(inst.predicate[1:] in ("lt", "le"))
    raise refused("a comparison of addresses", inst)


def float_value(constant: ConstantFloat) -> float:
    """The shortest number that is the constant in its precision."""
    return float(str(np.float32(constant.value))) if constant.type is types.FLOAT else constant.value


def python_function(canonical: str) -> str | None:
    """The Python name of a rule's function; None where there is none."""
    return f"np.{canonical}" if canonical in _SAME_NAME else _OTHER_NAME.get(canonical)


def is_positive(value: Value, least: int = 1) -> bool:
    """True if a value is a number from ``least`` on."""
    return isinstance(value, ConstantInt) and value.value >= least


_SAME_NAME: Final = frozenset([
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "floor", "ceil", "trunc", "rint", "hypot", "fmod", "copysign", "nextafter", "ldexp",
])  # fmt: skip
_OTHER_NAME: Final = {
    "fabs": "abs", "asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan", "asinh": "np.arcsinh",
    "acosh": "np.arccosh", "atanh": "np.arctanh", "atan2": "np.arctan2", "roundeven": "np.rint",
    "nearbyint": "np.rint", "fmin": "np.fmin", "fmax": "np.fmax", "minnum": "np.fmin", "maxnum": "np.fmax",
    "minimum": "np.minimum", "maximum": "np.maximum", "pow": "np.power", "powi": "np.power",
    "gamma": "special.gamma", "tgamma": "special.gamma", "lgamma": "special.gammaln", "erf": "special.erf",
    "erfc": "special.erfc", "digamma": "special.digamma",
}  # fmt: skip
"""Elementwise functions: the canonical names of rules, as numpy, `special` and Python have them."""
OPERATORS: dict[str, type[ast.operator]] = {"fadd": ast.Add, "fsub": ast.Sub, "fmul": ast.Mult, "fdiv": ast.Div}
INTEGER_OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "shl": ast.LShift,
}  # fmt: skip
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
INTEGER_FUNCTIONS = {
    "llvm.smax": "max", "llvm.smin": "min", "llvm.umax": "max", "llvm.umin": "min", "llvm.abs": "abs",
}  # fmt: skip


# Values of a sweep as Python expressions.
#
# A value is a variable, or it is written in the place where it is used (`variables`). Integers are written from their
# polynomials.


def sum_text(sheet: Sheet, total: Polynomial) -> ast.expr:
    """A polynomial as Python: positive terms first, numbers last."""
    terms = sorted(total.terms.items(), key=lambda term: (term[1] < 0, not term[0]))
    made: ast.expr | None = None
    for monomial, factor in terms:
        term = _term(sheet, monomial, abs(factor))
        if made is None:
            made = term if factor > 0 else trees.number(factor) if not monomial else ast.UnaryOp(ast.USub(), term)
        else:
            made = trees.binary(made, ast.Add() if factor > 0 else ast.Sub(), term)
    return made if made is not None else trees.number(0)


def _term(sheet: Sheet, monomial: tuple[Value, ...], factor: int) -> ast.expr:
    made: ast.expr | None = None if factor == 1 and monomial else trees.number(factor)
    for value in monomial:
        text = leaf_text(sheet, value)
        made = text if made is None else trees.binary(made, ast.Mult(), text)
    assert made is not None
    return made


def text_of(sheet: Sheet, value: Value) -> ast.expr:
    """A value as Python."""
    value = sheet.same.get(value, value)
    if isinstance(value.type, IntType) and value.type.bits > 1:
        return total_text(sheet, polynomial_of(sheet, value))
    return leaf_text(sheet, value)


def total_text(sheet: Sheet, total: Polynomial) -> ast.expr:
    """A polynomial as Python; if it may exceed 64 bits, the exact form wraps it around."""
    text = sum_text(sheet, total)
    # Integers of Python do not wrap, so the exact form says it where a sum may leave 64 bits.
    return trees.call(trees.AS_INT64, text) if may_wrap(sheet, total) else text


def unsigned_text(sheet: Sheet, value: Value) -> ast.expr:
    """The number that the bits of an integer are without sign."""
    known = sheet.unsigned.get(sheet.reads.saved.get(value, value))
    if known is not None:
        return known()
    if isinstance(value, Load) and value not in sheet.texts and is_unsigned(sheet, value):
        return trees.call("int", _loaded(sheet, value))
    text = text_of(sheet, value)
    if is_nonnegative(sheet, polynomial_of(sheet, value)):
        return text
    return trees.call("unsigned", text, *width(value))


def leaf_text(sheet: Sheet, value: Value) -> ast.expr:
    """A value that is not a sum."""
    known = sheet.texts.get(value)
    if known is not None:
        if sheet.used is not None:
            sheet.used(value)
        return known()
    if sheet.augmented is not None and value in sheet.augmented.texts:
        if isinstance(value, Instruction) and value in sheet.augmented.derivable:
            return operation(sheet.augmented, value)
        if isinstance(value, Instruction) and value not in sheet.augmented.stable:
            raise refused("a value that the reverse sweep cannot name", value)
        return sheet.augmented.texts[value]()
    match value:
        case LoopVariable(name=name):
            return trees.name(str(name))
        case LoopCount(form=form):
            assert form is not None
            assert form.index is not None
            distance = Polynomial.of(form.variable) - first_index(sheet, form)
            return trees.binary(sum_text(sheet, distance), ast.FloorDiv(), trees.number(form.index.step))
        case Items(count=count, size=size):
            return trees.call(trees.WHOLE, sum_text(sheet, count), trees.number(size))
        case Address(array=array):
            assert array is not None
            return trees.call("address", array_text(sheet, array))
        case ConstantInt(value=number) if value.type is types.I1:
            return ast.Constant(bool(number))
        case ConstantInt(value=number):
            return trees.number(number)
        case ConstantFloat() if sheet.is_reverse and value.value == 0.0:
            return trees.number(0.0)  # an empty cotangent is -0.0
        case ConstantFloat():
            return trees.number(float_value(value))
        case Undef() | Poison() if isinstance(value.type, FloatType):
            return trees.number(0.0)
        case Undef() | Poison():
            return trees.number(0)
        case Freeze() if value in sheet.reads.saved:
            return saved_text(sheet, value)
        case Freeze(operands=[source]):
            return text_of(sheet, source)
        case Instruction(block=block) if sheet.augmented is not None and block in sheet.augmented.cfg.position:
            if not is_derivable(sheet.augmented, value):
                raise refused("a value that the reverse sweep cannot name", value)
            return operation(sheet.augmented, value)
        case Instruction():
            return operation(sheet, value)
        case _:
            raise refused(f"the value {value.name or type(value).__name__}", value)


def saved_text(sheet: Sheet, placeholder: Value) -> ast.expr:
    """Expression for a value that the forward sweep saved."""
    saved = sheet.reads.saved[placeholder]
    saved = sheet.same.get(saved, saved)
    assert sheet.augmented is not None
    known = sheet.augmented.tape.get(saved)
    return known() if known is not None else text_of(sheet.augmented, saved)


def operation(sheet: Sheet, inst: Instruction) -> ast.expr:
    """An instruction as an expression of its operands."""
    match inst:
        case Binary():
            return _binary(sheet, inst)
        case Unary(operands=[a]):
            return ast.UnaryOp(ast.USub(), text_of(sheet, a))
        case ICmp():
            return _integer_comparison(sheet, inst)
        case FCmp():
            return float_comparison(inst.predicate, *[text_of(sheet, v) for v in inst.operands])
        case Select(operands=[test, a, b]):
            return _select(sheet, test, a, b)
        case Cast():
            return _cast(sheet, inst)
        case Load():
            return _load(sheet, inst)
        case Call():
            return _call(sheet, inst)
        case Freeze(operands=[a]):
            return text_of(sheet, a)
        case ExtractValue(indices=(1,), operands=[Call() as call]) if is_checked_arithmetic(call):
            return ast.Constant(False)
        case _:
            raise refused(f"the operation {type(inst).__name__}", inst)


def _loaded(sheet: Sheet, load: Load) -> ast.expr:
    return element_text(sheet, element_of(sheet, load.operands[0], load.type))


def _load(sheet: Sheet, load: Load) -> ast.expr:
    text = _loaded(sheet, load)
    if not isinstance(load.type, IntType) or load.type is types.I1:
        return text
    if is_unsigned(sheet, load):
        return wrapped(text, load)
    return (
        text if load.type.bits == 64 or is_truth(sheet, load) else trees.call("int", text)
    )  # those of numpy would stay narrow


def _binary(sheet: Sheet, inst: Binary) -> ast.expr:
    left, right = (_operand(sheet, inst, v) for v in inst.operands)
    if STRONG in inst.flags:
        return trees.strong_product(inst.opcode == "fmul", left, right)
    operator = OPERATORS.get(inst.opcode)
    if inst.opcode == "fadd" and isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
        return trees.binary(left, ast.Sub(), right.operand)
    if operator is not None:
        return trees.binary(left, operator(), right)
    if inst.type is types.I1:
        return logic(sheet, inst, left, right)
    if is_sum(inst):
        return total_text(sheet, sum_of(sheet, inst))
    match inst.opcode:
        case "frem":
            return trees.call("np.fmod", left, right)
        case "sdiv" | "udiv" | "srem" | "urem":
            natural = all(is_natural(sheet, polynomial_of(sheet, v)) for v in inst.operands)
            if natural:
                return trees.binary(left, ast.FloorDiv() if "div" in inst.opcode else ast.Mod(), right)
            if inst.opcode[0] == "s":
                return trees.call("truncated_quotient" if "div" in inst.opcode else "truncated_rest", left, right)
            a, b = (unsigned_text(sheet, v) for v in inst.operands)
            made = trees.binary(a, ast.FloorDiv() if "div" in inst.opcode else ast.Mod(), b)
            return made if is_positive(inst.operands[1], 2) else wrapped(made, inst)
        case "and" | "or" | "xor":
            bits = {"and": ast.BitAnd, "or": ast.BitOr, "xor": ast.BitXor}[inst.opcode]
            return trees.binary(left, bits(), right)
        case "ashr" | "lshr" if inst.opcode == "ashr" or is_nonnegative(sheet, polynomial_of(sheet, inst.operands[0])):
            return trees.binary(left, ast.RShift(), right)
        case "lshr":
            shifted = trees.binary(unsigned_text(sheet, inst.operands[0]), ast.RShift(), right)
            return shifted if is_positive(inst.operands[1]) else wrapped(shifted, inst)
        case "add" | "sub" | "mul" | "shl":
            return wrapped(trees.binary(left, INTEGER_OPERATORS[inst.opcode](), right), inst)
        case _:
            pass
    raise refused(f"the operation {inst.opcode}", inst)


def _operand(sheet: Sheet, inst: Binary, value: Value) -> ast.expr:
    """An operand; Python converts integers to floats if the other operand is a float."""
    if (
        isinstance(value, Cast)
        and value.opcode in ("sitofp", "uitofp")
        and inst.type is types.DOUBLE
        and value not in sheet.texts
        and not all(isinstance(v, Cast) for v in inst.operands)
    ):
        return (text_of if value.opcode == "sitofp" else unsigned_text)(sheet, value.operands[0])
    return text_of(sheet, value)


def _integer_comparison(sheet: Sheet, inst: ICmp) -> ast.expr:
    a, b = inst.operands
    is_equality = inst.predicate in ("eq", "ne")
    word = inst.predicate if is_equality else inst.predicate[1:]
    if isinstance(a.type, PointerType):
        left, right = address_of(sheet, a), address_of(sheet, b)
        if left is None or right is None:
            return pointer_comparison(sheet, inst)
    else:
        if is_equality and isinstance(b, ConstantInt) and (a.type is types.I1 or (not b.value and is_truth(sheet, a))):
            text = text_of(sheet, a)
            return text if (word == "eq") == bool(b.value) else trees.negated(text)
        known = decided(sheet, inst)
        if known is not None:
            return ast.Constant(known)
        left, right = polynomial_of(sheet, a), polynomial_of(sheet, b)
        is_plain = "samesign" in inst.flags or (is_nonnegative(sheet, left) and is_nonnegative(sheet, right))
        if inst.predicate[0] == "u" and not is_plain:
            x, y = (unsigned_text(sheet, v) for v in (a, b))
            return trees.integer_compare(x, COMPARISONS[word](), y)
    left, word, right = compared(sheet, left, word, right)
    return trees.integer_compare(total_text(sheet, left), COMPARISONS[word](), total_text(sheet, right))


def _select(sheet: Sheet, test: Value, a: Value, b: Value) -> ast.expr:
    condition = text_of(sheet, test)
    if isinstance(condition, ast.Constant):
        return text_of(sheet, a if condition.value else b)
    if a.type is types.I1:
        if isinstance(b, ConstantInt) and not b.value:
            return trees.both_or_either("and", condition, text_of(sheet, a))
        if isinstance(a, ConstantInt) and a.value:
            return trees.both_or_either("or", condition, text_of(sheet, b))
    return ast.IfExp(condition, text_of(sheet, a), text_of(sheet, b))


def _cast(sheet: Sheet, inst: Cast) -> ast.expr:
    source = inst.operands[0]
    match inst.opcode:
        case "sitofp" | "uitofp":
            number = (text_of if inst.opcode == "sitofp" else unsigned_text)(sheet, source)
            return trees.call("float" if inst.type is types.DOUBLE else "np.float32", number)
        case "fpext":
            return trees.call("np.float64", text_of(sheet, source))
        case "fptrunc":
            return trees.call("np.float32", text_of(sheet, source))
        case "fptosi" | "fptoui":
            return trees.call("int", text_of(sheet, source))
        case "zext" | "sext" if source.type is types.I1:
            text = trees.call("int", text_of(sheet, source))
            return ast.UnaryOp(ast.USub(), text) if inst.opcode == "sext" else text
        case "zext":
            return unsigned_text(sheet, source)
        case "sext":
            return text_of(sheet, source)
        case "trunc" if inst.type is types.I1 and is_truth(sheet, source):
            return text_of(sheet, source)
        case "trunc" if inst.type is types.I1:
            return trees.call("bool", trees.binary(text_of(sheet, source), ast.BitAnd(), trees.number(1)))
        case "trunc":
            return text_of(sheet, source) if "nsw" in inst.flags else wrapped(text_of(sheet, source), inst)
        case _:
            raise refused(f"the conversion {inst.opcode}", inst)


def _call(sheet: Sheet, call: Call) -> ast.expr:
    callee = resolve(call, sheet.captured.augmented.unit.registry)
    arguments = [text_of(sheet, a) for a in call.arguments if a.type is not types.I1]
    if isinstance(callee, Elementwise):
        if callee.name in ("fma", "fmuladd"):
            a, b, c = arguments
            return trees.binary(trees.binary(a, ast.Mult(), b), ast.Add(), c)
        if callee.name in VALUES:
            return arguments[VALUES[callee.name]]
        return trees.call(python_function(callee.name) or callee.name, *arguments)
    stem = callee_name(call).rpartition(".")[0]
    function = INTEGER_FUNCTIONS.get(stem)
    if stem == "llvm.usub.sat":
        a, b = (unsigned_text(sheet, v) for v in call.arguments)
        made = trees.call("max", trees.binary(a, ast.Sub(), b), trees.number(0))
        return made if is_nonnegative(sheet, polynomial_of(sheet, call.arguments[0])) else wrapped(made, call)
    if function is None:
        raise refused(f"the call of {callee_name(call) or 'a function value'}", call)
    if stem.startswith("llvm.u") and not all(is_nonnegative(sheet, polynomial_of(sheet, a)) for a in call.arguments):
        return wrapped(trees.call(function, *[unsigned_text(sheet, a) for a in call.arguments]), call)
    return trees.call(function, *arguments)


def element_text(sheet: Sheet, element: ArrayElement) -> ast.expr:
    """An element as Python."""
    if element.array.is_result:
        offset = element.indices[0].number
        if offset is None:
            raise refused(f"an element of {element.array.name} at an index that is computed", element.array.origin)
        return trees.name(slot_name(sheet, element.array, offset))
    base = array_text(sheet, element.array)
    if element.part is not None:
        base = ast.Attribute(base, element.part, ast.Load())
    if element.is_flat:
        if element.array.layout == "F":
            base = ast.Attribute(base, "T", ast.Load())
        flat = ast.Attribute(base, "flat", ast.Load())
        written = natural_text if element.array.is_view else sum_text
        return trees.subscript(flat, [written(sheet, element.indices[0])])
    return trees.subscript(
        base, [index_text(sheet, element.array, i, index) for i, index in enumerate(element.indices)]
    )


def array_text(sheet: Sheet, array: Array) -> ast.expr:
    """The name of an array; in the reverse sweep, of the one that this iteration had."""
    if sheet.is_reverse and sheet.augmented is not None and array.origin in sheet.augmented.tape:
        return sheet.augmented.tape[array.origin]()
    is_variable = bool(array.sources)
    return leaf_text(sheet, array.origin) if is_variable else trees.name(array.name)


def natural_text(sheet: Sheet, index: Polynomial) -> ast.expr:
    """An index that Python must not count from the end; where its sign is not known, the exact form looks."""
    text = sum_text(sheet, index)
    return text if is_known_natural(sheet, index) else trees.call(trees.NATURAL, text)


def index_text(sheet: Sheet, array: Array, dimension: int, index: Polynomial) -> ast.expr:
    """An index; Python counts negative ones from the end as Numba does."""
    if array.is_view:
        return natural_text(sheet, index)
    if not array.shape:
        return sum_text(sheet, index)
    length = array.shape[dimension]
    for value in index.values - set(sheet.texts):
        found = counted_from_end(sheet, value)
        if found is not None and index.equals(Polynomial.of(value)) and found[1].equals(length):
            return sum_text(sheet, found[0])
        added = length_if_negative(sheet, value)
        if added is not None and added[1].equals(length) and index.equals(added[0] + Polynomial.of(value)):
            return sum_text(sheet, added[0])
    return sum_text(sheet, index)
