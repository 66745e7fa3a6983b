from __future__ import annotations

import pytest

from irad.ir import types
from irad.ir.text.printer import print_function
from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.prepare.retype import retype_copies
from irad.passes.request import MemoryType
from tests.passes.units import DOUBLES, INTEGERS, POINTERS, parsed, registry, unit_of, value

FLOATS = MemoryType(4, ((0, "float"),))
RECORD = MemoryType(16, ((0, "i64"), (8, "double")))


def retyped(text: str, *memory: MemoryType | None) -> tuple[bool, list[str]]:
    """Whether anything changed, and the instructions that follow."""
    _, function = parsed(text)
    given = dict(zip(function.params, memory, strict=True))
    points_to = find_objects(function, given, registry())
    changed = retype_copies(function, find_memory_types(function, ModRef(points_to, registry()), given))
    return changed, [line.strip() for line in print_function(function).splitlines()]


COPY = "define void @f(ptr %a, ptr %b) {{\n %v = load {0}, ptr %a\n store {0} %v, ptr %b\n ret void\n}}"


@pytest.mark.parametrize(
    ("moved", "a", "b", "becomes"),
    [
        ("i64", DOUBLES, DOUBLES, "double"),
        ("i64", DOUBLES, INTEGERS, "double"),  # one end decides
        ("i64", INTEGERS, DOUBLES, "double"),
        ("i64", INTEGERS, INTEGERS, "i64"),
        ("i32", FLOATS, FLOATS, "float"),
        ("i32", DOUBLES, DOUBLES, "i32"),  # half of a double is not a float
        ("i64", FLOATS, FLOATS, "i64"),  # two floats at once
        ("i64", RECORD, RECORD, "i64"),  # the integer of the record
    ],
)
def test_copies(moved, a, b, becomes):
    changed, lines = retyped(COPY.format(moved), a, b)
    assert changed == (moved != becomes)
    assert any(line.startswith(f"%v = load {becomes}, ptr %a") for line in lines)
    assert any(line.startswith(f"store {becomes} %v, ptr %b") for line in lines)


def test_the_float_of_a_record():
    text = """
    define void @f(ptr %a, ptr %b, i64 %i) {
      %p = getelementptr { i64, double }, ptr %a, i64 %i, i32 1
      %q = getelementptr { i64, double }, ptr %b, i64 %i, i32 1
      %v = load i64, ptr %p
      store i64 %v, ptr %q
      %n = load i64, ptr %a
      store i64 %n, ptr %b
      ret void
    }"""
    changed, lines = retyped(text, RECORD, RECORD, None)
    assert changed
    assert "%v = load double, ptr %p, align 8" in lines or "%v = load double, ptr %p, align 4" in lines
    assert any(line.startswith("%n = load i64, ptr %a") for line in lines)


def test_through_phi_select_and_freeze_with_constants():
    text = """
    define void @f(ptr %a, ptr %b, i1 %c) {
    entry:
      %v = load i64, ptr %a
      br i1 %c, label %one, label %two
    one:
      %s = select i1 %c, i64 %v, i64 4607182418800017408
      br label %two
    two:
      %p = phi i64 [ 0, %entry ], [ %s, %one ]
      %z = freeze i64 %p
      store i64 %z, ptr %b
      ret void
    }"""
    changed, lines = retyped(text, DOUBLES, DOUBLES, None)
    assert changed
    assert "%s = select i1 %c, double %v, double 0x3FF0000000000000" in lines
    assert any(line.startswith("%p = phi double") for line in lines)
    assert any(line.startswith("%z = freeze double") for line in lines)


@pytest.mark.parametrize(
    "use",
    ["%u = xor i64 %v, 1", "%u = icmp eq i64 %v, 0", "%u = call i64 @g(i64 %v)", "%u = bitcast i64 %v to double"],
)
def test_bits_that_are_computed_with_stay_integers(use):
    text = f"""
    declare i64 @g(i64)
    define void @f(ptr %a, ptr %b) {{
      %v = load i64, ptr %a
      {use}
      store i64 %v, ptr %b
      ret void
    }}"""
    changed, _ = retyped(text, DOUBLES, DOUBLES)
    assert not changed


def test_pointers_moved_as_integers():
    text = """
    define void @f(ptr %a, ptr %b) {
      %d = alloca ptr
      %e = alloca ptr
      store ptr %a, ptr %d
      %v = load i64, ptr %d
      store i64 %v, ptr %e
      %p = load ptr, ptr %e
      store i64 0, ptr %b
      ret void
    }"""
    changed, lines = retyped(text, DOUBLES, POINTERS)
    assert changed
    assert any(line.startswith("%v = load ptr, ptr %d") for line in lines)


def test_an_integer_that_is_no_null_is_no_pointer():
    text = """
    define void @f(ptr %a, i1 %c) {
      %d = alloca ptr
      store ptr %a, ptr %d
      %v = load i64, ptr %d
      %s = select i1 %c, i64 %v, i64 7
      store i64 %s, ptr %d
      ret void
    }"""
    changed, _ = retyped(text, DOUBLES, None)
    assert not changed


def test_an_address_kept_as_integer_is_left_alone():
    # The integer is what is stored, and the load it comes from is also stored to: bits and address at once.
    text = """
    define void @f(ptr %a, ptr %b) {
      %v = load i64, ptr %a
      %p = inttoptr i64 %v to ptr
      store double 1.0, ptr %p
      ret void
    }"""
    changed, lines = retyped(text, POINTERS, POINTERS)
    assert not changed
    assert any(line.startswith("%v = load i64") for line in lines)


def test_what_memory_holds_is_found_anew():
    """Nothing but the copy shows that the local variable holds a number."""
    text = """
    define void @f(ptr %a) {
      %d = alloca [2 x i64]
      %v = load i64, ptr %a
      store i64 %v, ptr %d
      ret void
    }"""
    unit = unit_of(text, "c", [DOUBLES])
    assert unit.memory_types.is_float_at(value(unit.function, "d"), types.DOUBLE)
