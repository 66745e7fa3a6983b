from __future__ import annotations

import pytest

from irad.ir import types
from irad.ir.values import Undef, const_int
from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.mod_ref import ModRef
from irad.passes.request import MemoryType
from irad.rules.memory import pattern_of_copy
from tests.passes.units import DOUBLES, INTEGERS, POINTERS, points_to_of, registry, value

RECORD = MemoryType(16, ((0, "i64"), (8, "double")))

COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"


def memory_types_of(text: str, memory):
    function, points_to = points_to_of(text, memory)
    given = dict(zip(function.params, memory, strict=True))
    return function, points_to, find_memory_types(function, ModRef(points_to, registry()), given)


def test_an_argument_has_the_layout_of_the_request():
    text = "define void @f(ptr %a, ptr %b) {\n ret void\n}"
    function, points_to, found = memory_types_of(text, [RECORD, INTEGERS])
    a, b = function.params
    assert found.layout(points_to.mask(a)) == RECORD
    assert found.holds_floats(points_to.mask(a))
    assert not found.holds_floats(points_to.mask(b))
    assert found.layout(points_to.mask(a) | points_to.mask(b)) is None
    assert found.explain(a) == "records of 16 bytes: i64 at 0, double at 8"


def test_a_place_in_a_record():
    text = """
    define void @f(ptr %a, i64 %i) {
      %number = getelementptr { i64, double }, ptr %a, i64 %i, i32 0
      %float = getelementptr { i64, double }, ptr %a, i64 %i, i32 1
      %any = getelementptr double, ptr %a, i64 %i
      ret void
    }"""
    function, _, found = memory_types_of(text, [RECORD, None])
    places = [value(function, n) for n in ("number", "float", "any")]
    assert [found.is_float_at(p, types.DOUBLE) for p in places] == [False, True, True]
    assert not found.is_float_at(places[1], types.FLOAT)


def test_accesses_type_a_local_by_offset():
    text = """
    define void @f(double %x, i64 %i) {
      %d = alloca [2 x i64]
      %one = getelementptr i64, ptr %d, i64 1
      %any = getelementptr i64, ptr %d, i64 %i
      store double %x, ptr %one
      store float 1.0, ptr %one
      store i64 %i, ptr %d
      ret void
    }"""
    function, points_to, found = memory_types_of(text, [None, None])
    d, one, anywhere = (value(function, n) for n in ("d", "one", "any"))
    assert found.layout(points_to.mask(d)) is None  # two float types
    assert [found.is_float_at(p, types.DOUBLE) for p in (d, one, anywhere)] == [False, True, True]


DECLARED = """
%S = type {{ double, [2 x float], i32 }}
%U = type {{ double, %union.V }}
%union.V = type {{ i64 }}
define void @f(double %x, i64 %i) {{
  %s = alloca %S
  %u = alloca %U
  store double %x, ptr %s
  store double %x, ptr %u
  %p = getelementptr i8, ptr %s, i64 {place}
  %q = getelementptr float, ptr %p, i64 %i
  store float 1.0, ptr %q
  ret void
}}"""


@pytest.mark.parametrize(("place", "agrees"), [(8, True), (16, True), (10, False)])
def test_a_local_variable_holds_what_its_structure_declares_if_accesses_agree(place, agrees):
    function, points_to, found = memory_types_of(DECLARED.format(place=place), [None, None])
    s, u = (points_to.mask(value(function, name)) for name in "su")
    declared = MemoryType(24, ((0, "double"), (8, "float"), (12, "float"), (16, "i32")))
    assert (found.layout(s) == declared) == agrees
    assert found.layout(u) == MemoryType(8, ((0, "double"),))  # a union: by its accesses


def test_a_lone_float_type_is_an_array_of_it():
    text = "define void @f(float %x, i64 %i) {\n %d = alloca [2 x float]\n store float %x, ptr %d\n ret void\n}"
    function, points_to, found = memory_types_of(text, [None, None])
    assert found.layout(points_to.mask(value(function, "d"))) == MemoryType(4, ((0, "float"),))


