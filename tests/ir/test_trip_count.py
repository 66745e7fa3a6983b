"""Trip counts are proved by running: LLVM executes the loop and the formula, and both must agree.

Each shape of loop is parametrised by start and bound. Its meaning is simulated first in Python, which finds the pairs
where the loop is endless, or undefined because a flagged increment wraps; the others are run.
"""

import itertools
from ctypes import CFUNCTYPE, c_uint64
from dataclasses import dataclass, replace

import llvmlite.binding as llvm
import pytest
from hypothesis import assume, given, strategies as st

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, remove_unreachable_blocks
from irad.ir.dominance import dominators
from irad.ir.instructions import GetElementPtr
from irad.ir.loops import loop_nest
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.trip_count import affine_variables, constant_offset, is_invariant, trip_count
from irad.ir.values import ConstantInt
from irad.ir.verifier import verify

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
SWAP = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
INVERT = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


@dataclass(frozen=True)
class Shape:
    """A loop that goes on while `variable predicate bound`, spelled in one of several ways."""

    bits: int
    predicate: str
    step: int
    compares_next: bool = False
    swapped: bool = False
    inverted: bool = False
    subtracts: bool = False
    flag: str = ""
    bound: int | None = None
    start: int | None = None

    def spelled_predicate(self):
        sign, order = (self.predicate[0], self.predicate[1:]) if len(self.predicate) == 3 else ("", self.predicate)
        order = SWAP[order] if self.swapped else order
        return sign + (INVERT[order] if self.inverted else order)

    def text(self):
        """Counts its back edges; `%limit` and `%first` are what the comparison and the phi read."""
        left = "%next" if self.compares_next else "%i"
        right = "%bound" if self.bound is None else str(self.bound)
        if self.swapped:
            left, right = right, left
        targets = ("%exit", "%latch") if self.inverted else ("%latch", "%exit")
        opcode, amount = ("sub", -self.step) if self.subtracts else ("add", self.step)
        type_ = f"i{self.bits}"
        return f"""
define i64 @loop({type_} %start, {type_} %bound) {{
entry:
  br label %header
header:
  %i = phi {type_} [ {"%start" if self.start is None else self.start}, %entry ], [ %next, %latch ]
  %taken = phi i64 [ 0, %entry ], [ %more, %latch ]
  %next = {opcode} {self.flag} {type_} %i, {amount}
  %go = icmp {self.spelled_predicate()} {type_} {left}, {right}
  br i1 %go, label {targets[0]}, label {targets[1]}
latch:
  %more = add i64 %taken, 1
  br label %header
exit:
  ret i64 %taken
}}
"""

    def simulate(self, start, bound, most):
        """The back edges taken; None if endless, undefined, or more than ``most``."""
        signed = self.predicate[0] == "s"
        bound, current = (
            self.bound if self.bound is not None else bound,
            self.start if self.start is not None else start,
        )
        for taken in range(most + 1):
            wide = self.wide_next(current)
            poison = (self.flag == "nsw" and wide != self.read(wide, True)) or (
                self.flag == "nuw" and self.unsigned_wraps(current)
            )
            following = self.read(wide, True)
            if poison and self.compares_next:
                return None
            if not self.holds(
                self.read(following if self.compares_next else current, signed), self.read(bound, signed)
            ):
                return taken
            if poison:  # the next comparison reads it
                return None
            current = following
        return None

    def wide_next(self, current):
        return self.read(current, True) + self.step

    def unsigned_wraps(self, current):
        amount = self.read(-self.step if self.subtracts else self.step, False)
        value = self.read(current, False)
        return (value - amount if self.subtracts else value + amount) not in range(1 << self.bits)

    def read(self, value, signed):
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if signed and value >> (self.bits - 1) else value

    def holds(self, a, b):
        order = self.predicate[-2:]
        return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[order]


def analysed(text):
    """The only loop of the first function, with what `trip_count` needs."""
    (function,) = parse_module(text).defined_functions()
    cfg = control_flow(function)
    dom = dominators(cfg)
    return function, loop_nest(cfg, dom).loops[0], cfg, dom


def counted(text):
    function, loop, cfg, dom = analysed(text)
    return function, trip_count(loop, cfg, dom)


def formula_text(shape):
    """A module with `@loop`, and `@formula` that returns the emitted count; None if the loop is not counted."""
    function, count = counted(shape.text())
    if count is None:
        return None
    entry = function.entry
    entry.terminator.erase()
    builder = Builder(entry)
    builder.ret(count.emit(builder))
    remove_unreachable_blocks(function)
    verify(function)
    return print_module(function.module)


PROTOTYPE = CFUNCTYPE(c_uint64, c_uint64, c_uint64)


