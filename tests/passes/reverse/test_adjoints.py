from __future__ import annotations

import math

import numpy as np
import pytest

from irad.ir.instructions import Binary, Select
from irad.ir.values import ConstantFloat
from irad.passes.mode import REVERSE
from tests.passes.units import generated, gradient, straight

CASES = {
    "fadd": ("%z = fadd double %x, %y", (1.0, 1.0)),
    "fsub": ("%z = fsub double %x, %y", (1.0, -1.0)),
    "fmul": ("%z = fmul double %x, %y", (5.0, 3.0)),
    "square": ("%z = fmul double %x, %x", (6.0, 0.0)),
    "fdiv": ("%z = fdiv double %x, %y", (0.2, -3.0 / 25.0)),
    "frem": ("%z = frem double %y, %x", (-1.0, 1.0)),  # 5 = 1·3 + 2
    "fneg": ("%z = fneg double %x", (-1.0, 0.0)),
    "select": ("%c = fcmp olt double %x, %y\n%z = select i1 %c, double %y, double %x", (0.0, 1.0)),
    "freeze": ("%z = freeze double %x", (1.0, 0.0)),
    "fptrunc and fpext": ("%s = fptrunc double %x to float\n%z = fpext float %s to double", (1.0, 0.0)),
    "from an integer": ("%n = fptosi double %x to i64\n%z = sitofp i64 %n to double", (0.0, 0.0)),
    "aggregate": (
        "%g = insertvalue { double, double } zeroinitializer, double %x, 0\n"
        "%h = insertvalue { double, double } %g, double %y, 1\n"
        "%u = extractvalue { double, double } %h, 0\n%v = extractvalue { double, double } %h, 1\n"
        "%z = fmul double %u, %v",
        (5.0, 3.0),
    ),
    "overwritten in an aggregate": (
        "%g = insertvalue { double, double } zeroinitializer, double %x, 0\n"
        "%h = insertvalue { double, double } %g, double %y, 0\n%z = extractvalue { double, double } %h, 0",
        (0.0, 1.0),
    ),
    "vector": (
        "%g = insertelement <2 x double> zeroinitializer, double %x, i32 0\n"
        "%h = insertelement <2 x double> %g, double %y, i32 1\n"
        "%m = fmul <2 x double> %h, %h\n"
        "%u = extractelement <2 x double> %m, i32 0\n%v = extractelement <2 x double> %m, i32 1\n"
        "%z = fadd double %u, %v",
        (6.0, 10.0),
    ),
    "memory": (
        "%l = alloca double\nstore double %x, ptr %l\n%u = load double, ptr %l\n"
        "store double %y, ptr %l\n%v = load double, ptr %l\n%z = fmul double %u, %v",
        (5.0, 3.0),
    ),
    "a constant overwrites": (
        "%l = alloca double\nstore double %x, ptr %l\nstore double 7.0, ptr %l\n"
        "%u = load double, ptr %l\n%z = fmul double %u, %y",
        (0.0, 7.0),
    ),
    "swap in place": (
        "store double %y, ptr %a\nstore double %x, ptr %b\n%u = load double, ptr %a\n%z = fmul double %u, %u",
        (0.0, 10.0),
    ),
    "elementwise rule": ("%z = call double @exp(double %x)", (math.exp(3.0), 0.0)),
}


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize("name", CASES)
def test_adjoint(name, plan):
    body, expected = CASES[name]
    assert gradient(straight(body), [3.0, 5.0], plan=plan) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("body", "point", "expected"),
    [
        # The untaken way of a select has partial 1/0.
        ("%d = fdiv double 1.0, %x\n%c = fcmp one double %x, 0.0\n%z = select i1 %c, double %d, double %y", (0.0, 2.0),
         (0.0, 1.0)),
        # 0·x with an infinite x: the cotangent of %x is zero times nothing, that of the product is not zero.
        ("%m = fmul double %x, 0.0\n%q = fmul double %m, 0.0\n%z = fadd double %q, %y", (math.inf, 1.0), (0.0, 1.0)),
        # exp overflows on the way not taken.
        ("%d = call double @exp(double %x)\n%m = fmul double %d, %d\n%c = fcmp olt double %x, 100.0\n"
         "%z = select i1 %c, double %m, double %y", (800.0, 1.0), (0.0, 1.0)),
    ],
)  # fmt: skip
def test_zero_times_anything_is_zero(body, point, expected):
    assert gradient(straight(body), list(point)) == list(expected)


