"""What the request states of memory that arguments point to: objects, offsets, layouts, derivatives."""

from __future__ import annotations

from irad.passes.memory.addresses import START, Position
from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.mod_ref import ModRef
from irad.passes.request import MemoryType
from irad.ruleset.memory_type import MemoryType as Stated
from tests.passes.units import DOUBLES, INTEGERS, points_to_of, registry, value

INNER = Stated(16, ((0, "ptr"), (8, "i64")), declared=((0, DOUBLES),), single=True)
PAYLOAD = Stated(
    32,
    ((0, "ptr"), (8, "ptr"), (16, "double"), (24, "ptr")),
    declared=(
        (0, DOUBLES),
        (8, INTEGERS),
        (24, Stated(16, ((0, "ptr"), (8, "i64")), declared=((0, DOUBLES),), single=True)),
    ),
    single=True,
)
HEADER = Stated(48, (), declared=((24, PAYLOAD),), single=True)
ITEMS = Stated(16, ((0, "ptr"), (8, "double")), declared=((0, DOUBLES),))


def masks(text: str, memory: MemoryType, *names: str):
    function, points_to = points_to_of(text, [memory, None][: text.count("%i)") + 1])
    found = find_memory_types(function, ModRef(points_to, registry()), {function.params[0]: memory})
    return points_to, found, [points_to.mask(value(function, name)) for name in names]


FIELDS = """
define double @f(ptr %o) {
  %a = load ptr, ptr %o
  %n.slot = getelementptr i8, ptr %o, i64 8
  %n = load ptr, ptr %n.slot
  %inner.slot = getelementptr i8, ptr %o, i64 24
  %inner = load ptr, ptr %inner.slot
  %b = load ptr, ptr %inner
  %x = load double, ptr %a
  %y = load double, ptr %b
  %s = fadd double %x, %y
  ret double %s
}"""


def test_each_declared_place_is_an_object_of_its_own():
    points_to, found, (a, n, inner, b) = masks(FIELDS, PAYLOAD, "a", "n", "inner", "b")
    assert len({a, n, inner, b}) == 4
    assert all(mask.bit_count() == 1 for mask in (a, n, inner, b))
    assert found.layout(a) == found.layout(b) == DOUBLES
    assert found.layout(n) == INTEGERS
    assert found.layout(inner) == MemoryType(16, ((0, "ptr"), (8, "i64"))), "without what it leads to"
    assert points_to.may_overlap(a, b), "the caller may pass one array for both"


def test_what_a_single_pointer_leads_to_is_known_by_offset():
    """A loaded address of fields is the start of an object, so offsets from there are known."""
    text = """
    define double @f(ptr %header) {
      %slot = getelementptr i8, ptr %header, i64 24
      %o = load ptr, ptr %slot
      %a = load ptr, ptr %o
      %n.slot = getelementptr i8, ptr %o, i64 8
      %n = load ptr, ptr %n.slot
      %x = load double, ptr %a
      ret double %x
    }"""
    _, found, (a, n) = masks(text, HEADER, "a", "n")
    assert (found.layout(a), found.layout(n)) == (DOUBLES, INTEGERS)
    assert a & n == 0


def test_items_lead_wherever_they_lie():
    text = """
    define double @f(ptr %items, i64 %i) {
      %slot = getelementptr [2 x double], ptr %items, i64 3
      %p = load ptr, ptr %slot
      %other = getelementptr [2 x double], ptr %items, i64 %i
      %q = load ptr, ptr %other
      %x = load double, ptr %p
      ret double %x
    }"""
    _, found, (p, q) = masks(text, ITEMS, "p", "q")
    assert p == q
    assert found.layout(p) == DOUBLES


def test_other_pointers_lead_nowhere():
    text = """
    define void @f(ptr %o) {
      %slot = getelementptr i8, ptr %o, i64 16
      %p = load ptr, ptr %slot
      ret void
    }"""
    _, _, (p,) = masks(text, PAYLOAD, "p")
    assert p == 0


def test_integers_before_items():
    payload = Stated(16, ITEMS.fields, declared=ITEMS.declared, integer_prefix=24)
    text = """
    define double @f(ptr %header, i64 %i) {
      %slot = getelementptr i8, ptr %header, i64 24
      %o = load ptr, ptr %slot
      %first = getelementptr i8, ptr %o, i64 24
      %place = getelementptr [2 x double], ptr %first, i64 %i
      %p = load ptr, ptr %place
      %x = load double, ptr %p
      ret double %x
    }"""
    header = Stated(48, (), declared=((24, payload),), single=True)
    _, found, (o, p) = masks(text, header, "o", "p")
    assert found.layout(o) is None
    assert found.layout(p) == DOUBLES
    assert found.prefixes[o.bit_length() - 1] == 24


def test_a_pattern_says_where_pointers_are():
    """The pattern is what a callee knows: a header without fields would hold no pointers there."""
    assert HEADER.pattern() == MemoryType(48, ((24, "ptr"),))
    assert HEADER.pattern().holds_unknown_pointers()
    assert PAYLOAD.pattern() == MemoryType(32, PAYLOAD.fields)
    assert DOUBLES.pattern() is DOUBLES


def test_a_pointer_into_a_single_object_keeps_its_place_in_a_variable():
    """Only what the request declares points to the start; what the function stores points where it did."""
    text = """
    define double @f(ptr %o, i1 %c) {
      %variable = alloca ptr
      %slot = getelementptr i8, ptr %o, i64 24
      %inner = load ptr, ptr %slot
      %n = getelementptr i8, ptr %inner, i64 8
      store ptr %n, ptr %variable
      %again = load ptr, ptr %variable
      %x.place = getelementptr i8, ptr %o, i64 16
      %either = select i1 %c, ptr %o, ptr %x.place
      %second = alloca ptr
      store ptr %either, ptr %second
      %kept = load ptr, ptr %second
      %x = load double, ptr %kept
      ret double %x
    }"""
    function, points_to = points_to_of(text, [PAYLOAD, None])
    place = {name: points_to.position(value(function, name)) for name in ("inner", "again", "kept")}
    assert place["inner"] == START
    assert place["again"] == Position(8, 0)
    assert place["kept"] == Position(0, 16, among=(0, 16))
