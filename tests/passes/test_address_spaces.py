"""Pointers into other address spaces: their shadows are beside them, and casts between spaces hide nothing.

On x86 and ARM the spaces used here are ordinary memory, so the derivatives run, and are compared with closed forms.
"""

from __future__ import annotations

from math import cos, sin

import llvmlite.binding as ll
import pytest

from irad.driver import derive
from irad.errors import UnsupportedError
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import DOUBLE, I64, PTR, address_spaces, array_type, function_type, pointer_type, struct_type
from irad.ir.verifier import verify
from irad.passes.mode import AUGMENTED, REVERSE
from tests.passes.units import POINTERS, derivative, doubles, gradient, parsed, pointer, registry, request_of, running

PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])
P = "ptr addrspace(1)"
HEAD = f"define i32 @f(ptr noalias %result, ptr %exception, {P} %a, i64 %n)"
X = [1.5, -0.5, 2.0, 3.0]

SQUARES = f"""
{HEAD} {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = phi {P} [ %a, %entry ], [ %q, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %x = load double, {P} %p
  %y = call double @llvm.sin.f64(double %x)
  %more = fadd double %sum, %y
  store double %y, {P} %p
  %q = getelementptr double, {P} %p, i64 1
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  %last = phi double [ %more, %loop ]
  %first = load double, {P} %a
  %product = fmul double %last, %first
  store double %product, ptr %result
  ret i32 0
}}
declare double @llvm.sin.f64(double)
"""


@PLANS
def test_a_pointer_that_moves_on(plan: str):
    total = sum(map(sin, X))
    wanted = [cos(x) * sin(X[0]) + (cos(x) * total if i == 0 else 0.0) for i, x in enumerate(X)]
    assert gradient(SQUARES, X, len(X), plan=plan) == pytest.approx(wanted, rel=1e-14)


def test_the_shadow_is_in_the_address_space_of_its_memory():
    made = derivative(SQUARES, "scsc")
    for each in made.pairs:
        shadow = each.pair[AUGMENTED].params[-1]
        assert (shadow.name, shadow.type) == ("a.shadow", pointer_type(1))
        verify(each.pair[AUGMENTED])
        verify(each.pair[REVERSE])


@PLANS
def test_a_cast_pointer_may_alias(plan: str):
    """x0 · x1, with x0 overwritten through a generic pointer between two reads through the other."""
    text = f"""
{HEAD} {{
entry:
  %g = addrspacecast {P} %a to ptr
  %g1 = getelementptr double, ptr %g, i64 1
  %x = load double, {P} %a
  %y = load double, ptr %g1
  %xy = fmul double %x, %y
  store double %xy, ptr %g
  %z = load double, {P} %a
  %zz = fmul double %z, %z
  store double 7.0, ptr %g
  %c = load double, {P} %a
  %r = fmul double %zz, %c
  store double %r, ptr %result
  ret i32 0
}}
"""
    x, y = 1.5, -0.5
    assert gradient(text, [x, y], 2, plan=plan) == pytest.approx([14 * x * y * y, 14 * x * x * y], rel=1e-14)


@PLANS
def test_copies_and_fills(plan: str):
    """x1 and x2 are copied to x0 and x1, x2 is cleared."""
    text = f"""
{HEAD} {{
entry:
  %b = getelementptr double, {P} %a, i64 1
  %c = getelementptr double, {P} %a, i64 2
  call void @llvm.memmove.p1.p1.i64({P} %a, {P} %b, i64 16, i1 false)
  call void @llvm.memset.p1.i64({P} %c, i8 0, i64 8, i1 false)
  %x = load double, {P} %a
  %y = load double, {P} %b
  %z = load double, {P} %c
  %xy = fmul double %x, %y
  %r = fadd double %xy, %z
  store double %r, ptr %result
  ret i32 0
}}
declare void @llvm.memmove.p1.p1.i64({P}, {P}, i64, i1)
declare void @llvm.memset.p1.i64({P}, i8, i64, i1)
"""
    assert gradient(text, X, len(X), plan=plan) == pytest.approx([0.0, X[2], X[1], 0.0])


@PLANS
def test_callees_take_and_return_such_pointers(plan: str):
    text = f"""
{HEAD} {{
entry:
  %p = call {P} @second({P} %a, i64 %n)
  %x = load double, {P} %p
  %square = fmul double %x, %x
  store double %square, ptr %result
  ret i32 0
}}
define internal {P} @second({P} %a, i64 %n) noinline {{
entry:
  %x = load double, {P} %a
  %p = getelementptr double, {P} %a, i64 1
  %y = load double, {P} %p
  %xy = fmul double %x, %y
  store double %xy, {P} %p
  ret {P} %p
}}
"""
    x, y = 1.5, -0.5
    assert gradient(text, [x, y], 2, plan=plan) == pytest.approx([2 * x * y * y, 2 * x * x * y])


TABLE = "ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @table, i64 8)"