def test_sums_may_be_reordered_unless_strict():
    def flags(**options) -> set[tuple[str, ...]]:
        body = "%u = fmul double %x, %x\n%v = fmul double %x, %y\n%z = fadd double %u, %v"
        (made,) = generated(straight(body), "scs", **options)
        return {i.flags for i in made.pair[REVERSE].instructions() if isinstance(i, Binary) and i.opcode == "fadd"}

    assert flags() == {("reassoc",)}
    assert flags(strict=True) == {()}


def test_a_square_takes_one_product():
    body = "%u = fmul double %x, %x\n%v = fmul double %y, %y\n%z = fadd double %u, %v"
    (made,) = generated(straight(body), "scs")
    products = [i for i in made.pair[REVERSE].instructions() if getattr(i, "opcode", "") == "fmul"]
    assert len(products) == 2
    assert gradient(straight(body), [3.0, -math.inf]) == [6.0, -math.inf]


def test_flags_of_the_primal_are_not_carried_over():
    (made,) = generated(straight("%z = fmul nnan ninf double %x, %y"), "scs")
    products = [i for i in made.pair[REVERSE].instructions() if getattr(i, "opcode", "") == "fmul"]
    assert products
    assert all(i.flags == () for i in products)


def test_guards_of_zero_cotangents_are_rarely_taken():
    """Told so, LLVM makes branches of those that are not vectorised; one node serves all."""
    made = generated(straight("%p = fmul double %x, %y\n%z = fdiv double %p, %y"), "scs")[0]
    guards = [inst for inst in made.pair[REVERSE].instructions() if isinstance(inst, Select)]
    assert len(guards) > 2
    [node] = {inst.metadata["prof"] for inst in guards}
    module = made.unit.module
    assert module.metadata[int(node[1:])].text == '!{!"branch_weights", i32 1, i32 1000000}'


@pytest.mark.parametrize(
    ("options", "shares"),
    [({}, True), ({"strict": True}, False), ({"watches": True}, False), ({"plan": "save_all"}, False)],
)
def test_cotangents_are_multiplied_by_a_reciprocal_unless_strict(options: dict[str, object], shares: bool):
    """LLVM makes one of all that are the same."""
    (made,) = generated(
        straight("%p = fdiv double %y, %x\n%q = fdiv double %p, %x\n%z = fmul double %q, %q"), "scs", **options
    )
    divisions = [i for i in made.pair[REVERSE].instructions() if isinstance(i, Binary) and i.opcode == "fdiv"]
    of_cotangents = [each for each in divisions if each.name is None]  # others are those of the primal, again
    assert len(of_cotangents) == 2
    assert all(isinstance(each.operands[0], ConstantFloat) == shares for each in of_cotangents)


def test_small_squares_in_single_precision_are_divided_by():
    """Their reciprocal is infinite; the quotient is not."""
    x = "%s = fptrunc double %x to float\n%t = fptrunc double %y to float\n%q = fdiv float %t, %s"
    tiny = float(np.float32(1e-40))
    found = gradient(straight(f"{x}\n%w = fpext float %q to double\n%z = fmul double %w, 1.0e-4"), (tiny, tiny))
    assert found[1] == pytest.approx(1e-4 / tiny, rel=1e-6)
    assert found[0] == pytest.approx(-1e-4 / tiny, rel=1e-6)