def test_copies_hand_layouts_on_both_ways_and_along_a_chain():
    text = (
        COPY
        + """
    define void @f(ptr %a, i64 %n) {
      %d = alloca [4 x i64]
      %e = alloca [4 x i64]
      call void @llvm.memcpy.p0.p0.i64(ptr %e, ptr %d, i64 %n, i1 false)
      call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %d, i64 %n, i1 false)
      ret void
    }"""
    )
    function, points_to, found = memory_types_of(text, [RECORD, None])
    assert [found.layout(points_to.mask(value(function, n))) for n in "de"] == [RECORD, RECORD]
    assert found.holds_floats(points_to.mask(value(function, "e")))


def test_a_copy_of_a_number_between_the_places_of_an_array_is_no_array():
    text = (
        COPY
        + """
    define void @f(double %x, i64 %n) {
      %d = alloca [4 x i64]
      %e = alloca [4 x i64]
      %p = getelementptr i8, ptr %d, i64 4
      store double %x, ptr %p, align 4
      call void @llvm.memcpy.p0.p0.i64(ptr %e, ptr %d, i64 %n, i1 false)
      ret void
    }"""
    )
    function, points_to, found = memory_types_of(text, [None, None])
    assert [found.layout(points_to.mask(value(function, n))) for n in "de"] == [None, None]
    assert found.holds_floats(points_to.mask(value(function, "e")))


def test_where_pointers_are():
    text = """
    define void @f(ptr %a, ptr %b) {
      %d = alloca { i64, ptr }
      %at = getelementptr i8, ptr %d, i64 8
      store ptr %a, ptr %at
      ret void
    }"""
    function, points_to, found = memory_types_of(text, [DOUBLES, POINTERS])
    d, at = value(function, "d"), value(function, "at")
    assert found.holds_pointers & points_to.mask(d)
    assert not found.holds_pointers & points_to.mask(function.params[0])
    assert found.holds_pointers & points_to.mask(function.params[1])
    assert [found.is_pointer_at(p) for p in (d, at)] == [False, True]


@pytest.mark.parametrize("held", ["<2 x double>", "[2 x double]", "{ double, double }"])
def test_vectors_and_aggregates_count_as_their_elements(held):
    text = f"""
    define void @f({held} %v) {{
      %d = alloca {held}
      %second = getelementptr i8, ptr %d, i64 8
      store {held} %v, ptr %d
      ret void
    }}"""
    function, points_to, found = memory_types_of(text, [None])
    d, second = value(function, "d"), value(function, "second")
    assert found.holds_floats(points_to.mask(d))
    assert found.is_float_at(d, types.DOUBLE)
    assert found.is_float_at(second, types.DOUBLE)


def test_a_copy_of_a_float_is_a_float():
    text = (
        COPY
        + """
    define void @f(double %x) {
      %d = alloca i64
      %e = alloca i64
      store double %x, ptr %d
      call void @llvm.memcpy.p0.p0.i64(ptr %e, ptr %d, i64 8, i1 false)
      %bits = load i64, ptr %e
      ret void
    }"""
    )
    function, _, found = memory_types_of(text, [None])
    assert found.is_float_at(value(function, "e"), types.DOUBLE)


def test_integers_beside_floats_in_records_at_unknown_indices():
    text = """
    declare ptr @NRT_MemInfo_new_varsize(i64)
    define void @f(double %x, i64 %i, i64 %j) {
      %m = call ptr @NRT_MemInfo_new_varsize(i64 400)
      %slot = getelementptr i8, ptr %m, i64 24
      %d = load ptr, ptr %slot
      %entries = getelementptr i8, ptr %d, i64 40
      %hash = getelementptr { i64, double }, ptr %entries, i64 %i
      %key = getelementptr { i64, double }, ptr %entries, i64 %i, i32 1
      %other = getelementptr { i64, double }, ptr %entries, i64 %j, i32 1
      %any = getelementptr i64, ptr %entries, i64 %j
      store double %x, ptr %key
      ret void
    }"""
    function, _, found = memory_types_of(text, [None, None, None])
    places = [value(function, n) for n in ("hash", "key", "other", "any")]
    assert [found.is_float_at(p, types.DOUBLE) for p in places] == [False, True, True, True]


