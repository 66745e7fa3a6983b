"""Reverse mode in several directions: what the lanes of a sweep share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irad.ir.instructions import Call, Load, Store
from irad.ir.module import Function
from irad.ir.types import DOUBLE, PTR, VOID, function_type
from irad.passes.mode import AUGMENTED, REVERSE, REVERSE_MODE, forward_mode, reverse_mode
from tests.passes.units import DOUBLES, POINTERS, derivative

SINE = """
declare double @llvm.sin.f64(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %x = load double, ptr %a
  %s = call double @llvm.sin.f64(double %x)
  store double %s, ptr %r
  ret i32 0
}
"""

PRODUCT = """
declare i32 @numba_xxdot(i8, i8, i64, ptr, ptr, ptr)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr %b) {
  %s = call i32 @numba_xxdot(i8 100, i8 0, i64 2, ptr %a, ptr %b, ptr %r)
  store double 0.0, ptr %a
  ret i32 0
}
"""

CALLEE = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %x = load double, ptr %a
  %y = call double @g(double %x, ptr %a)
  store double %y, ptr %r
  ret i32 0
}
define internal double @g(double %x, ptr %a) noinline {
  %b = load double, ptr %a
  %y = fmul double %x, %b
  ret double %y
}
"""


def called(function: Function) -> Iterator[str]:
    for inst in function.instructions():
        if isinstance(inst, Call) and isinstance(inst.callee, Function):
            yield str(inst.callee.name)


def test_slopes_and_what_is_loaded_again_are_shared():
    made = derivative(SINE, "scs", [DOUBLES, POINTERS, DOUBLES], mode=reverse_mode(3)).pairs[0].pair
    assert [name for name in called(made[REVERSE]) if "f64" in name] == ["llvm.cos.f64"]
    assert sum(isinstance(inst, Store) for inst in made[REVERSE].instructions()) == 3 * 2  # of result and argument
    assert len(made.first.params) == 2 + 3 + 3 * 2


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_what_a_rule_keeps_is_kept_once(plan):
    kinds, memory = "scss", [DOUBLES, POINTERS, DOUBLES, DOUBLES]
    one, several = (
        derivative(PRODUCT, kinds, memory, mode=mode, plan=plan).pairs[0].pair
        for mode in (REVERSE_MODE, reverse_mode(4))
    )
    kept = [name for name in called(one[AUGMENTED]) if "memcpy" in name or "alloc" in name]
    assert kept
    assert [name for name in called(several[AUGMENTED]) if "memcpy" in name or "alloc" in name] == kept


def test_callees_get_the_shadows_and_cotangents_of_all_lanes():
    entry, callee = derivative(CALLEE, "scs", [DOUBLES, POINTERS, DOUBLES], mode=reverse_mode(2)).pairs
    augmented, reverse = callee.pair[AUGMENTED], callee.pair[REVERSE]
    assert augmented.function_type is function_type(DOUBLE, [PTR, PTR, DOUBLE, PTR, PTR, PTR])
    assert reverse.function_type is function_type(VOID, [PTR, PTR, DOUBLE, DOUBLE, PTR, PTR])
    calls = list(called(entry.pair[AUGMENTED])), list(called(entry.pair[REVERSE]))
    assert (calls[0].count(augmented.name), calls[1].count(reverse.name)) == (1, 1)
    loads = [inst for inst in augmented.instructions() if isinstance(inst, Load)]
    assert [str(inst.type) for inst in loads] == ["double"]


def test_modes_are_told_apart_by_their_width():
    assert reverse_mode(1) is REVERSE_MODE
    assert reverse_mode(2) == reverse_mode(2) != reverse_mode(3) != forward_mode(3)
    assert reverse_mode(2)[REVERSE] == REVERSE
