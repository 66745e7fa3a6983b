from __future__ import annotations

import pytest

from irad.ir.module import Function, Module
from irad.passes.memory.addresses import START
from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.memory.signatures import BOOKKEEPING, kind_of, kinds_behind, match_signatures, takes_no_numbers
from irad.passes.request import MemoryType, Signature
from tests.passes.units import DOUBLES, INTEGERS, objects, parsed, registry, value

ARRAYS = MemoryType(8, ((0, "ptr"),), behind=((None, DOUBLES),))
HEADER = MemoryType(48, (), behind=((24, DOUBLES),), is_header=True)
RESULT = MemoryType(16, ((0, "ptr"), (8, "ptr")), behind=((0, MemoryType(8, ())), (8, DOUBLES)))

TEXT = """
define i32 @caller(ptr %a, ptr %n) {
  %slot = alloca [2 x ptr]
  %status = call i32 @callee.specialized.1(ptr %slot, ptr %a, ptr %n)
  %place = getelementptr i8, ptr %slot, i64 8
  %got = load ptr, ptr %place
  %other = load ptr, ptr %slot
  ret i32 %status
}
define internal i32 @callee.specialized.1(ptr %out, ptr %x, ptr %i) {
  store ptr %x, ptr %out
  store ptr %i, ptr %out
  ret i32 0
}
"""
STATED = Signature("callee", (("out", RESULT), ("x", DOUBLES), ("i", INTEGERS)))


def test_kinds():
    assert kind_of(None) is None
    assert kind_of(MemoryType(8, ((0, "ptr"),))) is None
    assert kind_of(DOUBLES) == ("double",)
    assert kind_of(INTEGERS) == ("integers",)
    assert kind_of(MemoryType(8, ())) == BOOKKEEPING
    assert kind_of(HEADER) == HEADER
    assert kind_of(MemoryType(8, ((0, "double"),), integer_prefix=24)) != kind_of(DOUBLES)
    assert [kind for kind, _ in kinds_behind((HEADER, None, RESULT))] == [("double",), BOOKKEEPING]


def test_copies_of_a_function_have_its_signature():
    module, _ = parsed(TEXT)
    [(function, memory)] = match_signatures(module, [STATED, Signature("gone", ())]).items()
    assert function.name == "callee.specialized.1"
    assert memory == (RESULT, DOUBLES, INTEGERS)


SLOT = MemoryType(8, ((0, "ptr"),), behind=((0, INTEGERS),))


@pytest.mark.parametrize(
    ("declared", "result", "holds", "takes_none"),
    [
        ("ptr %a, i64 %n", "void", SLOT, True),
        ("ptr %a, i64 %n", "i32", MemoryType(8, ()), True),
        ("ptr %a, double %n", "void", SLOT, False),
        ("ptr %a, i64 %n", "double", SLOT, False),
        ("ptr %a, i64 %n", "ptr", SLOT, False),
        ("ptr %a, i64 %n", "void", None, False),
        ("ptr %a, i64 %n", "void", DOUBLES, False),
        ("ptr %a, i64 %n", "void", ARRAYS, False),
        ("ptr %a, i64 %n", "void", MemoryType(8, ((0, "ptr"),)), False),
        ("ptr %a, ptr %n", "void", SLOT, False),
    ],
)
def test_functions_that_take_no_numbers(declared, result, holds, takes_none):
    module, function = parsed(f"define {result} @f({declared}) {{\nunreachable\n}}")
    declared = [Signature("f", (("a", holds),))] if holds is not None else []
    assert takes_no_numbers(function, match_signatures(module, declared)) is takes_none


def test_a_callee_stores_pointers_where_they_belong():
    module, function = parsed(TEXT)
    given = dict(zip(function.params, (DOUBLES, INTEGERS), strict=True))
    found = find_objects(function, given, registry(), signatures=match_signatures(module, [STATED]))
    assert objects(found, value(function, "got")) == {"argument a", "allocation status"}
    assert objects(found, value(function, "other")) == {"allocation status"}
    undeclared = find_objects(function, given, registry())
    assert {"argument a", "argument n", "local slot"} <= objects(undeclared, value(function, "got"))


