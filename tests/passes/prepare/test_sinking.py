"""Floats that are differentiated on one side of a branch only are computed there."""

from __future__ import annotations

import pytest

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import FCmp
from irad.ir.loops import loop_nest
from irad.ir.module import Function
from irad.ir.types import DOUBLE
from irad.ir.verifier import verify
from irad.passes.analysis.liveness import live_blocks
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.prepare.sinking import sink_to_branches
from tests.passes.units import DOUBLES, INTEGERS, block, parsed, registry

PROGRAM = """declare double @llvm.sqrt.f64(double)
declare double @exp(double)
declare double @unknown(ptr)
define i32 @f(ptr noalias %r, ptr noalias %a, ptr noalias %b, ptr noalias %indices, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %rest ]
  %place = getelementptr i64, ptr %indices, i64 %i
  %index = load i64, ptr %place
  %p = getelementptr double, ptr %a, i64 INDEX
FIRST
  %near = fcmp olt double %x, 4.0
  br i1 %near, label %side, label %rest
side:
SIDE
  br label %rest
rest:
REST
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  ret i32 0
}"""
LOAD = "  %x = load double, ptr %p"
USE = "  %e = fmul double %x, %x\n  store double %e, ptr %r"


def sunk(first: str = LOAD, side: str = USE, rest: str = "", index: str = "%index", text: str = PROGRAM) -> Function:
    for name, code in {"FIRST": first, "SIDE": side, "REST": rest, "INDEX": index}.items():
        text = text.replace(name, code)
    module, function = parsed(text)
    ret, a, b, indices, _ = function.params
    memory = {ret: DOUBLES, a: DOUBLES, b: DOUBLES, indices: INTEGERS}
    cfg = control_flow(function)
    tree, mod_ref = dominators(cfg), ModRef(find_objects(function, memory, registry()), registry())
    sink_to_branches(loop_nest(cfg, tree), tree, mod_ref, live_blocks(cfg, (0,)))
    verify(module)
    return function


def names(function: Function, where: str) -> list[str]:
    """The kinds of the instructions of a block that compute floats, and of their comparisons."""
    found = [inst for inst in block(function, where).instructions if isinstance(inst, FCmp) or inst.type is DOUBLE]
    return [getattr(inst, "opcode", type(inst).__name__.lower()) for inst in found]


def test_a_load_that_is_compared_and_used_on_one_side():
    function = sunk()
    assert names(function, "loop") == ["load", "fcmp"]
    assert names(function, "side") == ["load", "fmul"]


def test_what_it_is_computed_from_goes_along():
    function = sunk("  %y = load double, ptr %b\n  %z = load double, ptr %p\n  %x = fsub double %y, %z")
    assert names(function, "loop") == ["load", "load", "fsub", "fcmp"]
    assert names(function, "side") == ["load", "load", "fsub", "fmul"]


def test_what_only_the_side_uses_is_moved():
    function = sunk(f"{LOAD}\n  %y = load double, ptr %b", "  %e = fmul double %x, %y\n  store double %e, ptr %r")
    assert names(function, "loop") == ["load", "fcmp"]
    assert names(function, "side") == ["load", "load", "fmul"]


def test_intrinsics_are_copied_and_other_functions_are_not():
    first, use = "  %y = load double, ptr %p\n  %x = call double {}(double %y)", "  store double %x, ptr %r"
    assert names(sunk(first.format("@llvm.sqrt.f64"), use), "side") == ["load", "call"]
    assert names(sunk(first.format("@exp"), use), "side") == []


@pytest.mark.parametrize(
    "rest",
    [
        "  store double %x, ptr %b",
        "  %chosen = phi double [ %x, %loop ], [ 0.0, %side ]\n  store double %chosen, ptr %b",
    ],
    ids=["a store", "a phi"],
)
def test_what_is_used_elsewhere_stays(rest: str):
    assert names(sunk(rest=rest), "side") == ["fmul"]


def test_a_phi_that_takes_it_from_the_side():
    function = sunk(rest="  %chosen = phi double [ 0.0, %loop ], [ %x, %side ]\n  store double %chosen, ptr %b")
    assert names(function, "side") == ["load", "fmul"]


def test_conversions_to_integers_are_no_use():
    function = sunk(f"{LOAD}\n  %k = fptosi double %x to i64\n  store i64 %k, ptr %indices")
    assert names(function, "side") == ["load", "fmul"]


@pytest.mark.parametrize(
    ("write", "loads"),
    [
        ("  store double 1.0, ptr %b", ["load", "fmul"]),
        ("  store double 1.0, ptr %a", ["fmul"]),
        ("  %u = call double @unknown(ptr %a)", ["fmul"]),
    ],
    ids=["another array", "the same", "by a function"],
)
def test_loads_do_not_go_over_writes(write: str, loads: list[str]):
    assert names(sunk(f"{LOAD}\n{write}"), "side") == loads


def test_a_side_that_is_entered_from_elsewhere():
    side = "  br label %more\nmore:\n  %q = phi i64 [ 0, %side ], [ 1, %more ]\n  %e = fmul double %x, %x\n"
    side += "  store double %e, ptr %r\n  %repeats = icmp slt i64 %q, %n\n"
    side += "  br i1 %repeats, label %more, label %last\nlast:"
    function = sunk(side=side)
    assert names(function, "side") == ["load"]
    assert names(function, "more") == ["fmul"]


def test_nested_branches():
    side = "  %nearer = fcmp olt double %x, 2.0\n  br i1 %nearer, label %inner, label %rest\ninner:\n"
    function = sunk(side=side + USE)
    assert names(function, "side") == ["load", "fcmp"]
    assert names(function, "inner") == ["load", "fmul"]


def test_a_branch_to_an_error_is_none():
    text = PROGRAM.replace("label %side, label %rest", "label %side, label %bad").replace(
        "end:", "bad:\n  ret i32 1\nend:"
    )
    assert names(sunk(text=text), "side") == ["fmul"]


def test_elements_in_order_stay():
    # LLVM makes vectors of a sweep that adds zeros to neighbours
    assert names(sunk(index="%i"), "side") == ["fmul"]


def test_an_index_that_is_computed_from_a_loaded_one():
    wrapped = "  %negative = icmp slt i64 %index, 0\n  %size = select i1 %negative, i64 %n, i64 0\n"
    wrapped += "  %sum = add i64 %size, %index\n  %q = getelementptr double, ptr %a, i64 %sum\n"
    assert names(sunk(f"{wrapped}  %x = load double, ptr %q"), "side") == ["load", "fmul"]