LISTS = """
declare i32 @numba_list_new(ptr, i64, i64)
declare i32 @numba_list_append(ptr, ptr)
declare ptr @numba_list_base_ptr(ptr)
"""
APPENDED = """
      %item = alloca { ptr, double }
      %at = getelementptr i8, ptr %item, i64 8
      store ptr %a, ptr %item
      store double %x, ptr %at
      %status = call i32 @numba_list_append(ptr %list, ptr %item)
      %items = call ptr @numba_list_base_ptr(ptr %list)
"""


def test_what_is_appended_tells_the_elements_of_a_list():
    text = f"""{LISTS}
    define void @f(ptr %a, double %x) {{
      %slot = alloca ptr
      %made = call i32 @numba_list_new(ptr %slot, i64 16, i64 0)
      %list = load ptr, ptr %slot
      {APPENDED}
      ret void
    }}"""
    function, points_to, found = memory_types_of(text, [None, None])
    items = points_to.mask(value(function, "items"))
    assert found.layout(items) == MemoryType(16, ((0, "ptr"), (8, "double")))
    assert found.holds_pointers & items


def test_an_item_that_bytes_are_copied_to_does_not_tell_the_elements_of_a_list():
    """There may be further numbers among them."""
    text = f"""{LISTS}{COPY}
    define void @f(ptr %a, double %x, ptr %other) {{
      %slot = alloca ptr
      %made = call i32 @numba_list_new(ptr %slot, i64 24, i64 0)
      %list = load ptr, ptr %slot
      {APPENDED.replace("{ ptr, double }", "{ ptr, double, double }")}
      call void @llvm.memcpy.p0.p0.i64(ptr %item, ptr %other, i64 24, i1 false)
      ret void
    }}"""
    function, points_to, found = memory_types_of(text, [None, None, None])
    assert found.layout(points_to.mask(value(function, "items"))) is None


def test_one_of_two_lists_gets_no_layout_from_what_may_go_to_the_other():
    text = f"""{LISTS}
    define void @f(ptr %a, double %x, i1 %c) {{
      %slot = alloca ptr
      %made = call i32 @numba_list_new(ptr %slot, i64 16, i64 0)
      %one = load ptr, ptr %slot
      %second = alloca ptr
      %made.too = call i32 @numba_list_new(ptr %second, i64 8, i64 0)
      %two = load ptr, ptr %second
      %list = select i1 %c, ptr %one, ptr %two
      {APPENDED}
      ret void
    }}"""
    function, points_to, found = memory_types_of(text, [None, None, None])
    items = points_to.mask(value(function, "items"))
    assert found.layout(items) is None
    assert found.holds_floats(items)


def test_a_copy_to_one_of_two_places_hands_no_layout_on():
    text = (
        COPY
        + """
    define void @f(ptr %a, i1 %c) {
      %d = alloca [2 x ptr]
      %e = alloca [2 x ptr]
      %p = select i1 %c, ptr %d, ptr %e
      call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %a, i64 16, i1 false)
      ret void
    }"""
    )
    function, points_to, found = memory_types_of(text, [RECORD, None])
    assert found.layout(points_to.mask(value(function, "d"))) != RECORD
    assert found.holds_floats(points_to.mask(value(function, "d")))
    assert found.common_layout(points_to.mask(function.params[0])) == RECORD


def test_a_pattern_as_a_pointer_into_it_sees_it():
    record = MemoryType(24, ((0, "float"), (8, "double"), (16, "double")))
    assert record.seen_from(8) == MemoryType(24, ((0, "double"), (8, "double"), (16, "float")))
    assert record.seen_from(12) is None  # inside a number
    assert record.floats_within(20) == ((0, "float"), (8, "double"))
    assert record.floats_within(30) == ((0, "float"), (8, "double"), (16, "double"), (24, "float"))


def test_a_copy_moves_what_both_ends_say():
    record, pair = MemoryType(24, ((0, "double"), (8, "float"))), MemoryType(16, ((0, "double"), (8, "float")))
    eight, many = const_int(types.I64, 8), Undef(types.I64)
    assert pattern_of_copy(record, None, many) == pattern_of_copy(None, record, many) == record
    assert pattern_of_copy(record, pair, eight) == MemoryType(8, ((0, "double"),))
    assert pattern_of_copy(record, pair, many) is None
    assert pattern_of_copy(record, INTEGERS, many) == INTEGERS
