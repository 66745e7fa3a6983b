"""Floats that are differentiated on one side of a branch only are computed there."""

from __future__ import annotations

import pytest

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import Instruction
from irad.ir.module import Function
from irad.ir.verifier import verify
from irad.passes.analysis.liveness import live_blocks
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.prepare.sinking import sink_to_branches
from tests.passes.units import DOUBLES, block, parsed, registry

PROGRAM = """declare double @llvm.sqrt.f64(double)
declare double @exp(double)
declare double @unknown(ptr)
define i32 @f(ptr noalias %r, ptr noalias %a, ptr noalias %b, i64 %n) {
entry:
FIRST
  %near = fcmp olt double %x, 4.0
  br i1 %near, label %side, label %rest
side:
SIDE
  br label %rest
rest:
REST
  ret i32 RESULT
}"""
LOAD = "  %x = load double, ptr %a"
USE = "  %e = fmul double %x, %x\n  store double %e, ptr %r"


def sunk(first: str = LOAD, side: str = USE, rest: str = "", result: str = "0") -> Function:
    text = PROGRAM.replace("FIRST", first).replace("SIDE", side).replace("REST", rest).replace("RESULT", result)
    module, function = parsed(text)
    memory = {p: DOUBLES if str(p.type) == "ptr" else None for p in function.params}
    cfg = control_flow(function)
    mod_ref = ModRef(find_objects(function, memory, registry()), registry())
    sink_to_branches(dominators(cfg), mod_ref, live_blocks(cfg, (0,)))
    verify(module)
    return function


def names(function: Function, where: str) -> list[str]:
    """The kinds of the instructions of a block, without its stores and its branch."""
    return [kind(inst) for inst in block(function, where).instructions if inst.name]


def kind(inst: Instruction) -> str:
    return getattr(inst, "opcode", type(inst).__name__.lower())


def test_a_load_that_is_compared_and_used_on_one_side():
    function = sunk()
    assert names(function, "entry") == ["load", "fcmp"]
    assert names(function, "side") == ["load", "fmul"]


def test_what_it_is_computed_from_goes_along():
    function = sunk("  %y = load double, ptr %b\n  %z = load double, ptr %a\n  %x = fsub double %y, %z")
    assert names(function, "entry") == ["load", "load", "fsub", "fcmp"]
    assert names(function, "side") == ["load", "load", "fsub", "fmul"]


def test_what_only_the_side_uses_is_moved():
    function = sunk(f"{LOAD}\n  %y = load double, ptr %b", "  %e = fmul double %x, %y\n  store double %e, ptr %r")
    assert names(function, "entry") == ["load", "fcmp"]
    assert names(function, "side") == ["load", "load", "fmul"]


def test_intrinsics_are_copied_and_other_functions_are_not():
    first = "  %y = load double, ptr %a\n  %x = call double {}(double %y)"
    assert names(sunk(first.format("@llvm.sqrt.f64")), "side") == ["load", "call", "fmul"]
    assert names(sunk(first.format("@exp")), "side") == ["fmul"]


@pytest.mark.parametrize(
    "rest",
    ["  store double %x, ptr %b", "  %p = phi double [ %x, %entry ], [ 0.0, %side ]\n  store double %p, ptr %b"],
    ids=["a store", "a phi"],
)
def test_what_is_used_elsewhere_stays(rest: str):
    assert names(sunk(rest=rest), "side") == ["fmul"]


def test_a_phi_that_takes_it_from_the_side():
    function = sunk(rest="  %p = phi double [ 0.0, %entry ], [ %x, %side ]\n  store double %p, ptr %b")
    assert names(function, "side") == ["load", "fmul"]


def test_conversions_to_integers_are_no_use():
    function = sunk(f"{LOAD}\n  %k = fptosi double %x to i32", result="%k")
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
    side += "  store double %e, ptr %r\n  %again = icmp slt i64 %q, %n\n  br i1 %again, label %more, label %last\nlast:"
    function = sunk(side=side)
    assert names(function, "side") == ["load"]
    assert names(function, "more") == ["phi", "fmul", "icmp"]


def test_nested_branches():
    side = "  %nearer = fcmp olt double %x, 2.0\n  br i1 %nearer, label %inner, label %rest\ninner:\n"
    function = sunk(side=side + USE)
    assert names(function, "side") == ["load", "fcmp"]
    assert names(function, "inner") == ["load", "fmul"]


def test_a_branch_to_an_error_is_none():
    text = PROGRAM.replace("br label %rest\nrest:", "ret i32 0\nrest:")
    module, function = parsed(
        text.replace("FIRST", LOAD).replace("SIDE", USE).replace("REST", "").replace("RESULT", "1")
    )
    cfg = control_flow(function)
    memory = {p: DOUBLES if str(p.type) == "ptr" else None for p in function.params}
    mod_ref = ModRef(find_objects(function, memory, registry()), registry())
    sink_to_branches(dominators(cfg), mod_ref, live_blocks(cfg, (0,)))
    verify(module)
    assert names(function, "side") == ["fmul"]
