"""One sweep as expressions: what each value is in Python.

Integers are rendered from polynomials, so that an index that LLVM took apart is put together again. A value is a
variable, or it is written in the place where it is used (`variables`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
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
    Phi,
    Select,
    Unary,
)
from irad.ir.loops import Loop, LoopNest
from irad.ir.module import Function
from irad.ir.trip_count import affine_variables
from irad.ir.types import FloatType, IntType, PointerType
from irad.ir.values import ConstantFloat, ConstantInt, ConstantNull, Poison, Undef, Value
from irad.passes.callees import resolve
from irad.report.pseudo_python import trees
from irad.report.pseudo_python.arrays import Array, Element, element_at, flat_element, known_sizes
from irad.report.pseudo_python.capture import CapturedPair
from irad.report.pseudo_python.cleanup import STRONG, Reads
from irad.report.pseudo_python.functions import python_function
from irad.report.pseudo_python.loop_forms import LoopForm, LoopVariable
from irad.report.pseudo_python.memory import Memory, Place, callee_name, is_allocation
from irad.report.pseudo_python.polynomial import Polynomial
from irad.ruleset.interface import Elementwise


@dataclass(eq=False, slots=True)
class Sheet:
    """One sweep.

    Attributes:
        reads: what placeholders stand for; empty in the forward sweep.
        texts: expressions that stand for values wherever they are used: parameters, variables, saved values.
        same: values that equal others.
        stable: variables of the forward sweep that keep their value, so that the reverse sweep can name them.
        derivable: those that are computed from parameters and loop variables alone.
        tape: texts of what is saved in loops, by value or start of an array.
        affine: integers that are polynomials in loop variables, and sizes that types tell.
        used: called for each value whose text is taken from ``texts``; liveness listens.
        exact: products with a cotangent are written as calls that keep a zero cotangent zero.
    """

    captured: CapturedPair
    function: Function
    cfg: ControlFlow
    dominators: DominatorTree
    nest: LoopNest
    forms: dict[Loop, LoopForm]
    memory: Memory
    reads: Reads
    is_reverse: bool
    same: dict[Value, Value]
    forward: Sheet | None = None
    stable: set[Value] = field(default_factory=set)
    derivable: set[Value] = field(default_factory=set)
    texts: dict[Value, Callable[[], ast.expr]] = field(default_factory=dict)
    used: Callable[[Value], None] | None = None
    exact: bool = False
    affine: dict[Value, Polynomial] = field(default_factory=dict)
    tape: dict[Value, Callable[[], ast.expr]] = field(default_factory=dict)
    extremes: dict[Value, set[Value]] = field(default_factory=dict)
    nonnegative: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        params = self.captured.forward.function.params[2:]
        arrays = {start: place.array for start, place in self.memory.starts.items()}
        self.affine.update(known_sizes(self.memory.arguments, params, arrays))
        if self.is_reverse:
            for loop, number in self.reads.numbers.items():
                self.affine[number] = self._number(loop)
        else:
            for form in self.forms.values():
                if form.is_for:
                    self._add_affine(form)

    def _add_affine(self, form: LoopForm) -> None:
        assert form.count is not None
        number = self._number(form.loop)
        for phi, variable in affine_variables(form.twin).items():
            if form.is_index and phi is form.count.variable:
                self.affine[phi] = Polynomial.of(form.variable)
            elif isinstance(phi.type, PointerType):
                self.affine[phi] = number.scaled(variable.step) if isinstance(variable.step, int) else number
            elif not (form.is_index and abs(form.count.step) != 1):
                step = variable.step
                by = Polynomial.constant(step) if isinstance(step, int) else self.polynomial(step)
                self.affine[phi] = self.polynomial(variable.start) + number * by

    def _number(self, loop: Loop) -> Polynomial:
        """The number of an iteration in terms of the loop's variable."""
        form = self.forms[loop]
        variable = Polynomial.of(form.variable)
        if form.count is None or not form.is_index:
            return variable
        if abs(form.count.step) != 1:
            return Polynomial.of(LoopCount(types.I64, None, form))
        return (variable - self.polynomial(form.count.start)).scaled(form.count.step)

    # ------------------------------------------------------------------------------------------------ integers

    def polynomial(self, value: Value) -> Polynomial:
        """An integer as a polynomial in values that have a text of their own."""
        value = self.same.get(value, value)
        if value in self.affine and not isinstance(value.type, PointerType):
            return self.affine[value]
        if value in self.texts:
            return Polynomial.of(value)
        match value:
            case ConstantInt(value=number):
                return Polynomial.constant(number)
            case Binary(opcode="add" | "sub" | "mul" | "shl" | "or", operands=[a, b]):
                return self._arithmetic(value, a, b)
            case Cast(opcode="sext" | "zext", operands=[source]) if _is_wide(source):
                return self.polynomial(source)
            case ExtractValue(indices=(0,), operands=[Call() as call]) if is_checked_arithmetic(call):
                return self._checked(call)
            case Freeze(operands=[source]) if value not in self.reads.saved and value not in self.reads.affine:
                return self.polynomial(source)
            case Freeze() if value in self.reads.affine:
                return self._affine_read(value)
            case Freeze():
                saved = self.reads.saved.get(value)
                if saved is None or not self._is_fixed(saved):
                    return Polynomial.of(value)
                saved = self.same.get(saved, saved)
                if self.forward is not None and isinstance(saved, Instruction):
                    return self.forward.polynomial(saved)
                return self.affine.get(saved, Polynomial.of(saved))
            case _:
                return Polynomial.of(value)

    def _is_fixed(self, saved: Value) -> bool:
        """Whether a saved value is one number in all of the reverse sweep."""
        if not isinstance(saved, Instruction) or saved.block is None:
            return True
        return saved.block not in self.captured.loops.innermost

    def is_fixed(self, value: Value) -> bool:
        """Whether a value of the forward sweep can be named in the reverse sweep: it is never assigned again."""
        if isinstance(value, Instruction):
            return value in self.stable
        extreme = self.extremes.get(value)
        return extreme is None or all(map(self.is_fixed, extreme))

    def _arithmetic(self, value: Binary, a: Value, b: Value) -> Polynomial:
        match value.opcode:
            case "add":
                return self.polynomial(a) + self.polynomial(b)
            case "or" if "disjoint" in value.flags:
                return self.polynomial(a) + self.polynomial(b)
            case "sub":
                return self.polynomial(a) - self.polynomial(b)
            case "mul":
                return self.polynomial(a) * self.polynomial(b)
            case "shl" if isinstance(b, ConstantInt):
                return self.polynomial(a).scaled(1 << b.value)
            case _:
                return Polynomial.of(value)

    def _checked(self, call: Call) -> Polynomial:
        """Arithmetic that tells whether it overflows; that of Python does not."""
        a, b = (self.polynomial(v) for v in call.arguments)
        operation = callee_name(call)[6:9]
        return a * b if operation == "mul" else a + b if operation == "add" else a - b

    def _affine_read(self, placeholder: Value) -> Polynomial:
        read = self.reads.affine[placeholder]
        form = self.forms[read.loop]
        if form.is_index and form.count is not None and form.count.variable is read.value:
            return Polynomial.of(form.variable)
        step = Polynomial.constant(read.step) if isinstance(read.step, int) else self.polynomial(read.step)
        return self.polynomial(read.start) + self._number(read.loop) * step

    def is_nonnegative(self, sum_: Polynomial) -> bool:
        """Whether a polynomial is certainly not negative."""
        return all(c >= 0 and all(map(self._is_natural, m)) for m, c in sum_.terms.items())

    def _is_natural(self, value: Value) -> bool:
        if value in self.nonnegative:
            return True
        match value:
            case LoopVariable():
                form = next(f for f in self.forms.values() if f.variable is value)
                if form.count is None or not form.is_index:
                    return True
                return form.count.step > 0 and self.is_nonnegative(self.polynomial(form.count.start))
            case Call() if callee_name(value).startswith("llvm.smax"):
                return any(self.is_nonnegative(self.polynomial(a)) for a in value.arguments)
            case Cast(opcode="zext"):
                return True
            case Select(operands=[ICmp(predicate="slt", operands=[_, ConstantInt(value=0)]), _, _]):
                return True  # a negative index that the length was added to
            case Phi() | Select():
                before = set(self.nonnegative)
                self.nonnegative.add(value)  # it is, if the others are when it is
                ways = value.operands[isinstance(value, Select) :]
                if all(self.is_nonnegative(self.polynomial(way)) for way in ways):
                    return True
                self.nonnegative &= before
                return False
            case _:
                return False

    def plain_bounds(self, form: LoopForm) -> tuple[Polynomial, Polynomial, int]:
        """Start, stop and step of the range of a loop that is run."""
        count = form.count
        assert count is not None
        step = count.step
        start, stop = self.polynomial(count.start), self.polynomial(count.bound)
        if count.predicate in ("sle", "sge"):
            stop = stop + Polynomial.constant(1 if step > 0 else -1)
        if not count.compares_next:
            stop = stop + Polynomial.constant(step)
        return start, stop, step

    def least(self, sum_: Polynomial) -> Polynomial:
        """A polynomial that is at most as large: loop variables take the value at the end where the sum is smallest."""
        for form in reversed(self.forms.values()):  # inner loops first: their bounds may be outer variables
            variable = (form.variable,)
            factor = sum_.terms.get(variable)
            if factor is None or not form.is_for or not form.is_index:
                continue
            start, stop, step = self.plain_bounds(form)
            last = stop - Polynomial.constant(1 if step > 0 else -1)
            low, high = (start, last) if step > 0 else (last, start)
            end = low if factor > 0 else high
            sum_ = sum_ - Polynomial.of(form.variable).scaled(factor) + end.scaled(factor)
        return sum_

    def _is_index(self, index: Polynomial, length: Polynomial) -> bool:
        """Whether a part of an offset may be taken for an index: it is not negative."""
        from_end = (length - index).number
        if from_end is not None and from_end > 0:
            return True  # n - 1, written as -1
        return self.is_nonnegative(index) or self.is_nonnegative(self.least(index))

    def sum_text(self, total: Polynomial) -> ast.expr:
        """A polynomial as Python: positive terms first, numbers last."""
        terms = sorted(total.terms.items(), key=lambda term: (term[1] < 0, not term[0]))
        made: ast.expr | None = None
        for monomial, factor in terms:
            term = self._term(monomial, abs(factor))
            if made is None:
                made = term if factor > 0 else trees.number(factor) if not monomial else ast.UnaryOp(ast.USub(), term)
            else:
                made = trees.binary(made, ast.Add() if factor > 0 else ast.Sub(), term)
        return made if made is not None else trees.number(0)

    def _term(self, monomial: tuple[Value, ...], factor: int) -> ast.expr:
        made: ast.expr | None = None if factor == 1 and monomial else trees.number(factor)
        for value in monomial:
            text = self.leaf_text(value)
            made = text if made is None else trees.binary(made, ast.Mult(), text)
        assert made is not None
        return made

    # ------------------------------------------------------------------------------------------------ values

    def text(self, value: Value) -> ast.expr:
        """A value as Python."""
        value = self.same.get(value, value)
        if isinstance(value.type, IntType) and value.type.bits > 1:
            return self.sum_text(self.polynomial(value))
        return self.leaf_text(value)

    def leaf_text(self, value: Value) -> ast.expr:
        """A value that is no sum."""
        known = self.texts.get(value)
        if known is not None:
            if self.used is not None:
                self.used(value)
            return known()
        if self.forward is not None and value in self.forward.texts:
            if isinstance(value, Instruction) and value in self.forward.derivable:
                return self.forward.operation(value)
            if isinstance(value, Instruction) and value not in self.forward.stable:
                raise self.unsupported("a value that the reverse sweep cannot name", value)
            return self.forward.texts[value]()
        match value:
            case LoopVariable(name=name):
                return trees.name(str(name))
            case LoopCount(form=form):
                assert form is not None
                assert form.count is not None
                distance = Polynomial.of(form.variable) - self.polynomial(form.count.start)
                return trees.binary(self.sum_text(distance), ast.FloorDiv(), trees.number(form.count.step))
            case ConstantInt(value=number) if value.type is types.I1:
                return ast.Constant(bool(number))
            case ConstantInt(value=number):
                return trees.number(number)
            case ConstantFloat() if self.is_reverse and value.value == 0.0:
                return trees.number(0.0)  # an empty cotangent is -0.0
            case ConstantFloat():
                return trees.number(_float_value(value))
            case Undef() | Poison() if isinstance(value.type, FloatType):
                return trees.number(0.0)
            case Undef() | Poison():
                return trees.number(0)
            case Freeze() if value in self.reads.saved:
                return self.saved_text(value)
            case Freeze(operands=[source]):
                return self.text(source)
            case Instruction():
                return self.operation(value)
            case _:
                raise self.unsupported(f"the value {value.name or type(value).__name__}", value)

    def saved_text(self, placeholder: Value) -> ast.expr:
        """What the forward sweep saved."""
        saved = self.reads.saved[placeholder]
        saved = self.same.get(saved, saved)
        assert self.forward is not None
        known = self.forward.tape.get(saved)
        return known() if known is not None else self.forward.text(saved)

    def operation(self, inst: Instruction) -> ast.expr:
        """An instruction as an expression of its operands."""
        match inst:
            case Binary():
                return self._binary(inst)
            case Unary(operands=[a]):
                return ast.UnaryOp(ast.USub(), self.text(a))
            case ICmp():
                return self._integer_comparison(inst)
            case FCmp():
                return self._float_comparison(inst)
            case Select(operands=[test, a, b]):
                return self._select(test, a, b)
            case Cast():
                return self._cast(inst)
            case Load(operands=[pointer]):
                return self.element_text(self.element(pointer, inst.type))
            case Call():
                return self._call(inst)
            case Freeze(operands=[a]):
                return self.text(a)
            case ExtractValue(indices=(1,), operands=[Call() as call]) if is_checked_arithmetic(call):
                return ast.Constant(False)
            case _:
                raise self.unsupported(f"the operation {type(inst).__name__}", inst)

    def _binary(self, inst: Binary) -> ast.expr:
        left, right = (self._operand(inst, v) for v in inst.operands)
        if STRONG in inst.flags and self.exact:
            return trees.call("times" if inst.opcode == "fmul" else "divided", left, right)
        operator = _OPERATORS.get(inst.opcode)
        if inst.opcode == "fadd" and isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
            return trees.binary(left, ast.Sub(), right.operand)
        if operator is not None:
            return trees.binary(left, operator(), right)
        if inst.type is types.I1:
            return self._logic(inst, left, right)
        match inst.opcode:
            case "frem":
                return trees.call("np.fmod", left, right)
            case "sdiv" | "udiv" | "srem" | "urem":
                natural = all(self.is_nonnegative(self.polynomial(v)) for v in inst.operands)
                if natural:
                    return trees.binary(left, ast.FloorDiv() if "div" in inst.opcode else ast.Mod(), right)
                if inst.opcode[0] == "s":
                    return trees.call("truncated_quotient" if "div" in inst.opcode else "truncated_rest", left, right)
            case "and" | "or" | "xor":
                bits = {"and": ast.BitAnd, "or": ast.BitOr, "xor": ast.BitXor}[inst.opcode]
                return trees.binary(left, bits(), right)
            case "ashr" | "lshr" if inst.opcode == "ashr" or self.is_nonnegative(self.polynomial(inst.operands[0])):
                return trees.binary(left, ast.RShift(), right)
            case _:
                pass
        raise self.unsupported(f"the operation {inst.opcode}", inst)

    def _operand(self, inst: Binary, value: Value) -> ast.expr:
        """An operand; Python turns integers to floats by itself where the other operand is a float."""
        if (
            isinstance(value, Cast)
            and value.opcode in ("sitofp", "uitofp")
            and inst.type is types.DOUBLE
            and value not in self.texts
            and not all(isinstance(v, Cast) for v in inst.operands)
        ):
            return self.text(value.operands[0])
        return self.text(value)

    def _logic(self, inst: Binary, left: ast.expr, right: ast.expr) -> ast.expr:
        match inst.opcode:
            case "and" | "or":
                return trees.both_or_either(inst.opcode, left, right)
            case "xor" if isinstance(right, ast.Constant):
                return trees.negated(left) if right.value else left
            case "xor":
                return trees.compare(left, ast.NotEq(), right)
            case _:
                raise self.unsupported(f"the operation {inst.opcode} of truth values", inst)

    def _integer_comparison(self, inst: ICmp) -> ast.expr:
        a, b = inst.operands
        if isinstance(a.type, PointerType):
            return self._pointer_comparison(inst)
        if a.type is types.I1 and isinstance(b, ConstantInt) and inst.predicate in ("eq", "ne"):
            text = self.text(a)
            return text if (inst.predicate == "eq") == bool(b.value) else trees.negated(text)
        left, right = self.polynomial(a), self.polynomial(b)
        known = self.decided(inst)
        if known is not None:
            return ast.Constant(known)
        predicate = inst.predicate
        if predicate[0] == "u" and not (
            "samesign" in inst.flags or (self.is_nonnegative(left) and self.is_nonnegative(right))
        ):
            x, y = trees.call("unsigned", self.text(a)), trees.call("unsigned", self.text(b))
            return trees.integer_compare(x, _COMPARISONS[predicate[1:]](), y)
        word = predicate if predicate in ("eq", "ne") else predicate[1:]
        return trees.integer_compare(self.sum_text(left), _COMPARISONS[word](), self.sum_text(right))

    def decided(self, inst: ICmp) -> bool | None:
        """The truth of a comparison that is the same for all arguments."""
        a, b = inst.operands
        if not isinstance(a.type, IntType) or a.type is types.I1:
            return None
        difference = self.polynomial(a) - self.polynomial(b)
        number = difference.number
        if number is not None and inst.predicate[0] != "u":
            return {
                "eq": number == 0, "ne": number != 0, "slt": number < 0,
                "sle": number <= 0, "sgt": number > 0, "sge": number >= 0,
            }[inst.predicate]  # fmt: skip
        if inst.predicate in ("slt", "sge") and self.is_nonnegative(difference):
            return inst.predicate == "sge"
        if inst.predicate in ("sgt", "sle") and self.is_nonnegative(difference.scaled(-1)):
            return inst.predicate == "sle"
        return self._is_beyond_memory(inst)

    def _is_beyond_memory(self, inst: ICmp) -> bool | None:
        """`x.size > 2**60 - 1` of an array that exists: no."""
        a, b = inst.operands
        is_size = len(self.polynomial(a).terms) == 1 and self.is_nonnegative(self.polynomial(a))
        if is_size and isinstance(b, ConstantInt) and b.value >= 2**59 and inst.predicate in ("ugt", "sgt"):
            values = self.polynomial(a).values
            return False if values and values <= self.nonnegative else None
        return None

    def _pointer_comparison(self, inst: ICmp) -> ast.expr:
        a, b = inst.operands
        is_new = isinstance(a, Call) and is_allocation(a)
        if is_new and isinstance(b, ConstantNull) and inst.predicate in ("eq", "ne"):
            return ast.Constant(inst.predicate == "ne")  # `np.empty` raises MemoryError by itself
        raise self.unsupported("a comparison of addresses", inst)

    def _float_comparison(self, inst: FCmp) -> ast.expr:
        a, b = (self.text(v) for v in inst.operands)
        predicate = inst.predicate
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
            return trees.compare(a, _COMPARISONS[predicate[1:]](), b)
        return ast.UnaryOp(ast.Not(), trees.compare(a, _COMPARISONS[_OPPOSITE[predicate[1:]]](), b))

    def _select(self, test: Value, a: Value, b: Value) -> ast.expr:
        condition = self.text(test)
        if a.type is types.I1:
            if isinstance(b, ConstantInt) and not b.value:
                return trees.both_or_either("and", condition, self.text(a))
            if isinstance(a, ConstantInt) and a.value:
                return trees.both_or_either("or", condition, self.text(b))
        if isinstance(a.type, PointerType):
            raise self.unsupported("a choice between two arrays", test)
        return ast.IfExp(condition, self.text(a), self.text(b))

    def _cast(self, inst: Cast) -> ast.expr:
        source = inst.operands[0]
        match inst.opcode:
            case "sitofp" | "uitofp":
                return trees.call("float" if inst.type is types.DOUBLE else "np.float32", self.text(source))
            case "fpext":
                return trees.call("np.float64", self.text(source))
            case "fptrunc":
                return trees.call("np.float32", self.text(source))
            case "fptosi" | "fptoui":
                return trees.call("int", self.text(source))
            case "zext" | "sext" if source.type is types.I1:
                text = trees.call("int", self.text(source))
                return ast.UnaryOp(ast.USub(), text) if inst.opcode == "sext" else text
            case "zext" | "sext":
                return self.text(source)
            case "trunc" if inst.type is types.I1:
                return trees.call("bool", self.text(source))
            case "trunc":
                return self.text(source)
            case _:
                raise self.unsupported(f"the conversion {inst.opcode}", inst)

    def _call(self, call: Call) -> ast.expr:
        callee = resolve(call, self.captured.forward.unit.registry)
        arguments = [self.text(a) for a in call.arguments if a.type is not types.I1]
        if isinstance(callee, Elementwise):
            function = python_function(callee.name)
            if callee.name in ("fma", "fmuladd"):
                a, b, c = arguments
                return trees.binary(trees.binary(a, ast.Mult(), b), ast.Add(), c)
            if function is not None:
                return trees.call(function, *arguments)
            return trees.call(callee.name, *arguments)
        stem = callee_name(call).rpartition(".")[0]
        if stem in _INTEGER_FUNCTIONS:
            return trees.call(_INTEGER_FUNCTIONS[stem], *arguments)
        raise self.unsupported(f"the call of {callee_name(call) or 'a function value'}", call)

    # ------------------------------------------------------------------------------------------------ memory

    def place(self, pointer: Value) -> Place:
        """Where a pointer leads."""
        moving = self._moving(pointer)
        return moving if moving is not None else self.memory.place(pointer, self.polynomial, self._all_reads())

    def flat_index(self, pointer: Value) -> ast.expr:
        """Where a pointer leads in the elements of its array, counted in the order of memory."""
        place = self.place(pointer)
        parts = place.offset.divided(Polynomial.constant(place.array.itemsize))
        if parts is None or parts[1].terms:
            raise self.unsupported("a saved pointer into an array without order", pointer)
        return self.sum_text(parts[0])

    def _saved_pointer(self, pointer: Value) -> Place | None:
        """A pointer that was saved: where it led, by loop variables and parameters, or by the index that was saved."""
        saved = self.reads.saved.get(pointer)
        if saved is None or self.forward is None:
            return None
        place = self.forward.place(saved)
        if saved not in self.forward.tape or saved is place.array.origin:
            return place
        return Place(place.array, Polynomial.of(pointer).scaled(place.array.itemsize))

    def _moving(self, pointer: Value) -> Place | None:
        """A pointer that moves through an array by a constant step, or whose index was saved."""
        saved = self._saved_pointer(pointer)
        if saved is not None:
            return saved
        if not self.is_reverse and pointer in self.affine:
            phi = pointer
            form = next(f for f in self.forms.values() if phi in affine_variables(f.twin))
            start = self.place(affine_variables(form.twin)[phi].start)  # type: ignore[index]
            return Place(start.array, start.offset + self.affine[phi], start.is_header)
        read = self.reads.affine.get(pointer)
        if read is not None and isinstance(read.step, int):
            start = self.place(read.start)
            return Place(start.array, start.offset + self._number(read.loop).scaled(read.step), start.is_header)
        inst = pointer
        if isinstance(inst, Instruction) and isinstance(inst.type, PointerType) and inst.operands:
            from irad.ir.instructions import GetElementPtr
            from irad.report.pseudo_python.memory import byte_offset

            if isinstance(inst, GetElementPtr):
                begin = self.place(inst.operands[0])
                return Place(
                    begin.array, begin.offset + byte_offset(inst, inst.operands[1:], self.polynomial), begin.is_header
                )
        return None

    def _all_reads(self) -> dict[Value, Value]:
        return self.reads.saved

    def element(self, pointer: Value, type_: types.Type) -> Element:
        """The element that an access is to."""
        place = self.place(pointer)
        if place.is_header:
            raise self.unsupported("an access to the header of an array", pointer)
        if place.array.is_result:
            return Element(place.array, (place.offset,))
        array = place.array
        found = element_at(array, place.offset, types.size_of(type_))
        is_ambiguous = len(found.indices) > 1 and array.shape and array.layout != "A"
        if is_ambiguous and not all(map(self._is_index, found.indices[1:], array.shape[1:])):
            return flat_element(array, place.offset, found.part)
        return found

    def element_text(self, element: Element) -> ast.expr:
        """An element as Python."""
        if element.array.is_result:
            offset = element.indices[0].number
            if offset is None:
                raise self.unsupported(
                    f"an element of {element.array.name} at an index that is computed", element.array.origin
                )
            return trees.name(self.slot_name(element.array, offset))
        base = self.array_text(element.array)
        if element.part is not None:
            base = ast.Attribute(base, element.part, ast.Load())
        if element.is_flat:
            if element.array.layout == "F":
                base = ast.Attribute(base, "T", ast.Load())
            flat = ast.Attribute(base, "flat", ast.Load())
            return trees.subscript(flat, [self.sum_text(element.indices[0])])
        return trees.subscript(
            base, [self.index_text(element.array, i, index) for i, index in enumerate(element.indices)]
        )

    def slot_name(self, array: Array, offset: int) -> str:
        """The variable for a number in a stack slot or in the place of the result."""
        known = array.slots.get(offset)
        if known is None and array.slots:
            raise self.unsupported("a result of this form", array.origin)
        return known or (array.name if offset == 0 else f"{array.name}_{offset // 8}")

    def array_text(self, array: Array) -> ast.expr:
        """The name of an array; in the reverse sweep, of the one that this iteration had."""
        if self.is_reverse and self.forward is not None and array.origin in self.forward.tape:
            return self.forward.tape[array.origin]()
        return trees.name(array.name)

    def index_text(self, array: Array, dimension: int, index: Polynomial) -> ast.expr:
        """An index; Python counts negative ones from the end as Numba does."""
        if len(index.terms) == 1:
            ((monomial, factor),) = index.terms.items()
            if factor == 1 and len(monomial) == 1 and monomial[0] not in self.texts:
                from_end = self._counted_from_end(monomial[0], array, dimension)
                if from_end is not None:
                    return self.sum_text(from_end)
        return self.sum_text(index)

    def _counted_from_end(self, value: Value, array: Array, dimension: int) -> Polynomial | None:
        match value:
            case Select(operands=[ICmp(predicate="slt", operands=[tested, ConstantInt(value=0)]), wrapped, plain]):
                index = self.polynomial(plain)
                if not array.shape or not self.polynomial(tested).equals(index):
                    return None
                return index if self.polynomial(wrapped).equals(index + array.shape[dimension]) else None
            case _:
                return None

    def unsupported(self, what: str, value: Value) -> UnsupportedError:
        """The refusal of what has no Python form."""
        error = UnsupportedError(
            f"{what} cannot be written as Python",
            "look at the adjoint as LLVM IR",
            "Python has no form for it that does the same",
        )
        if isinstance(value, Instruction):
            error.instruction = value
        return error


@dataclass(eq=False, slots=True)
class LoopCount(Value):
    """The number of the iteration of a loop whose index moves by other steps than one."""

    form: LoopForm | None = None


def is_checked_arithmetic(call: Call) -> bool:
    """Whether a call is integer arithmetic that returns whether it overflows as well."""
    name = callee_name(call)
    return name.startswith(("llvm.smul.with", "llvm.sadd.with", "llvm.ssub.with"))


def _float_value(constant: ConstantFloat) -> float:
    """The shortest number that is the constant in its precision."""
    return float(str(np.float32(constant.value))) if constant.type is types.FLOAT else constant.value


def _is_wide(source: Value) -> bool:
    return isinstance(source.type, IntType) and source.type.bits >= 32


_OPERATORS: dict[str, type[ast.operator]] = {"fadd": ast.Add, "fsub": ast.Sub, "fmul": ast.Mult, "fdiv": ast.Div}
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_INTEGER_FUNCTIONS = {
    "llvm.smax": "max", "llvm.smin": "min", "llvm.umax": "max", "llvm.umin": "min", "llvm.abs": "abs",
}  # fmt: skip