class Programs:
    """Compiled pairs of loop and formula."""

    def __init__(self, shapes):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.shapes = []
        parts = []
        for shape in shapes:
            formula = formula_text(shape)
            if formula is not None:
                for kind, text in (("loop", shape.text()), ("formula", formula)):
                    parts.append(text.replace("@loop(", f"@{kind}{len(self.shapes)}("))
                self.shapes.append(shape)
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly("\n".join(parts)), machine)
        self.engine.finalize_object()

        self.functions = {
            (kind, index): self.function(f"{kind}{index}", shape.bits)
            for kind in ("loop", "formula")
            for index, shape in enumerate(self.shapes)
        }

    def function(self, name, bits):
        compiled, mask = PROTOTYPE(self.engine.get_function_address(name)), (1 << bits) - 1
        return lambda start, bound: compiled(start & mask, bound & mask)

    def run(self, kind, index):
        """The loop or the formula of a shape, as a function of start and bound."""
        return self.functions[kind, index]


def check(programs, index, start, bound, most):
    """Whether this input counts; fails if loop and formula differ."""
    shape = programs.shapes[index]
    expected = shape.simulate(start, bound, most)
    if expected is None:
        return False
    assert programs.run("loop", index)(start, bound) == expected, (shape, start, bound)
    assert programs.run("formula", index)(start, bound) == expected, (shape, start, bound)
    return True


BITS = 4
VALUES = range(-8, 8)


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("flag", ["", "nsw", "nuw"])
def test_every_start_bound_and_step_of_four_bits(predicate, flag):
    """All spellings of a loop, on all inputs of a type of 16 values."""
    shapes = [
        Shape(BITS, predicate, step, following, swapped, inverted, subtracts, flag)
        for step in range(-8, 8)
        if step
        for following, subtracts in itertools.product([False, True], repeat=2)
        for swapped, inverted in itertools.product([False, True] if abs(step) < 3 else [False], repeat=2)
    ]
    programs = Programs(shapes)
    ran = 0
    for index, shape in enumerate(programs.shapes):
        every = not (shape.swapped or shape.inverted) or abs(shape.step) == 1
        for start, bound in itertools.product(VALUES, VALUES) if every else [(-8, 7), (7, -8), (-1, 0), (1, 2), (3, 3)]:
            ran += check(programs, index, start, bound, 1 << BITS)
    wraps = predicate[1:] in ("le", "ge") and flag != {"s": "nsw", "u": "nuw"}[predicate[0]]
    assert ran == 0 if wraps else ran > 1000


@pytest.mark.parametrize("predicate", PREDICATES)
def test_constant_bounds_and_starts_of_four_bits(predicate):
    """Constants make more loops countable, and must not make too many."""
    shapes = [
        Shape(BITS, predicate, step, following, bound=bound, start=start)
        for step in (-4, -3, -1, 1, 6)
        for following in (False, True)
        for bound in (-8, -7, -1, 0, 5, 7)
        for start in (None, -8, 5)
    ]
    programs = Programs(shapes)
    ran = 0
    for index, shape in enumerate(programs.shapes):
        for start in VALUES if shape.start is None else [shape.start]:
            assert check(programs, index, start, 0, 1 << BITS), f"counted but endless: {shape}, start {start}"
            ran += 1
    assert ran > 50


def test_without_flags_every_counted_loop_ends():
    """Whatever is counted without the help of flags ends for all inputs: the count bounds every other exit too."""
    for predicate, step, following in itertools.product(PREDICATES, (-5, -2, -1, 1, 2, 5), (False, True)):
        shape = Shape(BITS, predicate, step, following)
        if formula_text(shape) is not None:
            assert all(shape.simulate(start, bound, 1 << BITS) is not None for start in VALUES for bound in VALUES)


def test_flagged_loops_that_are_left_early_stay_below_the_count():
    """Up to where a flagged increment becomes undefined, no more back edges are taken than the formula says."""
    for predicate, step, flag in itertools.product(PREDICATES[2:], (-3, -2, -1, 1, 2, 3), ("nsw", "nuw")):
        shape = Shape(BITS, predicate, step, flag=flag, subtracts=step < 0)
        programs = Programs([shape])
        if not programs.shapes:
            continue
        formula, unflagged = programs.run("formula", 0), replace(shape, flag="")
        for start, bound in itertools.product(VALUES, VALUES):
            if shape.simulate(start, bound, 1 << BITS) is None:
                defined = next(n for n in itertools.count() if _undefined_after(unflagged, flag, start, n))
                assert formula(start, bound) >= defined, (shape, start, bound)


def _undefined_after(shape, flag, start, steps):
    """Whether the value after this many steps and one more is poison."""
    flagged = replace(shape, flag=flag)
    current = start
    for _ in range(steps + 1):
        wide = flagged.wide_next(current)
        if (flag == "nsw" and wide != flagged.read(wide, True)) or (flag == "nuw" and flagged.unsigned_wraps(current)):
            return True
        current = flagged.read(wide, True)
    return False


