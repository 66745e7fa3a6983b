"""Loads that a loop repeats with the same outcome."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import Instruction
from irad.ir.loops import loop_nest
from irad.ir.module import Function
from irad.ir.verifier import verify
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.prepare.loop_invariants import hoist_invariant_loads
from irad.testing.check_gradient import check_gradient
from tests.passes.units import DOUBLES, generated, parsed, registry, value

HEAD = """declare ptr @NRT_MemInfo_varsize_realloc(ptr, i64)
declare void @NRT_decref(ptr)
declare ptr @malloc(i64)
declare double @unknown(ptr)
declare double @exp(double)
define i32 @f(ptr noalias %r, ptr %a, i64 %n, i1 %c) {
entry:
  %b = call ptr @malloc(i64 80)
  %d = call ptr @malloc(i64 80)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %LATCH ]
BODY
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 0
}"""


def hoisted(body: str, latch: str = "loop", text: str = HEAD) -> Function:
    module, function = parsed(text.replace("BODY", body).replace("LATCH", latch))
    memory = {p: DOUBLES if str(p.type) == "ptr" else None for p in function.params}
    cfg = control_flow(function)
    tree = dominators(cfg)
    mod_ref = ModRef(find_objects(function, memory, registry()), registry())
    hoist_invariant_loads(loop_nest(cfg, tree), tree, mod_ref)
    verify(module)
    return function


def home(function: Function, name: str) -> str:
    found = value(function, name)
    assert isinstance(found, Instruction)
    assert found.block is not None
    return str(found.block.name)


LOAD = "  %v = load double, ptr %b\n  %p = getelementptr double, ptr %d, i64 %i\n"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("  store double %v, ptr %p", "entry"),
        ("  store double %v, ptr %a", "entry"),
        ("  %e = call double @exp(double %v)\n  store double %e, ptr %p", "entry"),
        ("  call void @NRT_decref(ptr %d)", "entry"),
        ("  store double %v, ptr %b", "loop"),
        ("  %q = getelementptr double, ptr %b, i64 %i\n  store double %v, ptr %q", "loop"),
        ("  %q = select i1 %c, ptr %b, ptr %d\n  store double %v, ptr %q", "loop"),
        ("  %u = inttoptr i64 %n to ptr\n  store double %v, ptr %u", "loop"),
        ("  %e = call double @unknown(ptr %b)", "loop"),
        ("  call void @NRT_decref(ptr %b)", "loop"),
        ("  %m = call ptr @NRT_MemInfo_varsize_realloc(ptr %b, i64 %n)", "loop"),
    ],
)
def test_a_load_stays_where_its_memory_may_change(body: str, where: str):
    assert home(hoisted(LOAD + body), "v") == where


def test_arguments_may_overlap():
    assert home(hoisted("  %v = load double, ptr %a\n  store double %v, ptr %r"), "v") == "entry"
    assert (
        home(hoisted("  %v = load double, ptr %a\n  %w = fadd double %v, 1.0\n  store double %w, ptr %a"), "v")
        == "loop"
    )


def test_a_load_of_another_address_each_time_stays():
    assert home(hoisted("  %p = getelementptr double, ptr %b, i64 %i\n  %v = load double, ptr %p"), "v") == "loop"


def test_a_global_variable_may_be_written_by_any_callee():
    text = HEAD.replace("declare double @exp", "@state = global double 1.0\ndeclare double @exp")
    body = "  %v = load double, ptr @state\n  %e = call double @unknown(ptr %b)"
    assert home(hoisted(body, text=text), "v") == "loop"


def test_unknown_memory_may_be_written_by_any_callee():
    body = """  %u = inttoptr i64 64 to ptr
  %v = load double, ptr %u
  %e = call double @unknown(ptr %b)"""
    assert home(hoisted(body), "v") == "loop"


def test_volatile_loads_stay():
    assert home(hoisted("  %v = load volatile double, ptr %b"), "v") == "loop"


def test_a_load_that_may_not_run_stays():
    body = """  br i1 %c, label %then, label %latch
then:
  %v = load double, ptr %b
  store double %v, ptr %d
  br label %latch
latch:"""
    assert home(hoisted(body, "latch"), "v") == "then"


def test_addresses_follow_the_pointers_they_are_made_of():
    body = """  %data = load ptr, ptr %b
  %item = getelementptr double, ptr %data, i64 2
  %v = load double, ptr %item
  store double %v, ptr %d"""
    function = hoisted(body)
    assert [home(function, name) for name in ("data", "item")] == ["entry", "entry"]


NEST = """declare ptr @malloc(i64)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  %b = call ptr @malloc(i64 80)
  %d = call ptr @malloc(i64 80)
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %from = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %from
  store double %x, ptr %b
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %v = load double, ptr %b
  %p = getelementptr double, ptr %d, i64 %j
  %square = fmul double %v, %v
  store double %square, ptr %p
  %j.next = add i64 %j, 1
  %again = icmp slt i64 %j.next, %n
  br i1 %again, label %inner, label %latch
latch:
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %outer, label %end
end:
  %s = load double, ptr %d
  store double %s, ptr %r
  ret i32 0
}"""


@pytest.mark.parametrize(("plan", "place"), [("default", "outer"), ("save_all", "inner")])
def test_the_value_is_saved_outside_of_the_inner_loop_but_not_by_the_oracle(plan: str, place: str):
    made = generated(NEST, "scsc", plan=plan)
    assert home(made[0].unit.function, "v") == place


@njit
def growing_list(x):
    items = [x[0]]
    for i in range(40):
        items.append(items[0] * x[i % x.size] + items[-1])
    return items[0] * items[20] + items[40]


@njit
def one_element_for_all(x):
    total, scaled, centre = 0.0, np.zeros(x.size), np.empty(2)
    for i in range(x.size):
        centre[0] = x[i] * x[i]
        for j in range(x.size):
            scaled[j] += centre[0] * x[j]
        for j in range(i):
            centre[0] += scaled[j]
        total += centre[0] * scaled[i]
    return total


@njit
def array_replaced_in_the_loop(x):
    a, total = x * x, 0.0
    for i in range(x.size):
        total += a[0] * x[i]
        if i % 2 == 0:
            a = a * a[1]
    return total


@njit
def overlapping_views(x):
    a, b = x[:3], x[1:]
    for i in range(b.size):
        b[i] = a[1] * b[i]
    return b.sum()


@njit
def product(a, b):
    for i in range(b.size):
        b[i] = a[1] * b[i]
    return b.sum()


@pytest.mark.parametrize("function", [growing_list, one_element_for_all, array_replaced_in_the_loop, overlapping_views])
def test_gradients(function):
    for size in (3, 5):
        check_gradient(function, np.linspace(0.6, 1.3, size))


def test_arguments_that_overlap_are_read_again():
    memory = np.linspace(0.5, 1.5, 6)
    expected = memory.copy()
    value = product.py_func(expected[:3], expected[1:5])
    found, _ = irad.value_and_grad(product, argnums=(0, 1))(memory[:3], memory[1:5])
    assert found == value
    np.testing.assert_array_equal(memory, expected)
