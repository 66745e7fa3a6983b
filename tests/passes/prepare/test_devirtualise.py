"""Calls through pointers become direct calls of what the pointers may hold."""

from __future__ import annotations

import pytest

from irad.ir.instructions import Call
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.verifier import verify
from irad.passes.prepare.devirtualise import devirtualise
from tests.passes.units import canonical

FUNCTIONS = """
define internal double @a(double %x) {
  ret double %x
}
define internal double @b(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define internal float @c(float %x) {
  ret float %x
}
"""


def rewritten(text: str) -> tuple[Module, bool]:
    module = parse_module(canonical(text + FUNCTIONS))
    changed = devirtualise(module)
    verify(module)
    canonical(print_module(module))  # LLVM accepts it
    return module, changed


def called(module: Module, name: str = "f") -> list[str]:
    """The callees in a function; `*` for a pointer."""
    calls = [i for i in module.functions[name].instructions() if isinstance(i, Call)]
    return [str(c.callee.name) if isinstance(c.callee, Function) else "*" for c in calls]


SELECT = """
define double @f(i1 %c, double %x) {
  %p = select i1 %c, ptr @a, ptr @b
  %y = call double %p(double %x)
  ret double %y
}"""


def test_a_select_of_functions_is_all_there_is():
    module, changed = rewritten(SELECT)
    assert changed
    assert called(module) == ["a", "b"]
    assert "icmp eq ptr %p, @a" in print_module(module)
    assert "icmp eq ptr %p, @b" not in print_module(module)


def test_one_function_needs_no_compare():
    module, _ = rewritten(SELECT.replace("ptr @b", "ptr @a"))
    assert called(module) == ["a"]
    assert "icmp" not in print_module(module)


def test_null_is_never_called():
    module, _ = rewritten(SELECT.replace("ptr @b", "ptr null"))
    assert called(module) == ["a"]


UNKNOWN = """
@held = global ptr @a
define void @g(ptr %place) {
  store ptr @b, ptr %place
  store ptr @c, ptr %place
  ret void
}
define double @f(ptr %p, double %x) {
  %y = call double %p(double %x)
  %z = fadd double %y, %x
  ret double %z
}"""


def test_of_an_unknown_pointer_all_that_fits_is_a_candidate():
    module, changed = rewritten(UNKNOWN)
    assert changed
    assert sorted(called(module)) == ["*", "a", "b"]


def test_functions_whose_address_nobody_takes_are_none():
    module, _ = rewritten(UNKNOWN.replace("store ptr @b, ptr %place", "%y = call double @b(double 1.0)"))
    assert sorted(called(module)) == ["*", "a"]


def test_without_candidates_nothing_happens():
    text = UNKNOWN.replace("@held = global ptr @a", "").replace("store ptr @b, ptr %place", "")
    module, changed = rewritten(text)
    assert not changed
    assert called(module) == ["*"]


TABLE = """
@table = internal CONSTANT [2 x ptr] [ptr @a, ptr @b]
define double @f(i64 %i, double %x) {
  %place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
  %p = load ptr, ptr %place
  %y = call double %p(double %x)
  ret double %y
}"""


@pytest.mark.parametrize(("kind", "calls"), [("constant", ["a", "b"]), ("global", ["*", "a", "b"])])
def test_a_table(kind: str, calls: list[str]):
    module, _ = rewritten(TABLE.replace("CONSTANT", kind))
    assert sorted(called(module)) == calls


LOOP = """
define double @f(i64 %n, double %x) {
entry:
  br label %loop
loop:
  %p = phi ptr [ @a, %entry ], [ %q, %loop ]
  %s = phi double [ %x, %entry ], [ %y, %loop ]
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %odd = trunc i64 %i to i1
  %q = select i1 %odd, ptr %p, ptr @b
  %y = call double %q(double %s)
  %next = add i64 %i, 1
  %go = icmp slt i64 %next, %n
  br i1 %go, label %loop, label %end
end:
  %last = phi double [ %y, %loop ]
  ret double %last
}"""


def test_in_a_loop_phis_follow():
    module, _ = rewritten(LOOP)
    assert sorted(called(module)) == ["a", "b"]


def test_calls_without_a_result():
    text = """
    define void @u(ptr %p) {
      ret void
    }
    define void @v(ptr %p) {
      store double 0.0, ptr %p
      ret void
    }
    define void @f(i1 %c, ptr %x) {
      %p = select i1 %c, ptr @u, ptr @v
      call void %p(ptr %x)
      ret void
    }"""
    module, _ = rewritten(text)
    assert called(module) == ["u", "v"]


def test_assembly_is_no_pointer():
    text = """
    define void @f() {
      call void asm sideeffect "nop", ""()
      ret void
    }"""
    _, changed = rewritten(text)
    assert not changed
