from __future__ import annotations

import pytest

from irad.errors import UnsupportedError
from irad.ir.instructions import Alloca, Call, Load, Store
from irad.ir.values import ConstantNull
from irad.passes.callee_variants import callee_variant
from irad.passes.mode import AUGMENTED
from irad.passes.request import ParameterKind
from tests.passes.units import DOUBLES, POINTERS, generated, gradient, unit_of, value

DECLARE = "declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)\ndeclare void @NRT_decref(ptr)\n"

POINTERS_IN_MEMORY = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %i) {
entry:
  %d = alloca { ptr, i64 }
  %p = getelementptr double, ptr %a, i64 %i
  store ptr %p, ptr %d
  %size = getelementptr i8, ptr %d, i64 8
  store i64 %i, ptr %size
  %c = icmp sgt i64 %i, 0
  %s = select i1 %c, ptr %p, ptr %a
  br i1 %c, label %one, label %two
one:
  br label %two
two:
  %h = phi ptr [ %a, %entry ], [ %s, %one ]
  %q = load ptr, ptr %d
  %x = load double, ptr %q
  %y = load double, ptr %h
  %z = fmul double %x, %y
  store double %z, ptr %r
  ret i32 0
}
"""


def names(text: str, kinds: str = "scsc") -> set[str]:
    (made,) = generated(text, kinds, [DOUBLES, POINTERS, DOUBLES, None])
    return {i.name for i in made.pair[AUGMENTED].instructions() if i.name}


def test_every_pointer_with_a_shadow_gets_one_of_the_same_shape():
    found = names(POINTERS_IN_MEMORY)
    assert {"p.shadow", "s.shadow", "h.shadow", "q.shadow"} <= found
    assert "size.shadow" in found  # it points into an object with a shadow; unused code costs nothing
    assert not {"x.shadow", "i.shadow", "c.shadow"} & found


def test_shadow_pointers_travel_through_memory():
    assert gradient(POINTERS_IN_MEMORY, [2.0, 3.0, 5.0], 2) == [0.0, 0.0, 10.0]
    assert gradient(POINTERS_IN_MEMORY, [2.0, 3.0, 5.0], 0) == [4.0, 0.0, 0.0]


def test_stores_of_numbers_and_integers_have_no_shadow_store():
    (made,) = generated(POINTERS_IN_MEMORY, "scsc", [DOUBLES, POINTERS, DOUBLES, None])
    stores = [i for i in made.pair[AUGMENTED].instructions() if isinstance(i, Store)]
    shadow_stores = [s for s in stores if (s.operands[0].name or "").endswith(".shadow") and s.operands[1].name != "d"]
    pointers = [s.operands[0].name for s in shadow_stores]
    assert pointers.count("p.shadow") == 1  # beside the store of %p; the others are saves


def test_shadows_of_locals_live_in_the_frame():
    (made,) = generated(POINTERS_IN_MEMORY, "scsc", [DOUBLES, POINTERS, DOUBLES, None])
    assert [i.name for i in made.pair[AUGMENTED].instructions() if isinstance(i, Alloca)] == ["d"]
    assert made.pair.frame_size.initializer is not None
    assert made.pair.frame_size.initializer.value % 64 == 0


def test_a_local_made_in_a_loop_has_its_shadow_in_the_arena():
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %s = phi double [ 0.0, %entry ], [ %t, %loop ]
      %l = alloca double
      %p = getelementptr double, ptr %a, i64 %i
      %x = load double, ptr %p
      %xx = fmul double %x, %x
      store double %xx, ptr %l
      %y = load double, ptr %l
      %t = fadd double %s, %y
      %next = add i64 %i, 1
      %more = icmp slt i64 %next, %n
      br i1 %more, label %loop, label %end
    end:
      %out = phi double [ %t, %loop ]
      store double %out, ptr %r
      ret i32 0
    }"""
    assert gradient(text, [1.0, 2.0, 3.0], 3) == [2.0, 4.0, 6.0]


def test_a_constant_pointer_has_the_shadow_null():
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %i) {
      %d = alloca ptr
      %c = icmp sgt i64 %i, 0
      %s = select i1 %c, ptr %a, ptr null
      store ptr %s, ptr %d
      %q = load ptr, ptr %d
      %x = load double, ptr %q
      store double %x, ptr %r
      ret i32 0
    }"""
    (made,) = generated(text, "scsc", [DOUBLES, POINTERS, DOUBLES, None])
    select = value(made.pair[AUGMENTED], "s.shadow")
    assert isinstance(select.operands[2], ConstantNull)


def test_the_shadow_of_an_allocation_has_a_header_too():
    text = (
        DECLARE
        + """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %i) {
      %m = call ptr @NRT_MemInfo_alloc_aligned(i64 64, i32 32)
      %at = getelementptr i8, ptr %m, i64 24
      %d = load ptr, ptr %at
      %p = getelementptr double, ptr %d, i64 %i
      %x = load double, ptr %a
      %xx = fmul double %x, %x
      store double %xx, ptr %p
      %y = load double, ptr %p
      store double %y, ptr %r
      call void @NRT_decref(ptr %m)
      ret i32 0
    }"""
    )
    (made,) = generated(text, "scsc", [DOUBLES, POINTERS, DOUBLES, None])
    data = value(made.pair[AUGMENTED], "d.shadow")
    assert isinstance(data, Load)
    assert data.operands[0].name == "at.shadow"


CALL = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
  %x = load double, ptr %a
  %y = call double @square(double %x, double 3.0, ptr %a, i64 %n)
  store double %y, ptr %r
  ret i32 0
}
define internal double @square(double %x, double %k, ptr %a, i64 %n) {
  %p = getelementptr double, ptr %a, i64 %n
  %v = load double, ptr %p
  %m = fmul double %x, %v
  %z = fmul double %m, %k
  ret double %z
}
"""


def test_a_callee_is_wanted_in_the_variant_of_the_call():
    unit = unit_of(CALL, "scsc", [DOUBLES, POINTERS, DOUBLES, None])
    call = value(unit.function, "y")
    assert isinstance(call, Call)
    variant = callee_variant(unit, call, unit.module.functions["square"])
    assert variant is not None
    kinds = (ParameterKind.ACTIVE, ParameterKind.CONST, ParameterKind.SHADOW, ParameterKind.CONST)
    assert variant.kinds == kinds
    assert variant.memory == (None, None, DOUBLES, None)
    assert variant.result_active
    constant = unit_of(CALL, "cccc", [DOUBLES, POINTERS, DOUBLES, None])
    call = value(constant.function, "y")
    assert isinstance(call, Call)
    assert callee_variant(constant, call, constant.module.functions["square"]) is None


def test_a_callee_runs_augmented():
    assert gradient(CALL, [2.0, 5.0], 1) == [15.0, 6.0]
    assert gradient(CALL, [2.0, 5.0], 0) == [12.0, 0.0]


def test_a_pointer_that_cannot_be_followed():
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %i) {
      %n = ptrtoint ptr %a to i64
      %m = add i64 %n, 8
      %p = inttoptr i64 %m to ptr
      %x = load double, ptr %p
      store double %x, ptr %r
      ret i32 0
    }"""
    with pytest.raises(UnsupportedError, match="cannot follow a pointer"):
        generated(text, "scsc", [DOUBLES, POINTERS, DOUBLES, None])
