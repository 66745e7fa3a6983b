from __future__ import annotations

from irad.passes.memory.objects import ObjectKind
from tests.passes.units import DOUBLES, INTEGERS, objects, points_to_of, value

DECLARE = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare ptr @NRT_MemInfo_new_varsize(i64)
declare ptr @NRT_MemInfo_varsize_realloc(ptr, i64)
declare ptr @malloc(i64)
declare ptr @mystery(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def points(text: str, *names: str, memory=None) -> list[set[str]]:
    function, points_to = points_to_of(DECLARE + text, memory)
    return [objects(points_to, value(function, name)) for name in names]


def test_arguments_and_locals_are_objects_and_geps_keep_them():
    text = """
    define void @f(ptr %a, ptr %b, i64 %i) {
      %l = alloca [2 x double]
      %p = getelementptr double, ptr %a, i64 %i
      %q = getelementptr double, ptr %l, i64 %i
      ret void
    }"""
    assert points(text, "p", "q") == [{"argument a"}, {"local l"}]


def test_select_and_phi_merge():
    text = """
    define void @f(ptr %a, ptr %b, i1 %c) {
    entry:
      %s = select i1 %c, ptr %a, ptr %b
      br i1 %c, label %one, label %two
    one:
      br label %two
    two:
      %p = phi ptr [ %a, %entry ], [ null, %one ]
      ret void
    }"""
    assert points(text, "s", "p") == [{"argument a", "argument b"}, {"argument a"}]


def test_a_loop_phi_that_feeds_itself():
    text = """
    define void @f(ptr %a, ptr %b, i1 %c) {
    entry:
      br label %loop
    loop:
      %p = phi ptr [ %a, %entry ], [ %q, %loop ]
      %q = phi ptr [ %b, %entry ], [ %p, %loop ]
      br i1 %c, label %loop, label %end
    end:
      ret void
    }"""
    both = {"argument a", "argument b"}
    assert points(text, "p", "q") == [both, both]


def test_a_descriptor_in_a_local_tells_its_fields_apart():
    text = """
    define void @f(ptr %a, ptr %b) {
      %d = alloca { ptr, ptr }
      %second = getelementptr { ptr, ptr }, ptr %d, i32 0, i32 1
      store ptr %a, ptr %d
      store ptr %b, ptr %second
      %again = getelementptr i8, ptr %d, i64 8
      %x = load ptr, ptr %d
      %y = load ptr, ptr %again
      ret void
    }"""
    assert points(text, "x", "y") == [{"argument a"}, {"argument b"}]


def test_an_unknown_offset_reads_and_writes_every_field():
    text = """
    define void @f(ptr %a, ptr %b, i64 %i) {
      %d = alloca [4 x ptr]
      %e = alloca [4 x ptr]
      %at = getelementptr ptr, ptr %d, i64 %i
      %in = getelementptr ptr, ptr %e, i64 %i
      %one = getelementptr ptr, ptr %e, i64 1
      store ptr %a, ptr %d
      store ptr %a, ptr %e
      store ptr %b, ptr %in
      %any = load ptr, ptr %at
      %x = load ptr, ptr %one
      %y = load ptr, ptr %e
      ret void
    }"""
    both = {"argument a", "argument b"}
    assert points(text, "any", "x", "y") == [{"argument a"}, {"argument b"}, both]


def test_a_pointer_stored_later_is_seen_by_an_earlier_load():
    # Flow-insensitive on purpose: the load may be in a loop.
    text = """
    define void @f(ptr %a) {
      %d = alloca ptr
      %x = load ptr, ptr %d
      store ptr %a, ptr %d
      ret void
    }"""
    assert points(text, "x") == [{"argument a"}]


def test_header_and_data_of_an_allocation_are_two_objects():
    text = """
    define void @f(i64 %n) {
      %m = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)
      %at = getelementptr i8, ptr %m, i64 24
      %d = load ptr, ptr %at
      %size.at = getelementptr i8, ptr %m, i64 32
      %size = load ptr, ptr %size.at
      ret void
    }"""
    function, points_to = points_to_of(DECLARE + text)
    header, data = points_to.mask(value(function, "m")), points_to.mask(value(function, "d"))
    assert objects(points_to, value(function, "m")) == {"header m"}
    assert objects(points_to, value(function, "d")) == {"allocation m"}
    assert points_to.mask(value(function, "size")) == 0
    assert not points_to.may_overlap(header, data)
    assert points_to.reachable(header) == header | data


def test_plain_memory_has_no_header():
    assert points("define void @f(i64 %n) {\n %m = call ptr @malloc(i64 %n)\n ret void\n}", "m") == [{"allocation m"}]


def test_a_reallocation_gives_the_data_of_its_header():
    text = """
    define void @f(i64 %n) {
      %m = call ptr @NRT_MemInfo_new_varsize(i64 %n)
      %d = call ptr @NRT_MemInfo_varsize_realloc(ptr %m, i64 %n)
      ret void
    }"""
    assert points(text, "m", "d") == [{"header m"}, {"allocation m"}]


def test_memcpy_moves_pointers_to_the_corresponding_place():
    text = """
    define void @f(ptr %a, ptr %b) {
      %from = alloca { ptr, ptr }
      %into = alloca { i64, ptr, ptr }
      %f1 = getelementptr i8, ptr %from, i64 8
      %i1 = getelementptr i8, ptr %into, i64 8
      %i2 = getelementptr i8, ptr %into, i64 16
      store ptr %a, ptr %from
      store ptr %b, ptr %f1
      call void @llvm.memcpy.p0.p0.i64(ptr %i1, ptr %from, i64 16, i1 false)
      %x = load ptr, ptr %i1
      %y = load ptr, ptr %i2
      %z = load ptr, ptr %into
      ret void
    }"""
    assert points(text, "x", "y", "z") == [{"argument a"}, {"argument b"}, set()]


def test_memcpy_to_an_unknown_place_may_land_anywhere():
    text = """
    define void @f(ptr %a, i64 %i) {
      %from = alloca ptr
      %into = alloca [4 x ptr]
      %at = getelementptr ptr, ptr %into, i64 %i
      store ptr %a, ptr %from
      call void @llvm.memcpy.p0.p0.i64(ptr %at, ptr %from, i64 8, i1 false)
      %x = load ptr, ptr %into
      ret void
    }"""
    assert points(text, "x") == [{"argument a"}]


def test_what_lies_beyond_an_argument_depends_on_what_it_holds():
    text = "define void @f(ptr %a) {\n %x = load ptr, ptr %a\n %y = load ptr, ptr %x\n ret void\n}"
    _, function = None, None
    function, points_to = points_to_of(text, [None])
    assert [objects(points_to, value(function, n)) for n in "xy"] == [{"reachable a"}] * 2
    function, points_to = points_to_of(text, [DOUBLES])
    assert objects(points_to, value(function, "x")) == set()


def test_the_content_of_the_return_slot():
    text = """
    define void @f(ptr %r, ptr %a) {
      %at = getelementptr i8, ptr %r, i64 8
      store ptr %a, ptr %at
      %x = load ptr, ptr %at
      %y = load ptr, ptr %r
      ret void
    }"""
    assert points(text, "x", "y") == [{"argument a"}, set()]


def test_pointers_survive_integer_arithmetic_and_aggregates():
    text = """
    define void @f(ptr %a, ptr %b) {
      %n = ptrtoint ptr %a to i64
      %m = add i64 %n, 8
      %p = inttoptr i64 %m to ptr
      %g = insertvalue { ptr, ptr } undef, ptr %a, 0
      %h = insertvalue { ptr, ptr } %g, ptr %b, 1
      %q = extractvalue { ptr, ptr } %h, 1
      %made = inttoptr i64 64 to ptr
      ret void
    }"""
    found = points(text, "p", "q", "made")
    assert found == [{"argument a"}, {"argument a", "argument b"}, {"unknown"}]


def test_a_callee_with_body_may_store_what_it_reaches_where_it_reaches():
    text = """
    define void @f(ptr %a, ptr %b, ptr %c) {
      %d = alloca ptr
      store ptr %a, ptr %d
      %r = call ptr @g(ptr %d, ptr %b)
      %x = load ptr, ptr %d
      %l = alloca ptr
      store ptr %c, ptr %l
      %y = load ptr, ptr %l
      ret void
    }
    define ptr @g(ptr %p, ptr %q) {
      store ptr %q, ptr %p
      ret ptr %q
    }"""
    reached = {"argument a", "argument b", "local d", "allocation r"}
    assert points(text, "r", "x", "y") == [reached, reached, {"argument c"}]


def test_an_unknown_callee_gives_an_unknown_pointer():
    text = "define void @f(ptr %a) {\n %x = call ptr @mystery(ptr %a)\n ret void\n}"
    assert points(text, "x") == [{"unknown"}]


def test_globals_point_to_what_they_are_initialised_with():
    text = """
    @data = internal constant [2 x double] [double 1.0, double 2.0]
    @table = internal constant ptr @data
    @slot = internal global ptr null
    define void @f() {
      %x = load ptr, ptr @table
      %y = load ptr, ptr @slot
      ret void
    }"""
    assert points(text, "x", "y") == [{"global data"}, {"unknown"}]


def test_what_may_overlap():
    text = """
    @data = internal global double 1.0
    define void @f(ptr noalias %r, ptr %a, ptr %b, i64 %n) {
      %l = alloca double
      %m = call ptr @malloc(i64 %n)
      store double 1.0, ptr @data
      %g = select i1 true, ptr @data, ptr null
      ret void
    }"""
    function, points_to = points_to_of(DECLARE + text)
    mask = {name: points_to.mask(value(function, name)) for name in "rablmg"}
    overlapping = {(x, y) for x in mask for y in mask if x < y and points_to.may_overlap(mask[x], mask[y])}
    assert overlapping == {("a", "b"), ("a", "g"), ("b", "g")}
    unknown = 1 << next(o.index for o in points_to.objects if o.kind is ObjectKind.UNKNOWN)
    assert [n for n in mask if not points_to.may_overlap(mask[n], unknown)] == ["r"]


def test_the_same_pointer_set_for_every_order_of_instructions():
    text = """
    define void @f(ptr %a, ptr %b) {
      %d = alloca ptr
      %e = alloca ptr
      %x = load ptr, ptr %e
      store ptr %x, ptr %d
      %y = load ptr, ptr %d
      store ptr %a, ptr %e
      store ptr %b, ptr %y
      ret void
    }"""
    assert points(text, "x", "y") == [{"argument a"}] * 2


def test_explain():
    text = """
    define void @f(ptr %a, ptr %b, i1 %c) {
      %s = select i1 %c, ptr %a, ptr %b
      %z = select i1 %c, ptr null, ptr null
      ret void
    }"""
    function, points_to = points_to_of(text, [DOUBLES, INTEGERS, None])
    assert points_to.explain(value(function, "s")) == "may point to argument a, argument b"
    assert points_to.explain(value(function, "z")) == "points to no object (null or undefined)"


def test_every_global_in_use_is_an_object():
    text = """
    @table = internal constant [2 x double] [double 1.0, double 2.0]
    @state = internal global double 0.0
    define void @f(double %x) {
      store double %x, ptr @state
      %y = load double, ptr getelementptr (i8, ptr @table, i64 8)
      ret void
    }"""
    function, points_to = points_to_of(text)
    pointers = [inst.operands[-1] for inst in function.instructions() if inst.operands]
    assert [objects(points_to, p) for p in pointers] == [{"global state"}, {"global table"}]


def test_an_unknown_callee_may_store_unknown_pointers():
    text = """
    define void @f(ptr %a) {
      %slot = alloca ptr
      %holder = alloca ptr
      store ptr %slot, ptr %holder
      %u = call ptr @mystery(ptr %holder)
      %x = load ptr, ptr %slot
      ret void
    }"""
    assert points(text, "x") == [{"unknown"}]


def test_a_list_is_a_struct_with_a_size_and_items_of_its_own():
    text = """
    declare i32 @numba_list_new(ptr, i64, i64)
    declare i32 @numba_list_append(ptr, ptr)
    declare ptr @numba_list_base_ptr(ptr)
    declare i64 @numba_list_size_address(ptr)
    define void @f(ptr %a) {
      %slot = alloca ptr
      %item = alloca ptr
      %made = call i32 @numba_list_new(ptr %slot, i64 8, i64 0)
      %list = load ptr, ptr %slot
      store ptr %a, ptr %item
      %status = call i32 @numba_list_append(ptr %list, ptr %item)
      %items = call ptr @numba_list_base_ptr(ptr %list)
      %found = load ptr, ptr %items
      %address = call i64 @numba_list_size_address(ptr %list)
      %size.slot = inttoptr i64 %address to ptr
      %size = load i64, ptr %size.slot
      ret void
    }"""
    found = points(text, "list", "items", "found", "size.slot", "size")
    assert found == [{"header made"}, {"allocation made"}, {"argument a"}, {"allocation made"}, set()]
    function, points_to = points_to_of(DECLARE + text)
    items, size = (points_to.mask(value(function, n)) for n in ("items", "size.slot"))
    assert not points_to.may_overlap(items, size)


def test_a_dictionary_keeps_keys_and_values_apart():
    text = """
    declare i32 @numba_dict_new_sized(ptr, i64, i64, i64)
    declare i32 @numba_dict_insert(ptr, ptr, i64, ptr, ptr)
    declare i64 @numba_dict_lookup(ptr, ptr, i64, ptr)
    declare void @numba_dict_iter(ptr, ptr)
    declare i32 @numba_dict_iter_next(ptr, ptr, ptr)
    define void @f(ptr %k, ptr %v) {
      %slot = alloca ptr
      %key = alloca ptr
      %value = alloca ptr
      %old = alloca ptr
      %out = alloca ptr
      %iterator = alloca [4 x i64]
      %made = call i32 @numba_dict_new_sized(ptr %slot, i64 0, i64 8, i64 8)
      %dict = load ptr, ptr %slot
      store ptr %k, ptr %key
      store ptr %v, ptr %value
      %status = call i32 @numba_dict_insert(ptr %dict, ptr %key, i64 1, ptr %value, ptr %old)
      %entry = call i64 @numba_dict_lookup(ptr %dict, ptr %key, i64 1, ptr %out)
      %found = load ptr, ptr %out
      call void @numba_dict_iter(ptr %iterator, ptr %dict)
      %more = call i32 @numba_dict_iter_next(ptr %iterator, ptr %key, ptr %value)
      %key.at = load ptr, ptr %key
      %value.at = load ptr, ptr %value
      ret void
    }"""
    found, key, kept = points(text, "found", "key.at", "value.at")
    assert found == {"argument v", "allocation made"}  # %value is used twice: what was inserted was either
    assert "argument v" not in key
    assert "argument k" not in kept


def test_an_index_is_no_pointer_and_an_address_is_made_up_last():
    text = """
    define void @f(ptr %a, ptr %b, i1 %c) {
    entry:
      br label %loop
    loop:
      %bits = phi i64 [ %start, %before ], [ %start, %loop ], [ 0, %entry ]
      %p = inttoptr i64 %bits to ptr
      %q = getelementptr i8, ptr %b, i64 %bits
      br i1 %c, label %loop, label %before
    before:
      %start = ptrtoint ptr %a to i64
      br label %loop
    }"""
    text = text.replace("[ %start, %loop ]", "[ %bits, %loop ]")
    assert points(text, "p", "q") == [{"argument a"}, {"argument b"}]


def test_a_callee_behind_a_pointer_moves_data_only_to_new_memory():
    text = """
    define void @f(ptr %callee, ptr %a) {
      %m = call ptr @NRT_MemInfo_alloc_aligned(i64 16, i32 32)
      %l = alloca ptr
      call void %callee(ptr %m, ptr %l, ptr %a)
      %field = getelementptr i8, ptr %m, i64 24
      %data = load ptr, ptr %field
      %other = load ptr, ptr %l
      ret void
    }"""
    (data, other) = points(text, "data", "other")
    assert "argument a" not in data
    assert "argument a" in other