EDGES = {bits: (0, 1, -1, (1 << (bits - 1)) - 1, -(1 << (bits - 1))) for bits in (32, 64)}
WIDE = [
    Shape(bits, predicate, step, following, flag=flag)
    for bits in (32, 64)
    for predicate in PREDICATES
    for step in (1, -1, 2, -3, 7, 1000003)
    for following in (False, True)
    for flag in ("", "nsw", "nuw")
]


@pytest.fixture(scope="module")
def wide():
    return Programs(WIDE)


@given(data=st.data())
def test_wide_types_near_the_edges_of_their_range(wide, data):
    """Start and bound within some steps of each other, around zero and both ends of the signed and unsigned ranges."""
    index = data.draw(st.integers(0, len(wide.shapes) - 1))
    shape = wide.shapes[index]
    start = data.draw(st.sampled_from(EDGES[shape.bits])) + data.draw(st.integers(-300, 300))
    bound = start + shape.step * data.draw(st.integers(-3, 300)) + data.draw(st.integers(-3, 3))
    assume(check(wide, index, shape.read(start, True), shape.read(bound, True), 1000))


@given(start=st.integers(-(1 << 63), (1 << 63) - 1), bound=st.integers(-(1 << 63), (1 << 63) - 1))
def test_counts_too_large_to_run(wide, start, bound):
    """The closed forms, on numbers for which the loop would take years."""
    size = 1 << 64
    expected = {"ne": (bound - start) % size, "slt": max(0, bound - start), "ult": max(0, bound % size - start % size)}
    for predicate, count in expected.items():
        index = wide.shapes.index(Shape(64, predicate, 1))
        assert wide.run("formula", index)(start, bound) == count


# ------------------------------------------------------------------------------------------------ what is recognised


def test_the_description_is_normalised():
    shape = Shape(64, "sgt", -1, compares_next=True, swapped=True, inverted=True, subtracts=True)
    function, count = counted(shape.text())
    assert count.exiting.name == "header"
    assert count.variable.name == "i"
    assert count.start is function.params[0]
    assert count.bound is function.params[1]
    assert (count.step, count.predicate, count.compares_next, count.speculative) == (-1, "sgt", True, False)


@pytest.mark.parametrize(
    ("shape", "exact"),
    [
        (Shape(64, "ne", 2), False),
        (Shape(64, "ne", 2, flag="nuw"), False),
        (Shape(64, "ne", 3), True),
        (Shape(64, "ne", 2, start=0, bound=100), True),
        (Shape(64, "ne", 2, start=0, bound=99), False),
        (Shape(64, "slt", 2), False),
        (Shape(64, "slt", 2, flag="nsw"), True),
        (Shape(64, "slt", 2, flag="nuw"), False),
        (Shape(64, "ult", 2, flag="nuw"), True),
        (Shape(64, "slt", -1), False),
        (Shape(64, "sle", 1), False),
        (Shape(64, "sle", 1, bound=1000), True),
        (Shape(64, "sle", 1, bound=(1 << 63) - 1), False),
        (Shape(64, "ugt", -1, flag="nuw"), True),
        (Shape(64, "ugt", -2, flag="nuw"), False),
        (Shape(64, "ugt", -2, flag="nuw", subtracts=True), True),
        (Shape(64, "uge", -1), False),
        (Shape(64, "eq", 2), True),
    ],
)
def test_only_what_is_certain_is_counted(shape, exact):
    assert (counted(shape.text())[1] is not None) == exact


TWO_EXITS = """
define i64 @f(ptr %p, i64 %n, i1 %flag) {
entry:
  br label %header
header:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %v = load i64, ptr %p
  %found = icmp eq i64 %v, %i
  br i1 %found, label %out, label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %header, label %out
out:
  ret i64 %i
}
"""


def test_the_counted_exit_need_not_be_the_first_nor_the_only_one():
    function, loop, cfg, dom = analysed(TWO_EXITS)
    count = trip_count(loop, cfg, dom)
    assert count.exiting.name == "latch"
    assert count.speculative
    header, latch = loop.order
    assert trip_count(loop, cfg, dom, header) is None
    assert trip_count(loop, cfg, dom, latch) == count
    builder = Builder.before(function.entry.terminator)
    count.emit(builder)
    verify(function)
    assert "freeze i64 %n" in print_module(function.module)


def test_a_bound_that_changes_in_the_loop_is_not_counted():
    text = TWO_EXITS.replace("%found = icmp eq i64 %v, %i", "%found = icmp slt i64 %i, %v")
    _, loop, cfg, dom = analysed(text)
    assert trip_count(loop, cfg, dom, loop.header) is None


