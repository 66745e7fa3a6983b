from __future__ import annotations

import pytest

from irad.errors import ActivityError, UnsupportedError
from irad.passes.analysis.summary import summarise
from irad.passes.derivative import analyse
from irad.passes.mode import AUGMENTED
from irad.passes.program import Program
from irad.passes.variant import Variant
from irad.ruleset.interface import PairRule
from irad.ruleset.registry import Registry
from tests.passes.units import (
    DOUBLES,
    INTEGERS,
    POINTERS,
    block,
    generated,
    parsed,
    registry,
    request_of,
    unit_of,
    value,
)


def active(text: str, kinds: str, memory=None, **options) -> set[str]:
    unit = unit_of(text, kinds, memory, **options)
    return {v.name for v in unit.activity.active if v.name}


def shadowed(text: str, kinds: str, memory=None, **options) -> set[str]:
    unit = unit_of(text, kinds, memory, **options)
    return {str(o) for o in unit.points_to.members(unit.activity.shadowed)}


STRAIGHT = """
define i32 @f(ptr noalias %r, double %x, double %k, ptr %a) {
  %varied = fmul double %x, %x
  %dead = fadd double %varied, 1.0
  %constant = fmul double %k, %k
  %used = fadd double %varied, %constant
  %n = fptosi double %used to i64
  %back = sitofp i64 %n to double
  %sum = fadd double %used, %back
  %test = fcmp olt double %dead, 0.0
  %out = select i1 %test, double %sum, double %k
  store double %out, ptr %r
  ret i32 0
}
"""


def test_active_is_varied_and_useful():
    assert active(STRAIGHT, "sacc") == {"x", "varied", "used", "sum", "out"}


@pytest.mark.parametrize(("result_active", "expected"), [(True, {"x", "y"}), (False, set())])
def test_what_a_function_returns_is_an_output_if_it_is_asked_for(result_active: bool, expected: set[str]):
    text = "define double @f(double %x) {\n  %y = fmul double %x, %x\n  ret double %y\n}"
    assert active(text, "a", entry=False, result_active=result_active) == expected


def test_without_a_seed_nothing_is_active():
    unit = unit_of(STRAIGHT, "cccc")
    assert not unit.activity.active
    assert not unit.activity.shadowed


def test_explanations():
    unit = unit_of(STRAIGHT, "sacc")

    def explain(name: str) -> str:
        return unit.activity.explain(value(unit.function, name))

    assert explain("varied") == "active: depends on an active input and reaches an active output"
    assert explain("constant") == "constant: no active input reaches it"
    assert explain("dead") == "constant: no output depends on it"
    assert explain("n") == "constant: its type holds no floating-point number"
    assert explain("r") == "has a shadow: may point to argument r"
    assert explain("a") == "constant: its type holds no floating-point number"


LOCALS = """
define i32 @f(ptr noalias %r, ptr %a, ptr %n) {
  %buffer = alloca double
  %counts = alloca i64
  %scratch = alloca double
  %i = load i64, ptr %n
  store i64 %i, ptr %counts
  %j = load i64, ptr %counts
  %p = getelementptr double, ptr %a, i64 %j
  %x = load double, ptr %p
  store double %x, ptr %buffer
  store double %x, ptr %scratch
  %y = load double, ptr %buffer
  store double %y, ptr %r
  ret i32 0
}
"""


def test_memory_is_active_object_by_object():
    memory = [DOUBLES, DOUBLES, INTEGERS]
    assert shadowed(LOCALS, "ssc", memory) == {"argument r", "argument a", "local buffer"}
    assert active(LOCALS, "ssc", memory) == {"x", "y"}


def test_constants_and_integers_cost_nothing():
    (made,) = generated(LOCALS, "ssc", [DOUBLES, DOUBLES, INTEGERS])
    text = "\n".join(str(i.name) for i in made.pair[AUGMENTED].instructions())
    assert "p.shadow" in text
    for constant in ("counts", "scratch", "i", "j", "n"):
        assert f"{constant}.shadow" not in text
    assert made.pair.shadows == (0, 1)


MERGED = """
define i32 @f(ptr noalias %r, ptr %a, ptr %b, i1 %c) {
  %p = select i1 %c, ptr %a, ptr %b
  %x = load double, ptr %p
  store double %x, ptr %r
  ret i32 0
}
"""


def test_constant_memory_that_merges_with_active_gets_a_shadow_for_company():
    unit = unit_of(MERGED, "sscc")
    b = unit.points_to.mask(value(unit.function, "b"))
    assert unit.activity.shadowed & b
    assert not unit.activity.active_objects & b
    (made,) = generated(MERGED, "sscc")
    assert made.pair.shadows == (0, 1, 2)


def test_no_company_where_the_caller_has_no_memory_for_it():
    # A parameter of a callee: only what comes with a shadow has one.
    with pytest.raises(UnsupportedError, match="whose origin irad cannot trace"):
        unit_of(MERGED, "sscc", entry=False)


def test_constant_memory_as_scratch_is_refused():
    text = """
    define i32 @f(ptr noalias %r, ptr %a, ptr %arg.work.0) {
      %x = load double, ptr %a
      store double %x, ptr %arg.work.0
      %y = load double, ptr %arg.work.0
      store double %y, ptr %r
      ret i32 0
    }"""
    with pytest.raises(ActivityError, match="memory of argument 'work', which was passed as constant"):
        unit_of(text, "ssc")
    assert "y" in active(text, "sss")


def test_constant_memory_that_is_only_written_is_refused_too():
    text = """
    define i32 @f(ptr noalias %r, ptr %a, ptr %log) {
      %x = load double, ptr %a
      store double %x, ptr %log
      store double %x, ptr %r
      ret i32 0
    }"""
    with pytest.raises(ActivityError, match="passed as constant"):
        unit_of(text, "ssc")
    assert shadowed(text, "sss") == {"argument r", "argument a", "argument log"}


