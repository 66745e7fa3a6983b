"""Which functions may return the address of memory as, or beside, an integer."""

from __future__ import annotations

import pytest

from irad.ir.module import Function
from irad.ir.text.parser import parse_module
from irad.passes.memory.returned_addresses import KnownAddresses, may_return_address, may_store_address
from irad.rules import ALL
from irad.ruleset.registry import Registry

HEAD = """\
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @other(i64)
define i64 @cast(ptr %p) {
  %i = ptrtoint ptr %p to i64
  ret i64 %i
}
"""
# name → (body of a function of %p, %n and %x, whether it may return an address)
CASES = {
    "constant": ("define i64 @f(ptr %p, i64 %n, double %x) {\n  ret i64 7\n}", False),
    "what was given": ("define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = add i64 %n, 1\n  ret i64 %m\n}", False),
    "rounded": ("define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = fptosi double %x to i64\n  ret i64 %m\n}", False),
    "bits of a number": (
        "define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = bitcast double %x to i64\n  ret i64 %m\n}",
        False,
    ),
    "recursive": (
        "define i64 @f(ptr %p, i64 %n, double %x) {\n  %a = call i64 @f(ptr %p, i64 %n, double %x)\n"
        "  %b = call i64 @llvm.smax.i64(i64 %a, i64 3)\n  ret i64 %b\n}",
        False,
    ),
    "beside a number": (
        "define { i64, double } @f(ptr %p, i64 %n, double %x) {\n"
        "  %a = insertvalue { i64, double } { i64 4, double 0.0 }, double %x, 1\n  ret { i64, double } %a\n}",
        False,
    ),
    "cast": ("define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = ptrtoint ptr %p to i64\n  ret i64 %m\n}", True),
    "cast by a callee": (
        "define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = call i64 @cast(ptr %p)\n  %k = add i64 %m, 8\n"
        "  ret i64 %k\n}",
        True,
    ),
    "given to a callee": (
        "define i64 @id(i64 %n) {\n  ret i64 %n\n}\ndefine i64 @f(ptr %p, i64 %n, double %x) {\n"
        "  %i = ptrtoint ptr %p to i64\n  %m = call i64 @id(i64 %i)\n  ret i64 %m\n}",
        True,
    ),
    "pointer beside a number": (
        "define { ptr, double } @f(ptr %p, i64 %n, double %x) {\n"
        "  %a = insertvalue { ptr, double } poison, ptr %p, 0\n  ret { ptr, double } %a\n}",
        True,
    ),
    "loaded": ("define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = load i64, ptr %p\n  ret i64 %m\n}", True),
    "of unknown code": (
        "define i64 @f(ptr %p, i64 %n, double %x) {\n  %m = call i64 @other(i64 %n)\n  ret i64 %m\n}",
        True,
    ),
}


def function_of(name: str) -> Function:
    return parse_module(HEAD + CASES[name][0]).functions["f"]


@pytest.mark.parametrize("name", CASES)
def test_results(name: str):
    assert may_return_address(function_of(name), Registry(ALL), {}) is CASES[name][1]


def test_code_behind_a_pointer_may_return_anything():
    assert may_return_address(function_of("constant").params[0], Registry(ALL), {})


