"""Which loops may raise for a division by zero at their end."""

from __future__ import annotations

import numba
import pytest

import irad
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.loops import loop_nest
from irad.ir.module import Function
from irad.ir.verifier import verify
from irad.passes.analysis.liveness import live_blocks
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.prepare.deferred_checks import postpone_checks_of_a_loop
from tests.passes.units import DOUBLES, parsed, registry

HEAD = """declare ptr @malloc(i64)
declare double @unknown(ptr)
declare double @exp(double)
@stash = global ptr null
define i32 @f(ptr noalias %r, ptr noalias %error, ptr %a, ptr %k, i64 %n) {
entry:
  %own = call ptr @malloc(i64 80)
  BEFORE
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %rest ]
  %sum = phi double [ 0.0, %entry ], [ %more.sum, %rest ]
  %p = getelementptr double, ptr %a, i64 %i
  %d = load double, ptr %p
  %zero = fcmp oeq double %d, 0.0
  CHECK
raise:
  STORE
  ret i32 1
rest:
  %q = fdiv double 1.0, %d
  BODY
  %more.sum = fadd double %sum, %q
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %total = phi double [ %more.sum, %rest ]
  store double %total, ptr %r
  ret i32 0
}"""
CHECK = "br i1 %zero, label %raise, label %rest"
STORE = "store ptr null, ptr %error"


def is_postponed(body: str = "", check: str = CHECK, store: str = STORE, before: str = "") -> bool:
    text = HEAD.replace("BODY", body).replace("CHECK", check).replace("STORE", store).replace("BEFORE", before)
    module, function = parsed(text)
    memory = {p: DOUBLES if str(p.type) == "ptr" else None for p in function.params}
    cfg = control_flow(function)
    tree = dominators(cfg)
    mod_ref = ModRef(find_objects(function, memory, registry()), registry())
    loops = loop_nest(cfg, tree).loops
    changed = postpone_checks_of_a_loop(cfg, tree, loops, live_blocks(cfg, (0,)), mod_ref, function.params[0])
    verify(module)
    assert changed == (_exits(function) == 1)
    return changed


def _exits(function: Function) -> int:
    cfg = control_flow(function)
    (loop,) = loop_nest(cfg, dominators(cfg)).loops
    return len(loop.exits)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "%e = call double @exp(double %q)",
        "%o = getelementptr double, ptr %own, i64 %i\n  store double %q, ptr %o",
        "%twice = mul i64 %i, 2\n  %o = getelementptr double, ptr %a, i64 %twice\n  %w = load double, ptr %o",
        "%h = sdiv i64 %i, 2",
    ],
)
def test_nobody_sees_that_the_loop_went_on(body: str) -> None:
    assert is_postponed(body)


@pytest.mark.parametrize(
    "body",
    [
        "store double %q, ptr %p",
        "store double %q, ptr %r",
        "%e = call double @unknown(ptr %own)",
        "%c = fptosi double %q to i64\n  %o = getelementptr double, ptr %a, i64 %c\n  %w = load double, ptr %o",
        "%o = getelementptr i64, ptr %k, i64 %i\n  %c = load i64, ptr %o\n"
        "  %t = getelementptr double, ptr %a, i64 %c\n  %w = load double, ptr %t",
        "%h = sdiv i64 100, %i",
        "%w = load volatile double, ptr %p",
        "%w = fadd nnan double %q, 1.0",
    ],
)
def test_it_would_be_seen_or_fail(body: str) -> None:
    assert not is_postponed(body)


def test_memory_that_others_know_of_is_seen() -> None:
    body = "%o = getelementptr double, ptr %own, i64 %i\n  store double %q, ptr %o"
    assert is_postponed(body)
    assert not is_postponed(body, before="store ptr %own, ptr @stash")
    assert not is_postponed(body, before="store ptr %own, ptr %k")
    assert not is_postponed(body, before="%u = call double @unknown(ptr %own)")
    assert is_postponed(body, before="store ptr %own, ptr %r")


def test_conditions() -> None:
    both = "%w = load double, ptr %k\n  %none = fcmp oeq double %w, 0.0\n  "
    assert is_postponed(
        "%x = fdiv double 1.0, %w", f"{both}%c = or i1 %zero, %none\n  br i1 %c, label %raise, label %rest"
    )
    assert is_postponed(
        "%x = fdiv double 1.0, %w",
        f"{both}%c = select i1 %zero, i1 true, i1 %none\n  br i1 %c, label %raise, label %rest",
    )
    assert is_postponed("", "%c = fcmp une double %d, 0.0\n  br i1 %c, label %rest, label %raise")
    assert not is_postponed("", f"{both}%c = or i1 %zero, %none\n  br i1 %c, label %raise, label %rest")
    assert not is_postponed("", "%c = fcmp olt double %d, 1.0\n  br i1 %c, label %raise, label %rest")
    assert not is_postponed("", "%c = icmp sgt i64 %i, 7\n  br i1 %c, label %raise, label %rest")


def test_what_raises_may_not_compute() -> None:
    assert not is_postponed(store="%u = call double @unknown(ptr %a)\n  store ptr null, ptr %error")


@numba.njit
def two_loops(x, n):
    """The first loop ends where the second begins."""
    s, t = 0.5, x
    for _ in range(n):
        t -= 1.0 / s
        t, s = s, t
    for _ in range(n):
        t -= 1.0 / s
        t, s = s, t
    return s


def test_loops_one_after_the_other() -> None:
    found = irad.grad(two_loops)(3.0, 3)
    assert found == irad.grad(two_loops, options=irad.Options(plan="save_all"))(3.0, 3)
    with pytest.raises(ZeroDivisionError):
        irad.grad(two_loops)(2.0, 3)