def test_constant_memory_that_a_library_function_fills_is_refused():
    text = """
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define i32 @f(ptr noalias %r, ptr %a, ptr %log) {
      call void @llvm.memcpy.p0.p0.i64(ptr %log, ptr %a, i64 16, i1 false)
      %x = load double, ptr %log
      store double %x, ptr %r
      ret i32 0
    }"""
    with pytest.raises(ActivityError, match="passed as constant"):
        unit_of(text, "ssc")
    assert shadowed(text, "sss") == {"argument r", "argument a", "argument log"}


def test_a_descriptor_in_memory_has_a_shadow_because_it_holds_an_active_pointer():
    text = """
    define i32 @f(ptr noalias %r, ptr %a) {
      %d = alloca { ptr, i64 }
      %other = alloca { ptr, i64 }
      store ptr %a, ptr %d
      %p = load ptr, ptr %d
      %x = load double, ptr %p
      store double %x, ptr %r
      ret i32 0
    }"""
    assert shadowed(text, "ss") == {"argument r", "argument a", "local d"}


def test_allocations_of_both_kinds():
    text = """
    declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
    define i32 @f(ptr noalias %r, ptr %a) {
      %m = call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 32)
      %at = getelementptr i8, ptr %m, i64 24
      %d = load ptr, ptr %at
      %k = call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 32)
      %k.at = getelementptr i8, ptr %k, i64 24
      %k.d = load ptr, ptr %k.at
      store double 3.0, ptr %k.d
      %x = load double, ptr %a
      %three = load double, ptr %k.d
      %t = fmul double %x, %three
      store double %t, ptr %d
      %y = load double, ptr %d
      store double %y, ptr %r
      ret i32 0
    }"""
    assert shadowed(text, "ss") == {"argument r", "argument a", "header m", "allocation m"}
    assert active(text, "ss") == {"x", "t", "y"}


def test_loops_are_followed_to_the_end():
    text = """
    define i32 @f(ptr noalias %r, double %x, i1 %c) {
    entry:
      br label %loop
    loop:
      %a = phi double [ 0.0, %entry ], [ %b, %loop ]
      %b = phi double [ 0.0, %entry ], [ %x, %loop ]
      br i1 %c, label %loop, label %end
    end:
      %out = phi double [ %a, %loop ]
      store double %out, ptr %r
      ret i32 0
    }"""
    assert active(text, "sac") == {"x", "a", "b", "out"}
    assert active(text, "sac", plan="save_all") == {"x", "a", "b", "out"}


def test_rules_say_what_flows():
    text = """
    declare double @exp(double)
    declare double @ldexp(double, i32)
    declare double @llvm.floor.f64(double)
    define i32 @f(ptr noalias %r, double %x) {
      %e = call double @exp(double %x)
      %l = call double @ldexp(double %e, i32 2)
      %w = call double @llvm.floor.f64(double %x)
      %s = fadd double %l, %w
      store double %s, ptr %r
      ret i32 0
    }"""
    found = active(text, "sa")
    assert {"e", "l", "s"} <= found
    assert "w" not in found


def test_save_all_takes_every_float_and_all_memory():
    memory = [DOUBLES, DOUBLES, INTEGERS]
    assert active(LOCALS, "ssc", memory, plan="save_all") == {"x", "y"}
    names = shadowed(LOCALS, "ssc", memory, plan="save_all")
    assert {"local buffer", "local scratch"} <= names
    assert "local counts" not in names  # no float is ever in it
    unit = unit_of(STRAIGHT, "sacc", plan="save_all")
    assert {"dead", "constant", "k"} <= {v.name for v in unit.activity.active}


def test_an_error_exit_keeps_activity_but_is_not_reversed():
    text = """
    define i32 @f(ptr noalias %r, ptr %e, double %x) {
    entry:
      %bad = fcmp olt double %x, 0.0
      br i1 %bad, label %raise, label %fine
    raise:
      store ptr null, ptr %e
      br label %end
    fine:
      store double %x, ptr %r
      br label %end
    end:
      %status = phi i32 [ 1, %raise ], [ 0, %fine ]
      ret i32 %status
    }"""
    unit = unit_of(text, "sca", [DOUBLES, POINTERS, None])
    assert block(unit.function, "raise") not in unit.live
    assert unit.activity.is_active(value(unit.function, "x"))


RULED = """
define i32 @f(ptr noalias %r, ptr noalias %a, i64 %n) {{
  %out = alloca [2 x double]
  %status = call i32 @ruled(ptr %out, ptr %a)
  %x = load double, ptr {read}
  store double %x, ptr %r
  ret i32 0
}}
define i32 @ruled(ptr %out, ptr %a) {{
  %x = load double, ptr %a
  store double %x, ptr %out
  ret i32 0
}}
"""


@pytest.mark.parametrize(("read", "expected"), [("%out", True), ("%a", False)])
def test_a_call_with_a_rule_takes_part_if_what_it_writes_is_read(read: str, expected: bool):
    module, function = parsed(RULED.format(read=read))
    ruled = module.functions["ruled"]
    summarise(ruled, dict.fromkeys(ruled.params, DOUBLES), registry(), ruled.params[0])
    rules = Registry.of(PairRule(("ruled",), "ruled", 0)).overlaid_on(registry())
    request = request_of(function, "ssc")
    variant = Variant(function, request.kinds, request.memory, False, False, is_entry=True)
    unit = analyse(Program(module, rules, request), variant)
    call = value(function, "status")
    assert unit.activity.has_shadow(value(function, "a"))
    assert unit.activity.takes_part(call) is expected
