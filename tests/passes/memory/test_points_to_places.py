"""Where in their objects pointers point that are loaded from memory."""

from __future__ import annotations

import pytest

from irad.ir.instructions import Store
from irad.passes.memory.addresses import ANYWHERE, Position
from tests.passes.units import objects, points_to_of, value

ALLOCATE = "declare ptr @NRT_MemInfo_alloc(i64)\ndeclare ptr @malloc(i64)\ndeclare void @unknown(ptr)\n"

NODES = (
    ALLOCATE
    + """
define void @f(i64 %n, i1 %c) {
entry:
  %first = call ptr @malloc(i64 16)
  br label %loop
loop:
  %last = phi ptr [ %first, %entry ], [ %made, %loop ]
  %made = call ptr @malloc(i64 16)
  %next = getelementptr i8, ptr %last, i64 8
  store ptr %made, ptr %next
  br i1 %c, label %loop, label %walk
walk:
  %node = phi ptr [ %first, %loop ], [ %following, %walk ]
  %link = getelementptr i8, ptr %node, i64 8
  %following = load ptr, ptr %link
  %field = getelementptr i8, ptr %following, i64 8
  br i1 %c, label %walk, label %end
end:
  ret void
}
"""
)


def place(text: str, name: str) -> Position:
    function, points_to = points_to_of(text)
    return points_to.position(value(function, name))


def test_what_is_read_back_from_nodes_is_a_node():
    assert place(NODES, "following") == Position(0, 0)
    assert place(NODES, "node") == Position(0, 0)
    assert place(NODES, "field") == Position(8, 0)


def test_another_address_that_is_stored_may_be_read_back():
    text = NODES.replace("store ptr %made, ptr %next", "store ptr %next, ptr %next")
    assert place(text, "following") == Position(8, 0)
    assert place(text, "node") == Position(0, 8, among=(0, 8))


def test_either_of_two_stored_addresses_may_be_read_back():
    text = NODES.replace("store ptr %made, ptr %next", "store ptr %made, ptr %next\n  store ptr %next, ptr %next")
    assert place(text, "following") == Position(0, 8, among=(0, 8))
    assert place(text, "node") == Position(0, 8, among=(0, 8))


def test_other_code_may_store_another_address():
    text = NODES.replace(
        "  store ptr %made, ptr %next\n", "  store ptr %made, ptr %next\n  call void @unknown(ptr %made)\n"
    )
    assert place(text, "following") == ANYWHERE


def test_an_address_may_be_stored_as_an_integer():
    text = NODES.replace(
        "  store ptr %made, ptr %next\n",
        "  %bits = ptrtoint ptr %made to i64\n  %moved = add i64 %bits, 8\n  store i64 %moved, ptr %next\n",
    )
    assert place(text, "following") == ANYWHERE


ITEMS = (
    ALLOCATE
    + """
define void @f(i64 %n, i64 %i, i64 %k) {
  %items = call ptr @malloc(i64 %n)
  %a = call ptr @malloc(i64 16)
  %b = call ptr @malloc(i64 16)
  %item = getelementptr { ptr, ptr }, ptr %items, i64 %i
  %second = getelementptr i8, ptr %item, i64 8
  store ptr %a, ptr %item
  store ptr %b, ptr %second
  %scaled = shl i64 %k, 4
  %other = getelementptr i8, ptr %items, i64 %scaled
  %x = load ptr, ptr %other
  %beside = getelementptr i8, ptr %other, i64 8
  %y = load ptr, ptr %beside
  %any = getelementptr ptr, ptr %items, i64 %k
  %z = load ptr, ptr %any
  ret void
}
"""
)


def test_pointers_of_items_are_told_apart():
    function, points_to = points_to_of(ITEMS)
    assert objects(points_to, value(function, "x")) == {"allocation a"}
    assert objects(points_to, value(function, "y")) == {"allocation b"}
    assert objects(points_to, value(function, "z")) == {"allocation a", "allocation b"}


HEADERS = (
    ALLOCATE
    + """
define void @f(i64 %n, i64 %i, i1 %c) {
  %one = call ptr @NRT_MemInfo_alloc(i64 %n)
  %two = call ptr @NRT_MemInfo_alloc(i64 %n)
  %either = select i1 %c, ptr %one, ptr %two
  %slot = getelementptr i8, ptr %either, i64 24
  %data = load ptr, ptr %slot
  %field = getelementptr i8, ptr %data, i64 8
  ret void
}
"""
)


def test_data_is_found_through_one_of_several_headers():
    assert place(HEADERS, "data") == Position(0, 0)
    assert place(HEADERS, "field") == Position(8, 0)


COPIES = (
    ALLOCATE
    + """
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(i64 %n, i64 %i) {
  %items = call ptr @malloc(i64 %n)
  %a = call ptr @malloc(i64 16)
  %first = getelementptr i8, ptr %items, i64 0
  %second = getelementptr i8, ptr %items, i64 8
  store ptr %a, ptr %first
  call void @llvm.memmove.p0.p0.i64(ptr %second, ptr %first, i64 %n, i1 false)
  %late = getelementptr i8, ptr %items, i64 800000
  %x = load ptr, ptr %late
  %odd = getelementptr i8, ptr %items, i64 4
  ret void
}
"""
)


