from __future__ import annotations

from irad.ir.text.printer import print_function
from irad.passes.prepare.retype import retype_addresses
from tests.passes.units import parsed


def retyped(text: str) -> list[str]:
    """The instructions that follow."""
    _, function = parsed(text)
    retype_addresses(function)
    return [line.strip().partition(", align")[0] for line in print_function(function).splitlines()]


def test_a_variable_that_holds_an_address():
    lines = retyped("""
define ptr @f(ptr %p, i1 %c) {
  %slot = alloca i64
  store i64 0, ptr %slot
  %a = ptrtoint ptr %p to i64
  store i64 %a, ptr %slot
  %n = load i64, ptr %slot
  %q = inttoptr i64 %n to ptr
  ret ptr %q
}""")
    assert "%slot = alloca ptr" in lines
    assert "store ptr null, ptr %slot" in lines
    assert "store ptr %p, ptr %slot" in lines
    assert not any("inttoptr" in line for line in lines)


def test_choices_between_addresses():
    lines = retyped("""
define ptr @f(ptr %p, ptr %q, i1 %c, i1 %d) {
entry:
  br i1 %c, label %here, label %there
here:
  %a = ptrtoint ptr %p to i64
  br label %there
there:
  %n = phi i64 [ 0, %entry ], [ %a, %here ]
  %b = ptrtoint ptr %q to i64
  %s = select i1 %d, i64 %n, i64 %b
  %r = inttoptr i64 %s to ptr
  ret ptr %r
}""")
    assert any("= phi ptr [ null, %entry ], [ %p, %here ]" in line for line in lines)
    assert any("= select i1 %d, ptr" in line and line.endswith("ptr %q") for line in lines)
    assert not any("inttoptr" in line for line in lines)


def test_numbers_stay_numbers():
    counter = """
define ptr @f(ptr %p, i64 %i) {
  %slot = alloca i64
  store i64 %i, ptr %slot
  %a = ptrtoint ptr %p to i64
  store i64 %a, ptr %slot
  %b = add i64 %a, 8
  %q = inttoptr i64 %b to ptr
  ret ptr %q
}"""
    lines = retyped(counter)
    assert "%slot = alloca i64" in lines
    assert "store i64 %a, ptr %slot" in lines
    assert "%q = inttoptr i64 %b to ptr" in lines
