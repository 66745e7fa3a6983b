from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, Load, Store
from irad.ir.module import Module
from irad.passes.augmented.tape import FrameLayout, load_value, size_in_memory, store_value, stored_type
from irad.passes.mode import AUGMENTED, REVERSE
from tests.passes.units import DOUBLES, POINTERS, canonical, generated, gradient

DECLARE = "declare double @exp(double)\ndeclare float @expf(float)\n"


def test_regions_of_a_frame_are_aligned_and_apart():
    layout = FrameLayout()
    asked = [(8, 8), (1, 1), (16, 8), (4, 4), (2, 2), (8, 8)]
    offsets = [layout.region(size, align) for size, align in asked]
    assert offsets == [0, 8, 16, 32, 36, 40]
    assert layout.size == 48


@pytest.mark.parametrize(("bits", "stored"), [(1, 8), (8, 8), (12, 16), (24, 24), (33, 40), (64, 64)])
def test_odd_integers_are_widened(bits, stored):
    assert stored_type(types.int_type(bits)) is types.int_type(stored)


def test_what_is_saved_is_frozen_and_comes_back_with_its_type():
    function = Module().define("f", types.function_type(types.I1, [types.I1, types.PTR]), ["x", "p"])
    build = Builder(function.add_block("entry"))
    x, p = function.params
    store_value(build, x, p, {})
    build.ret(load_value(build, types.I1, p, "again", {}))
    kinds = [type(i).__name__ for i in function.instructions()]
    assert kinds == ["Freeze", "Cast", "Store", "Load", "Cast", "Ret"]
    assert size_in_memory(types.I1) == 1


def allocations(text: str, name: str, **options) -> Iterator[Call]:
    pair = generated(text, "scs" + "c" * text.split("ptr %a", 1)[1].split(")", 1)[0].count("i64"),
                     None, **options)[0].pair  # fmt: skip
    for inst in pair[AUGMENTED].instructions():
        if isinstance(inst, Call) and getattr(inst.callee, "name", None) == name:
            yield inst


COUNTED = (
    DECLARE
    + """
define i32 @f(ptr noalias %r, ptr noalias %x, ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 1.0, %entry ], [ %t, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %v = load double, ptr %p
  %e = call double @exp(double %v)
  %narrow = fptrunc double %s to float
  %ef = call float @expf(float %narrow)
  %wide = fpext float %ef to double
  %t = fadd double %wide, %e
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %out = phi double [ %t, %loop ]
  store double %out, ptr %r
  ret i32 0
}
"""
)


def counted(a: list[float]) -> list[float]:
    """The gradient of `COUNTED` by hand, in double precision."""
    s, chain = 1.0, []
    for v in a:
        chain.append(math.exp(s))
        s = math.exp(s) + math.exp(v)
    factor, found = 1.0, []
    for v, e in zip(reversed(a), reversed(chain), strict=True):
        found.append(factor * math.exp(v))
        factor *= e
    return found[::-1]


def test_a_counted_loop_has_one_slab_of_all_its_values():
    (slab,) = allocations(COUNTED, "irad.arena_alloc_product")
    assert slab.arguments[1].name == "iterations"
    assert slab.arguments[2].value == 8 + 4  # e and ef; the wide one first
    assert not list(allocations(COUNTED, "irad.arena_alloc"))


def test_values_of_different_width_in_one_slab():
    a = [-3.0, -2.5, -2.0]
    assert gradient(COUNTED, a, 3) == pytest.approx(counted(a), rel=1e-5)  # float32 in the chain


def test_a_loop_of_one_turn():
    assert gradient(COUNTED, [-1.0], 1) == pytest.approx([math.exp(-1.0)], rel=1e-12)


RAGGED = (
    DECLARE
    + """
define i32 @f(ptr noalias %r, ptr noalias %x, ptr %a, i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %s = phi double [ 0.0, %entry ], [ %s.next, %latch ]
  %some = icmp sgt i64 %i, 0
  br i1 %some, label %before, label %latch
before:
  br label %inner
inner:
  %j = phi i64 [ 0, %before ], [ %j.next, %inner ]
  %u = phi double [ %s, %before ], [ %t, %inner ]
  %p = getelementptr double, ptr %a, i64 %j
  %v = load double, ptr %p
  %m = fmul double %v, %u
  %e = call double @exp(double %m)
  %t = fadd double %u, %e
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, %i
  br i1 %more, label %inner, label %after
after:
  %u.out = phi double [ %t, %inner ]
  br label %latch
latch:
  %s.next = phi double [ %s, %outer ], [ %u.out, %after ]
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %outer, label %end
end:
  %out = phi double [ %s.next, %latch ]
  store double %out, ptr %r
  ret i32 0
}
"""
)


def ragged(a: list[float], n: int) -> float:
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += math.exp(a[j] * s)
    return s


def slopes(f, a: list[float]) -> list[float]:
    """Central differences."""
    h = 1e-6
    return [(f([*a[:i], a[i] + h, *a[i + 1 :]]) - f([*a[:i], a[i] - h, *a[i + 1 :]])) / (2 * h) for i in range(len(a))]


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_a_ragged_nest(plan):
    a = [0.1, -0.2, 0.3, 0.05]
    assert gradient(RAGGED, a, 5, plan=plan) == pytest.approx(slopes(lambda v: ragged(v, 5), a), rel=1e-8, abs=1e-7)


def test_the_slab_of_an_inner_loop_is_saved_by_the_outer_one():
    plan = generated(RAGGED, "scsc", [DOUBLES, POINTERS, DOUBLES, None])[0].plan
    assert len(list(allocations(RAGGED, "irad.arena_alloc_product"))) == 2
    assert all("slab" not in (v.name or "") for v in plan.saved)  # storage asks for itself, later than the plan


WHILE = (
    DECLARE
    + """
define i32 @f(ptr noalias %r, ptr noalias %x, ptr %a) {
entry:
  %v = load double, ptr %a
  br label %loop
loop:
  %s = phi double [ %v, %entry ], [ %t, %loop ]
  %e = call double @exp(double %s)
  %t = fmul double %e, 0.5
  %more = fcmp olt double %t, 10.0
  br i1 %more, label %loop, label %end
end:
  %out = phi double [ %t, %loop ]
  store double %out, ptr %r
  ret i32 0
}
"""
)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_a_while_loop_keeps_records(plan):
    s, factor = 1.0, 1.0
    while True:
        s = math.exp(s) * 0.5
        factor *= s
        if not s < 10.0:
            break
    assert gradient(WHILE, [1.0], plan=plan) == pytest.approx([factor], rel=1e-12)
    assert next(c.arguments[1].value for c in allocations(WHILE, "irad.arena_alloc", plan=plan)) >= 16
    assert not list(allocations(WHILE, "irad.arena_alloc_product", plan=plan))


def test_many_records():
    text = WHILE.replace("fmul double %e, 0.5", "fadd double %s, 1.0e-3")  # 9001 iterations
    assert gradient(text, [1.0]) == pytest.approx([1.0], rel=1e-12)


def test_saves_and_reloads_are_of_the_tape_only():
    pair = generated(COUNTED, "scsc", [DOUBLES, POINTERS, DOUBLES, None])[0].pair
    saves = [i for i in pair[AUGMENTED].instructions() if isinstance(i, Store) and i.operands[0].name is None]
    reloads = [i for i in pair[REVERSE].instructions() if isinstance(i, Load) and i.name == "e"]
    assert saves
    assert reloads
    assert all("alias.scope" in i.metadata for i in reloads)


def test_the_text_is_llvm():
    for text in (COUNTED, RAGGED, WHILE):
        assert canonical(text)