def test_a_copy_within_an_object_ends():
    """Each place that a pointer is copied to is copied in turn: too many places are not told apart any more."""
    function, points_to = points_to_of(COPIES)
    assert objects(points_to, value(function, "x")) == {"allocation a"}


TREE = (
    ALLOCATE
    + """
define void @f(i64 %n, i1 %c, i1 %d) {
entry:
  %root = call ptr @malloc(i64 32)
  br label %insert
insert:
  %new = call ptr @malloc(i64 32)
  br label %descend
descend:
  %p = phi ptr [ %root, %insert ], [ %child, %descend ]
  %count = getelementptr i8, ptr %p, i64 8
  %left = getelementptr i8, ptr %p, i64 16
  %right = getelementptr i8, ptr %p, i64 24
  %link = select i1 %d, ptr %left, ptr %right
  %child = load ptr, ptr %link
  br i1 %c, label %descend, label %leaf
leaf:
  store ptr %new, ptr %link
  br i1 %d, label %insert, label %end
end:
  ret void
}
"""
)


def test_a_loop_may_store_to_the_memory_it_descends_to():
    """Where a node is stored depends on where the nodes lie that were stored before."""
    assert place(TREE, "child") == Position(0, 0)
    assert place(TREE, "p") == Position(0, 0)
    assert place(TREE, "count") == Position(8, 0)
    assert place(TREE, "link") == Position(16, 8, among=(16, 24))
    function, points_to = points_to_of(TREE)
    (root, _) = points_to.of(value(function, "p"))
    assert set(points_to.parts[root.index]) == {Position(16, 0), Position(24, 0)}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("store ptr %count, ptr %link", Position(0, 8)),
        ("%moved = getelementptr i8, ptr %new, i64 %n\n  store ptr %moved, ptr %link", ANYWHERE),
        ("call void @unknown(ptr %new)", ANYWHERE),
        ("call void @unknown(ptr %p)", ANYWHERE),
        ("%bits = ptrtoint ptr %new to i64\n  %odd = or i64 %bits, 1\n  store i64 %odd, ptr %link", ANYWHERE),
        (
            "%pair = insertvalue { ptr, ptr } poison, ptr %count, 1\n  store { ptr, ptr } %pair, ptr %left",
            Position(0, 8),
        ),
    ],
)
def test_another_address_in_the_nodes_moves_the_loop_that_descends(stored: str, expected: Position):
    text = TREE.replace("store ptr %new, ptr %link", f"store ptr %new, ptr %link\n  {stored}")
    assert place(text, "child") == expected
    assert place(text, "count") == expected


TWO = (
    ALLOCATE
    + """
define void @f(i64 %n, i1 %c) {
entry:
  %a = call ptr @malloc(i64 32)
  %b = call ptr @malloc(i64 32)
  br label %loop
loop:
  %p = phi ptr [ %a, %entry ], [ %next, %loop ]
  %q = phi ptr [ %b, %entry ], [ %inner, %loop ]
  %link = getelementptr i8, ptr %p, i64 8
  %end = getelementptr i8, ptr %q, i64 8
  store ptr %a, ptr %link
  store ptr %end, ptr %end
  %next = load ptr, ptr %link
  %inner = load ptr, ptr %end
  br i1 %c, label %loop, label %done
done:
  ret void
}
"""
)


def test_one_list_does_not_blur_another():
    assert place(TWO, "next") == Position(0, 0)
    assert place(TWO, "inner") == Position(0, 8)


VECTORS = (
    ALLOCATE
    + """
define void @f(i64 %n) {
  %a = call ptr @malloc(i64 16)
  %b = call ptr @malloc(i64 16)
  %m = call ptr @malloc(i64 16)
  %second = getelementptr i8, ptr %m, i64 8
  %u = insertelement <2 x ptr> poison, ptr %a, i32 0
  %v = insertelement <2 x ptr> %u, ptr %b, i32 1
  store <2 x ptr> %v, ptr %m
  %x = load ptr, ptr %second
  %w = load <2 x ptr>, ptr %m
  %y = extractelement <2 x ptr> %w, i32 1
  ret void
}
"""
)


@pytest.mark.parametrize("name", ["x", "y"])
def test_pointers_in_vectors_lie_beside_each_other(name: str):
    function, points_to = points_to_of(VECTORS)
    assert objects(points_to, value(function, name)) == {"allocation a", "allocation b"}


@pytest.mark.parametrize(
    "exchange",
    ["atomicrmw xchg ptr %m, ptr %a seq_cst", "cmpxchg ptr %m, ptr null, ptr %a seq_cst seq_cst"],
)
def test_an_atomic_exchange_stores_an_address(exchange: str):
    text = f"""{ALLOCATE}
    define void @f() {{
      %a = call ptr @malloc(i64 16)
      %m = call ptr @malloc(i64 16)
      %old = {exchange}
      %x = load ptr, ptr %m
      ret void
    }}"""
    function, points_to = points_to_of(text)
    assert objects(points_to, value(function, "x")) == {"allocation a"}


def test_a_global_variable_is_its_start():
    text = """
    @table = global [2 x double] zeroinitializer
    define ptr @f() {
      %second = getelementptr double, ptr @table, i64 1
      %x = load double, ptr %second
      store double %x, ptr @table
      ret ptr %second
    }"""
    function, points_to = points_to_of(text)
    stores = [inst for inst in function.instructions() if isinstance(inst, Store)]
    assert points_to.position(stores[0].operands[1]) == Position(0, 0)