def test_an_exit_that_is_not_tested_in_every_iteration_is_not_counted():
    _, count = counted("""
define void @f(i64 %n, i1 %flag) {
entry:
  br label %header
header:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br i1 %flag, label %test, label %latch
test:
  %more = icmp slt i64 %i, %n
  br i1 %more, label %latch, label %out
latch:
  %next = add i64 %i, 1
  br label %header
out:
  ret void
}
""")
    assert count is None


def test_an_exit_from_an_inner_loop_is_not_counted():
    function, outer, cfg, dom = analysed("""
define void @f(i64 %n, i1 %flag) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br label %inner
inner:
  %more = icmp slt i64 %i, %n
  br i1 %more, label %again, label %out
again:
  br i1 %flag, label %inner, label %latch
latch:
  %next = add i64 %i, 1
  br label %outer
out:
  ret void
}
""")
    assert function.name == "f"
    assert outer.header.name == "outer"
    assert trip_count(outer, cfg, dom) is None


def test_a_loop_without_preheader_is_not_counted():
    text = Shape(64, "slt", 1).text()
    text = text.replace(
        "entry:\n  br label %header", "entry:\n  %c = icmp eq i64 %start, 0\n  br i1 %c, label %header, label %exit"
    )
    _, count = counted(text.replace("ret i64 %taken", "ret i64 0"))
    assert count is None


AFFINE = """
%pair = type { i32, [4 x double] }
define void @f(i64 %n, i64 %stride, ptr %p, ptr %q) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 5, %entry ], [ %i.next, %loop ]
  %down = phi i32 [ 100, %entry ], [ %down.next, %loop ]
  %wide = phi i64 [ %n, %entry ], [ %wide.next, %loop ]
  %at = phi ptr [ %p, %entry ], [ %at.next, %loop ]
  %vague = phi ptr [ %p, %entry ], [ %vague.next, %loop ]
  %square = phi i64 [ 1, %entry ], [ %square.next, %loop ]
  %same = phi i64 [ %n, %entry ], [ %same, %loop ]
  %minus = phi i64 [ 0, %entry ], [ %minus.next, %loop ]
  %swapped = phi i64 [ 0, %entry ], [ %swapped.next, %loop ]
  %varying = phi i64 [ 0, %entry ], [ %varying.next, %loop ]
  %i.next = add i64 %i, 3
  %down.next = sub nsw i32 %down, 2
  %wide.next = add i64 %stride, %wide
  %at.next = getelementptr %pair, ptr %at, i64 2, i32 1, i64 -1
  %vague.next = getelementptr i8, ptr %vague, i64 %stride
  %square.next = mul i64 %square, 2
  %minus.next = sub i64 %minus, %stride
  %swapped.next = sub i64 7, %swapped
  %varying.next = add i64 %varying, %i
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""


def test_affine_variables():
    function, loop, _, _ = analysed(AFFINE)
    found = {phi.name: variable for phi, variable in affine_variables(loop).items()}
    assert list(found) == ["i", "down", "wide", "at"]
    assert isinstance(found["i"].start, ConstantInt)
    assert (found["i"].start.value, found["i"].step) == (5, 3)
    assert found["down"].step == -2
    assert (found["wide"].start, found["wide"].step) == (function.params[0], function.params[1])
    assert (found["at"].start, found["at"].step) == (function.params[2], 2 * 40 + 8 - 8)


def test_no_affine_variables_without_a_single_latch():
    _, loop, _, _ = analysed("""
define void @f(i1 %c) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ], [ %n, %other ]
  %n = add i64 %i, 1
  br i1 %c, label %loop, label %other
other:
  br label %loop
}
""")
    assert affine_variables(loop) == {}


def test_constant_offsets_agree_with_llvm():
    """LLVM folds each getelementptr of null to an integer."""
    struct = "{ i8, { i16, [3 x { i32, double }] }, <{ i8, i64 }> }"
    paths = ["i64 1", "i64 -2, i32 1", "i64 0, i32 1, i32 1, i64 2, i32 1", "i64 3, i32 2, i32 1"]
    for path in paths:
        text = f"define ptr @f(ptr %p) {{\n  %g = getelementptr {struct}, ptr %p, {path}\n  ret ptr %g\n}}\n"
        (function,) = parse_module(text).defined_functions()
        gep = function.entry.instructions[0]
        assert isinstance(gep, GetElementPtr)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        engine.finalize_object()
        address = CFUNCTYPE(c_uint64, c_uint64)(engine.get_function_address("f"))(1 << 32)
        assert constant_offset(gep) == address - (1 << 32)


def test_invariance():
    function, loop, _, _ = analysed(AFFINE)
    assert is_invariant(function.params[0], loop)
    assert not is_invariant(loop.header.instructions[0], loop)
    assert types.I64 is function.params[0].type
