from __future__ import annotations

import ctypes
import math

import pytest

from irad.ir.instructions import Phi, Switch
from irad.passes.augmented.tape import size_in_memory
from irad.passes.mode import AUGMENTED, REVERSE
from tests.passes.units import DOUBLES, POINTERS, doubles, generated, gradient, pointer, running

PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])

BRANCH = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  %x = load double, ptr %a
  %first = icmp eq i64 %n, 0
  br i1 %first, label %one, label %other
one:
  %u = fmul double %x, 2.0
  br label %join
other:
  %second = icmp eq i64 %n, 1
  br i1 %second, label %two, label %three
two:
  %v = fmul double %x, %x
  br label %join
three:
  br label %join
join:
  %z = phi double [ %u, %one ], [ %v, %two ], [ 7.0, %three ]
  store double %z, ptr %r
  ret i32 0
}
"""


@PLANS
@pytest.mark.parametrize(("n", "slope"), [(0, 2.0), (1, 6.0), (2, 0.0)])
def test_the_way_that_was_taken(n, slope, plan):
    assert gradient(BRANCH, [3.0], n, plan=plan) == [slope]


def test_several_predecessors_are_numbered():
    (made,) = generated(BRANCH, "scsc")
    origins = [i for i in made.pair[AUGMENTED].instructions() if isinstance(i, Phi) and i.name == "from"]
    assert [len(phi.operands) for phi in origins] == [3]
    switches = [i for i in made.pair[REVERSE].instructions() if isinstance(i, Switch)]
    assert len(switches) == 1


IDLE = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  %x = load double, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %k = phi i64 [ 1, %entry ], [ %k.next, %latch ]
  %odd = trunc i64 %k to i1
  br i1 %odd, label %odds, label %latch
odds:
  %m = mul i64 %k, 3
  br label %latch
latch:
  %k.next = phi i64 [ %k, %loop ], [ %m, %odds ]
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %power = phi i64 [ %k.next, %latch ]
  %w = sitofp i64 %power to double
  %z = fmul double %w, %x
  store double %z, ptr %r
  ret i32 0
}
"""


def test_what_is_idle_is_stepped_over():
    assert gradient(IDLE, [2.0], 3) == [27.0]
    (made,) = generated(IDLE, "scsc")
    assert not any("loop" in (b.name or "") or "odds" in (b.name or "") for b in made.pair[REVERSE].blocks)
    assert not any(i.name in ("from", "iteration") for i in made.pair[AUGMENTED].instructions())


EXITS = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %s = phi double [ 1.0, %entry ], [ %t, %latch ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  %t = fmul double %s, %x
  %large = fcmp ogt double %t, 100.0
  br i1 %large, label %break, label %latch
latch:
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %done
break:
  %b = phi double [ %t, %loop ]
  %twice = fmul double %b, 2.0
  br label %end
done:
  %d = phi double [ %t, %latch ]
  br label %end
end:
  %z = phi double [ %twice, %break ], [ %d, %done ]
  store double %z, ptr %r
  ret i32 0
}
"""


@PLANS
@pytest.mark.parametrize(
    ("a", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 60.0, 4.0], [120.0, 4.0, 0.0]),  # left after two iterations, doubled
        ([200.0, 3.0, 4.0], [2.0, 0.0, 0.0]),
    ],
)
def test_a_loop_with_two_exits(a, expected, plan):
    assert gradient(EXITS, a, 3, plan=plan) == expected


RAISES = EXITS.replace("%twice = fmul double %b, 2.0", "").replace(
    "%z = phi double [ %twice, %break ], [ %d, %done ]\n  store double %z, ptr %r\n  ret i32 0",
    "%status = phi i32 [ 1, %break ], [ 0, %done ]\n  ret i32 %status",
).replace("done:\n  %d = phi double [ %t, %latch ]\n", "done:\n  %d = phi double [ %t, %latch ]\n"
          "  store double %d, ptr %r\n")  # fmt: skip


def test_an_exit_that_raises_is_not_reversed():
    assert gradient(RAISES, [2.0, 3.0, 4.0], 3) == [12.0, 8.0, 6.0]
    with pytest.raises(ArithmeticError):
        gradient(RAISES, [200.0, 3.0, 4.0], 3)
    (made,) = generated(RAISES, "scsc")
    assert not any("break" in (b.name or "") for b in made.pair[REVERSE].blocks)
    # one live exit, counted: the number of iterations is known before the loop, so nothing counts in it
    assert not any(i.name == "iteration" and len(i.users) == 1 for i in made.pair[AUGMENTED].instructions())


NEST = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.latch ]
  %s = phi double [ 0.0, %entry ], [ %w.out, %outer.latch ]
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %w = phi double [ %s, %outer ], [ %t, %inner ]
  %p = getelementptr double, ptr %a, i64 %j
  %x = load double, ptr %p
  %m = fmul double %w, %w
  %t = fadd double %m, %x
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %n
  br i1 %j.more, label %inner, label %outer.latch
outer.latch:
  %w.out = phi double [ %t, %inner ]
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, 2
  br i1 %i.more, label %outer, label %end
end:
  %z = phi double [ %w.out, %outer.latch ]
  store double %z, ptr %r
  ret i32 0
}
"""


@PLANS
def test_a_nest_that_carries_a_number_through(plan):
    def f(a: list[float]) -> float:
        w = 0.0
        for _ in range(2):
            for x in a:
                w = w * w + x
        return w

    a, h = [0.3, -0.4, 0.2], 1e-6
    slopes = [(f([*a[:i], a[i] + h, *a[i + 1 :]]) - f([*a[:i], a[i] - h, *a[i + 1 :]])) / (2 * h) for i in range(3)]
    assert gradient(NEST, a, 3, plan=plan) == pytest.approx(slopes, abs=1e-9)


