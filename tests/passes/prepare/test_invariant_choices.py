"""Choices that are the same in all iterations of a loop."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from irad.ir.instructions import Select
from irad.ir.module import Function
from irad.ir.verifier import verify
from irad.testing.check_gradient import check_gradient
from tests.passes.units import parsed, value

LOOP = """define i64 @f(i1 %c, i64 %n, ptr %a) {
entry:
  %first = load i64, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = phi i64 [ START, %entry ], [ %s, %loop ]
  %s = select i1 %c, i64 %i, i64 %p
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  %r = phi i64 [ %s, %loop ]
  ret i64 %r
}"""

NEST = """define i64 @f(i64 %length, i64 %n) {
entry:
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j.next, %latch ]
  %q = phi i64 [ 7, %entry ], [ %q.next, %latch ]
  %c = icmp ugt i64 %length, 1
  %empty = icmp eq i64 %j, 5
  br i1 %empty, label %latch, label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %i.next, %inner ]
  %p = phi i64 [ %q, %outer ], [ %s, %inner ]
  %s = select i1 CONDITION, i64 ARMS
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, %n
  br i1 %again, label %inner, label %leave
leave:
  %s.out = phi i64 [ %s, %inner ]
  br label %latch
latch:
  %q.next = phi i64 [ %q, %outer ], [ %s.out, %leave ]
  %j.next = add i64 %j, 1
  %on = icmp slt i64 %j.next, %n
  br i1 %on, label %outer, label %end
end:
  ret i64 0
}"""


def settled(text: str) -> tuple[Function, Select]:
    module, function = parsed(text)
    verify(module)
    select = value(function, "s")
    assert isinstance(select, Select)
    return function, select


@pytest.mark.parametrize(("start", "name"), [("7", None), ("%n", "n"), ("%first", "first")])
def test_the_arm_is_what_comes_into_the_loop(start: str, name: str | None):
    function, select = settled(LOOP.replace("START", start))
    expected = value(function, name) if name is not None else None
    arm = select.operands[2]
    assert arm is expected if expected is not None else getattr(arm, "value", None) == 7


def test_either_arm():
    text = LOOP.replace("START", "7").replace("i1 %c, i64 %i, i64 %p", "i1 %c, i64 %p, i64 %i")
    _, select = settled(text)
    assert getattr(select.operands[1], "value", None) == 7


@pytest.mark.parametrize("start", ["undef", "poison"])
def test_not_of_what_is_undefined(start: str):
    function, select = settled(LOOP.replace("START", start))
    assert select.operands[2] is value(function, "p")


def test_not_by_a_condition_of_the_iteration():
    text = LOOP.replace("START", "7").replace(
        "  %s = select i1 %c", "  %odd = trunc i64 %i to i1\n  %s = select i1 %odd"
    )
    function, select = settled(text)
    assert select.operands[2] is value(function, "p")


def test_not_if_something_else_comes_around():
    text = LOOP.replace("START", "7").replace("[ %s, %loop ]\n  %s =", "[ %i, %loop ]\n  %s =")
    function, select = settled(text)
    assert select.operands[2] is value(function, "p")


def test_through_nested_loops():
    text = NEST.replace("CONDITION", "%long").replace("ARMS", "%i, i64 %p")
    text = text.replace("entry:\n", "entry:\n  %long = icmp ugt i64 %length, 1\n")
    _, select = settled(text)
    assert getattr(select.operands[2], "value", None) == 7


def test_not_where_the_condition_is_computed_anew_in_a_loop_around():
    function, select = settled(NEST.replace("CONDITION", "%c").replace("ARMS", "%i, i64 %p"))
    assert select.operands[2] is value(function, "p")


def test_not_where_the_other_arm_was_chosen_by_another_condition():
    text = NEST.replace("CONDITION", "%long").replace("ARMS", "%i, i64 %p")
    text = text.replace("entry:\n", "entry:\n  %long = icmp ugt i64 %length, 1\n  %big = icmp ugt i64 %length, 9\n")
    text = text.replace("  br label %latch\n", "  %t = select i1 %big, i64 3, i64 %s.out\n  br label %latch\n")
    function, select = settled(text.replace("[ %s.out, %leave ]", "[ %t, %leave ]"))
    assert select.operands[2] is value(function, "p")


def test_values_stay_closed_in_their_loops():
    """The phi at the exit of a loop has one source, which must not be used outside in its place."""
    text = LOOP.replace("START", "7").replace("i1 %c, i64 %i, i64 %p", "i1 %c, i64 %i, i64 %i")
    text = text.replace("  ret i64 %r", "  %chosen = select i1 %c, i64 %r, i64 %n\n  ret i64 %chosen")
    _, function = parsed(text)
    select = value(function, "chosen")
    assert isinstance(select, Select)
    assert select.operands[1] is value(function, "r")


@njit(error_model="numpy")
def broadcast(a, b, c):
    d = np.exp(a * b) + c
    return (d * d).sum()


@pytest.mark.parametrize("plan", ["rows", "columns", "one", "none"])
def test_gradients_of_broadcast_expressions(plan: str):
    rng = np.random.default_rng(3)
    shapes = {
        "rows": ((3, 4), (1, 4), (4,)),
        "columns": ((3, 4), (3, 1), (1,)),
        "one": ((1, 4), (3, 1), (1,)),
        "none": ((0, 4), (1, 4), (4,)),
    }[plan]
    check_gradient(broadcast, *(rng.standard_normal(shape) for shape in shapes))