STORING = """\
@message = constant i8 0
declare ptr @malloc(i64)
declare void @NRT_decref(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @other(ptr)
define void @f(ptr %p, ptr %q, i64 %n, double %x, i1 %c) {
  BODY
  ret void
}
define void @reads(ptr %p, ptr %q, i64 %n, double %x, i1 %c) {
  %slot = alloca ptr
  store double %x, ptr %p
  store ptr null, ptr %slot
  call void @reads(ptr %slot, ptr %q, i64 %n, double %x, i1 %c)
  %why = load ptr, ptr %slot
  store ptr %why, ptr %q
  call void @NRT_decref(ptr %p)
  ret void
}
define void @writes(ptr %p, ptr %q) {
  store ptr %p, ptr %q
  ret void
}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("store double %x, ptr %p", False),
        ("store ptr @message, ptr %p", False),
        ("%m = select i1 %c, ptr @message, ptr null\n  store ptr %m, ptr %p", False),
        ("call void @reads(ptr %p, ptr %q, i64 %n, double %x, i1 %c)", False),
        ("%new = call ptr @malloc(i64 %n)\n  store double %x, ptr %new", False),
        ("store ptr %q, ptr %p", True),
        ("store i64 %n, ptr %p", True),  # the bits of an address, it may be
        ("%m = select i1 %c, ptr @message, ptr %q\n  store ptr %m, ptr %p", True),
        ("%in = load ptr, ptr %q\n  store ptr %in, ptr %p", True),
        ("call void @writes(ptr %p, ptr %q)", True),
        ("call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 8, i1 false)", True),
        ("call void @other(ptr %p)", True),
        ("%old = atomicrmw xchg ptr %p, i64 %n seq_cst", True),
    ],
)
def test_what_may_store_an_address(body: str, expected: bool) -> None:
    module = parse_module(STORING.replace("BODY", body))
    assert may_store_address(module.functions["f"], Registry.of(*ALL), {}) is expected


CYCLE = """\
define i64 @top(ptr %p, i64 %n) {
  %m = call i64 @left(ptr %p, i64 %n)
  %k = call i64 @leaf(ptr %p, i64 %m)
  ret i64 %k
}
define i64 @left(ptr %p, i64 %n) {
  %m = call i64 @right(ptr %p, i64 %n)
  ret i64 %m
}
define i64 @right(ptr %p, i64 %n) {
  %m = call i64 @left(ptr %p, i64 %n)
  %k = call i64 @END(ptr %p, i64 %m)
  ret i64 %k
}
define i64 @leaf(ptr %p, i64 %n) {
  ret i64 %n
}
define i64 @both(ptr %p, i64 %n) {
  store i64 %n, ptr %p
  %m = ptrtoint ptr %p to i64
  ret i64 %m
}
"""


@pytest.mark.parametrize("first", ["top", "left", "right", "leaf", "both"])
@pytest.mark.parametrize("end", ["leaf", "both"])
def test_what_is_kept_of_callees_is_what_each_gives_alone(end: str, first: str) -> None:
    """Through calls in a circle, whichever function is asked for first."""
    functions = parse_module(CYCLE.replace("END", end)).functions
    expected = {name: name == "both" or (end == "both" and name != "leaf") for name in functions}
    known, registry = KnownAddresses(), Registry.of(*ALL)
    for name in [first, *functions]:
        assert may_store_address(functions[name], registry, known.storing) is expected[name], name
        assert may_return_address(functions[name], registry, known.returning) is expected[name], name


def test_callers_are_decided_with_their_callees() -> None:
    """So that each function is read once, however long the chain of calls is."""
    functions = parse_module(CYCLE.replace("END", "both")).functions
    known, registry = KnownAddresses(), Registry.of(*ALL)
    may_store_address(functions["top"], registry, known.storing)
    may_return_address(functions["top"], registry, known.returning)
    assert known.storing.keys() == known.returning.keys() == set(functions.values())


def test_functions_whose_integers_turn_out_to_be_floats_are_asked_again() -> None:
    functions = parse_module(CYCLE.replace("END", "both")).functions
    known, registry = KnownAddresses(), Registry.of(*ALL)
    assert may_store_address(functions["top"], registry, known.storing)
    known.forget(functions["leaf"])  # it stores nothing, and nothing depends on it
    assert known.storing
    next(functions["both"].instructions()).erase()
    known.forget(functions["both"])
    assert not may_store_address(functions["top"], registry, known.storing)


def test_a_declared_function_may_store_addresses():
    module = parse_module("declare i64 @ruled(ptr, ptr)")
    assert may_store_address(module.functions["ruled"], Registry.of(*ALL), {})