@PLANS
@pytest.mark.parametrize(("n", "wanted"), [(0, [0.0]), (1, [3.0])])
def test_a_table_in_another_space_beside_active_memory(plan: str, n: int, wanted: list[float]):
    """The table may be chosen in place of the array, so it has a shadow: in global memory, which can be written to."""
    text = f"""
@table = internal addrspace(4) constant [2 x double] [double 5.0, double 6.0]
{HEAD} {{
entry:
  %own = icmp ne i64 %n, 0
  %g = addrspacecast {P} %a to ptr
  %p = select i1 %own, ptr %g, ptr addrspacecast ({TABLE} to ptr)
  %x = load double, ptr %p
  %r = fmul double %x, 3.0
  store double %r, ptr %result
  ret i32 0
}}
"""
    assert gradient(text, [1.5], n, plan=plan) == pytest.approx(wanted)
    made = derivative(text, "scsc")
    [shadow] = [v for name, v in made.program.module.globals.items() if name == "table.shadow"]
    assert shadow.type is pointer_type(1)


def test_a_kernel_of_another_machine_is_derived():
    """What is made for NVPTX is valid, and calls its library of mathematics; only running it takes another machine."""
    text = f"""
target triple = "nvptx64-nvidia-cuda"
define i32 @f({P} %out, {P} %a) {{
  %x = load double, {P} %a
  %y = call double @__nv_sin(double %x)
  store double %y, {P} %out
  ret i32 0
}}
declare double @__nv_sin(double)
"""
    _, function = parsed(text)
    made = derive(text, request_of(function, "ss"), registry(), check=True)
    module = ll.parse_assembly(made.text)
    module.verify()
    assert "call double @__nv_cos(double" in made.text
    assert f"({P} %out, {P} %a, {P} %out.shadow, {P} %a.shadow)" in made.text.replace("ptr %frame, ptr %arena, ", "")


def test_what_is_derived_from_one_space_is_added_there():
    """An output and an input in different spaces."""
    text = """
define i32 @f(ptr addrspace(3) %out, ptr addrspace(1) %a) {
  %x = load double, ptr addrspace(1) %a
  %y = fmul double %x, %x
  store double %y, ptr addrspace(3) %out
  ret i32 0
}
"""
    made = running(text, "ss")
    out, seed, a, shadow = doubles(0.0), doubles(2.0), doubles(3.0), doubles(0.5)
    try:
        assert made.augmented(*map(pointer, (out, a, seed, shadow))) == 0
        made.reverse()
    finally:
        made.close()
    assert (out[0], seed[0], shadow[0]) == (9.0, 0.0, 12.5)


def refused(body: str, declarations: str = "", plan: str = "default") -> UnsupportedError:
    text = f"{HEAD} {{\n{body}\n  ret i32 0\n}}\n{declarations}"
    with pytest.raises(UnsupportedError) as caught:
        derivative(text, "scsc", plan=plan)
    return caught.value


LOCAL = f"""
  %s = alloca double, addrspace(5)
  %x = load double, {P} %a
  store double %x, ptr addrspace(5) %s
  %y = load double, ptr addrspace(5) %s
  store double %y, ptr %result
"""


@PLANS
def test_active_local_memory_is_refused(plan: str):
    assert "local memory in address space 5" in refused(LOCAL, plan=plan).problem
    assert gradient_of_ordinary() == [1.0]  # the remedy


def gradient_of_ordinary() -> list[float]:
    body = LOCAL.replace(", addrspace(5)", "").replace("ptr addrspace(5)", "ptr")
    return gradient(f"{HEAD} {{\n{body}\n  ret i32 0\n}}\n", [1.5], 1)


def test_stored_pointers_are_refused():
    body = f"""
  %s = alloca {P}
  store {P} %a, ptr %s
  %x = load double, {P} %a
  store double %x, ptr %result
"""
    assert "a pointer to address space 1 is stored in memory" in refused(body).problem
    text = f"""
define i32 @f(ptr %result, ptr %table) {{
  %p = load {P}, ptr %table
  %x = load double, {P} %p
  store double %x, ptr %result
  ret i32 0
}}
"""
    with pytest.raises(UnsupportedError, match="a pointer to address space 1 is read from memory"):
        derivative(text, "ss", [None, POINTERS])


def test_rules_take_generic_pointers():
    body = f"""
  %s = call i32 @numba_xxdot(i8 100, i8 0, i64 %n, {P} %a, {P} %a, ptr %result)
"""
    error = refused(body, f"declare i32 @numba_xxdot(i8, i8, i64, {P}, {P}, ptr)")
    assert "a function with a rule is given a pointer to address space 1" in error.problem


def test_what_has_no_derivative_may_be_kept_anywhere():
    body = f"""
  %s = alloca i64, addrspace(5)
  store i64 %n, ptr addrspace(5) %s
  %k = load i64, ptr addrspace(5) %s
  %p = getelementptr double, {P} %a, i64 %k
  %x = load double, {P} %p
  store double %x, ptr %result
"""
    made = derivative(f"{HEAD} {{\n{body}\n  ret i32 0\n}}\n", "scsc")
    ll.parse_assembly(print_module(made.program.module)).verify()


def test_the_spaces_of_a_type():
    one, three = pointer_type(1), pointer_type(3)
    assert address_spaces(DOUBLE) == frozenset()
    assert address_spaces(array_type(2, struct_type([PTR, three]))) == {0, 3}
    assert address_spaces(function_type(one, [I64, three])) == {1, 3}
    named = parse_module("%s = type { ptr addrspace(2) }\n").structs["s"]
    assert address_spaces(named) == {2}