@PLANS
def test_phis_that_swap(plan):
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
    entry:
      %b = getelementptr double, ptr %a, i64 1
      %x = load double, ptr %a
      %y = load double, ptr %b
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %u = phi double [ %x, %entry ], [ %v, %loop ]
      %v = phi double [ %y, %entry ], [ %u, %loop ]
      %next = add i64 %i, 1
      %more = icmp slt i64 %next, %n
      br i1 %more, label %loop, label %end
    end:
      %z = phi double [ %u, %loop ]
      store double %z, ptr %r
      ret i32 0
    }"""
    assert gradient(text, [2.0, 3.0], 1, plan=plan) == [1.0, 0.0]
    assert gradient(text, [2.0, 3.0], 2, plan=plan) == [0.0, 1.0]
    assert gradient(text, [2.0, 3.0], 7, plan=plan) == [1.0, 0.0]


@PLANS
def test_the_return_need_not_be_the_last_block_in_any_order(plan):
    """The header's exit comes first among its targets, so in reverse postorder the body comes after the return."""
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
    entry:
      br label %header
    header:
      %i = phi i64 [ 0, %entry ], [ %next, %body ]
      %s = phi double [ 1.0, %entry ], [ %t, %body ]
      %done = icmp sge i64 %i, %n
      br i1 %done, label %exit, label %body
    exit:
      %z = phi double [ %s, %header ]
      store double %z, ptr %r
      ret i32 0
    body:
      %p = getelementptr double, ptr %a, i64 %i
      %x = load double, ptr %p
      %t = fmul double %s, %x
      %next = add i64 %i, 1
      br label %header
    }"""
    assert gradient(text, [2.0, 3.0, 5.0], 3, plan=plan) == [15.0, 10.0, 6.0]
    assert gradient(text, [2.0, 3.0, 5.0], 0, plan=plan) == [0.0, 0.0, 0.0]


INVARIANT = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  %same = icmp sgt i64 %n, 2
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %latch ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  br i1 %same, label %square, label %latch
square:
  %s = fmul double %x, %x
  br label %latch
latch:
  %v = phi double [ %x, %loop ], [ %s, %square ]
  %sum.next = fadd double %sum, %v
  %i.next = add nuw i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  store double %sum.next, ptr %r
  ret i32 0
}
"""


@PLANS
@pytest.mark.parametrize(("point", "slopes"), [((3.0, 4.0), [1.0, 1.0]), ((3.0, 4.0, 5.0), [6.0, 8.0, 10.0])])
def test_a_branch_that_all_iterations_take_alike(point, slopes, plan):
    assert gradient(INVARIANT, point, len(point), plan=plan) == slopes


@pytest.mark.parametrize(("condition", "bytes_saved"), [("%same", 0), ("%other", 1)])
def test_of_a_branch_that_all_iterations_take_alike_nothing_is_saved(condition, bytes_saved):
    text = INVARIANT.replace("br i1 %same", f"%other = fcmp ogt double %x, 1.0\n  br i1 {condition}")
    (made,) = generated(text, "scsc")
    (loop,) = made.unit.loops.loops
    slab = made.storage.storages.get(loop)
    assert sum(size_in_memory(each.type) for each in (slab.values if slab else ())) == bytes_saved


CONDITIONAL = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n, i64 %m, i64 %asked) {{
entry:
  %inside = icmp {predicate} i64 %asked, 0
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %s = phi double [ 1.0, %entry ], [ %t, %latch ]
  br i1 %inside, label {ways}
before:
  br label %inner
inner:
  %j = phi i64 [ 0, %before ], [ %j.next, %inner ]
  %u = phi double [ %s, %before ], [ %v, %inner ]
  %p = getelementptr double, ptr %a, i64 %j
  %x = load double, ptr %p
  %ux = fmul double %u, %x
  %v = fadd double %ux, %u
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %m
  br i1 %j.more, label %inner, label %behind
behind:
  br label %latch
latch:
  %t = phi double [ %s, %outer ], [ %v, %behind ]
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %outer, label %end
end:
  %q = getelementptr double, ptr %a, i64 %asked
  store double 0.0, ptr %q
  store double %t, ptr %r
  ret i32 0
}}
"""


@pytest.mark.parametrize(("predicate", "ways"), [("ne", "%before, label %latch"), ("eq", "%latch, label %before")])
def test_an_inner_loop_that_all_iterations_enter_or_none(predicate: str, ways: str):
    """Its loads are saved once for all iterations; where it is not entered, its bound means nothing."""
    text, memory = CONDITIONAL.format(predicate=predicate, ways=ways), [DOUBLES, POINTERS, DOUBLES, None, None, None]
    made, x = running(text, "scsccc", memory), (0.25, 1.5)
    for n, m, asked in ((3, 2, 1), (2, 1, 1), (2, -(1 << 60), 0), (1, 1 << 60, 0)):
        result, seed, a, shadow = doubles(0.0), doubles(0.0), doubles(*x), doubles(0.0, 0.0)
        numbers = map(ctypes.c_int64, (n, m, asked))
        given = pointer(result), ctypes.c_void_p(0), pointer(a), *numbers, pointer(seed), pointer(shadow)
        assert made.augmented(*given) == 0
        seed[0] = 1.0
        made.reverse()
        read = x[:m] if asked else ()
        value = math.prod(1 + each for each in read) ** n
        assert result[0] == pytest.approx(value)
        assert list(shadow) == pytest.approx([n * value / (1 + each) for each in read] + [0.0] * (2 - len(read)))
    made.close()