@pytest.mark.parametrize(("leads_to", "is_shared"), [(ARRAYS, True), (DOUBLES, False)])
def test_parameters_share_containers_that_lie_behind_them(leads_to: MemoryType, is_shared: bool):
    """What one stores there another loads; numbers point nowhere, and that they may be the same is an overlap."""
    _, function = parsed(
        """
        define void @f(ptr %p, ptr %q) {
          %a = getelementptr i8, ptr %p, i64 24
          %x = load ptr, ptr %a
          %b = getelementptr i8, ptr %q, i64 24
          %y = load ptr, ptr %b
          ret void
        }
        """
    )
    header = MemoryType(48, (), behind=((24, leads_to),), is_header=True)
    found = find_objects(function, dict.fromkeys(function.params, header), registry())
    x, y = (found.mask(value(function, name)) for name in "xy")
    assert (x == y) is is_shared
    assert found.may_overlap(x, y)
    assert {found.position(value(function, name)) for name in "xy"} == {START}


FILLED = """
define i32 @caller(ptr %a) {
  %slot = alloca [3 x ptr]
  %status = call i32 @callee(ptr %slot, ptr %a)
  %place = getelementptr i8, ptr %slot, i64 8
  %numbers = load ptr, ptr %place
  %number = load double, ptr %numbers
  %after = getelementptr i8, ptr %slot, i64 16
  %order = load ptr, ptr %after
  %owner = load ptr, ptr %slot
  ret i32 %status
}
define weak_odr i32 @callee(ptr %out, ptr %x) { ret i32 0 }
"""
THREE = MemoryType(24, (*RESULT.fields, (16, "ptr")), behind=(*RESULT.behind, (16, INTEGERS)))


def filled() -> tuple[Module, Function]:
    """The caller of a function that is known to return new memory."""
    module, caller = parsed(FILLED)
    module.functions["callee"].attributes += ('"irad.reads"="1"', '"irad.writes"="0"', '"irad.fills"="0"')
    return module, caller


def test_new_memory_of_a_callee_with_effects_is_of_the_kinds_that_its_signature_states():
    module, function = filled()
    declared = match_signatures(module, [Signature("callee", (("out", THREE), ("x", DOUBLES)))])
    given = {function.params[0]: DOUBLES}
    found = find_objects(function, given, registry(), signatures=declared)
    masks = [found.mask(value(function, name)) for name in ("owner", "numbers", "order")]
    assert all(mask.bit_count() == 1 for mask in masks)
    assert len(set(masks)) == 3
    types = find_memory_types(function, ModRef(found, registry()), given)
    assert types.layout(masks[1]) == DOUBLES
    assert [types.holds_floats(mask) for mask in masks] == [False, True, False]
    assert found.contents[masks[1].bit_length() - 1] == 0


def test_of_other_new_memory_nothing_is_known():
    _, function = filled()
    given = {function.params[0]: DOUBLES}
    found = find_objects(function, given, registry())
    (mask,) = {found.mask(value(function, name)) for name in ("owner", "numbers", "order")}
    types = find_memory_types(function, ModRef(found, registry()), given)
    assert types.layout(mask) is None
    assert types.holds_floats(mask)
    assert found.contents[mask.bit_length() - 1] == mask


def test_memory_that_a_callee_fills_has_the_numbers_that_the_signature_states():
    """A copy of the records moves both; what the function itself stores would show only one of them."""
    module, function = parsed("""
    define void @f(double %x, i64 %i) {
      %room = alloca [8 x i64]
      %at = getelementptr { double, i64 }, ptr %room, i64 %i
      store double %x, ptr %at
      call void @fill(ptr %room)
      ret void
    }
    define void @fill(ptr %records) {
      store float 1.0, ptr %records
      ret void
    }""")
    records = MemoryType(16, ((0, "double"), (8, "float")))
    signatures = match_signatures(module, [Signature("fill", (("records", records),))])
    points_to = find_objects(function, {}, registry(), signatures=signatures)
    found = find_memory_types(function, ModRef(points_to, registry()), {})
    assert found.layout(points_to.mask(value(function, "room"))) == records
