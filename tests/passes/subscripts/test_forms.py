"""Polynomials of integers in a loop, written down by hand."""

from __future__ import annotations

import pytest

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.loops import loop_nest
from irad.ir.text.parser import parse_module
from irad.passes.subscripts.forms import Count, Excess, Forms, Polynomial
from tests.passes.units import canonical, value

LOOP = """
define void @f(ptr %a, i64 %n, i64 %m) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ {start}, %entry ], [ %next, %loop ]
  %wrapped = add i64 %k, %n
  {code}
  %p = getelementptr i64, ptr %a, i64 %k
  store i64 %k, ptr %p
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  {after}
  ret void
}}
"""


def polynomial_of_x(code: str, start: int = 0, after: str = "") -> Polynomial:
    """Polynomial of `%x`, with names in place of atoms; `k` is the count of the loop."""
    function = parse_module(canonical(LOOP.format(start=start, code=code, after=after))).defined_functions()[0]
    cfg = control_flow(function)
    dom = dominators(cfg)
    found = Forms(cfg, dom, loop_nest(cfg, dom), {}).integer(value(function, "x"))

    def spelled(atom: object) -> str:
        match atom:
            case Count():
                return "k"
            case Excess(value=chosen):
                return f"excess of {chosen.name}"
            case _:
                return str(atom.name)  # type: ignore[attr-defined]

    return {tuple(sorted(map(spelled, term))): coefficient for term, coefficient in found.items()}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("%x = add i64 %k, 5", {("k",): 1, (): 7}),
        ("%x = sub i64 %m, %k", {("m",): 1, ("k",): -1, (): -2}),
        ("%x = mul i64 %k, %m", {("k", "m"): 1, ("m",): 2}),
        ("%x = shl i64 %k, 3", {("k",): 8, (): 16}),
        ("%x = shl i64 %k, %m", {("x",): 1}),
        ("%x = or disjoint i64 %k, 1", {("k",): 1, (): 3}),
        ("%x = or i64 %k, 1", {("x",): 1}),
        ("%x = udiv i64 %k, 2", {("x",): 1}),
        ("%y = sub i64 %k, %m\n%x = sub i64 %k, %y", {("m",): 1}),
    ],
)
def test_arithmetic_of_a_variable_that_starts_at_two(code: str, expected: Polynomial):
    assert polynomial_of_x(code, start=2) == expected


K, UNKNOWN = {("k",): 1}, {("x",): 1}


@pytest.mark.parametrize(
    ("start", "test", "chosen", "expected"),
    [
        (0, "slt i64 %k, 0", "%wrapped, i64 %k", K),
        (0, "sgt i64 %k, -1", "%k, i64 %wrapped", K),
        (0, "slt i64 %k, 1", "%wrapped, i64 %k", UNKNOWN),
        (0, "sgt i64 %k, 0", "%k, i64 %wrapped", UNKNOWN),
        (0, "ult i64 %k, 0", "%wrapped, i64 %k", UNKNOWN),
        (3, "slt i64 %k, 3", "%wrapped, i64 %k", K | {(): 3}),
        (3, "sgt i64 %k, 2", "%k, i64 %wrapped", K | {(): 3}),
        (3, "sgt i64 %k, 3", "%k, i64 %wrapped", UNKNOWN),
        (-1, "slt i64 %k, 0", "%wrapped, i64 %k", UNKNOWN),
        (0, "slt i64 %m, 0", "%wrapped, i64 %k", UNKNOWN),
        (0, "slt i64 %k, %m", "%wrapped, i64 %k", UNKNOWN),
    ],
)
def test_a_choice_is_decided_where_the_loop_decides_it(start: int, test: str, chosen: str, expected: Polynomial):
    code = f"%c = icmp {test}\n  %x = select i1 %c, i64 {chosen}"
    assert polynomial_of_x(code, start) == expected


def test_after_a_loop_its_count_is_no_longer_what_a_variable_was():
    assert polynomial_of_x("", start=0, after="%x = phi i64 [ %k, %loop ]") == UNKNOWN


def test_a_choice_between_two_variables_is_the_least_of_them_and_an_excess():
    larger = "%larger = add i64 %k, 3\n  %c = icmp eq i64 %m, 0\n  %x = select i1 %c, i64 %larger, i64 %k"
    assert polynomial_of_x(larger) == {("k",): 1, ("excess of x",): 1}
