from __future__ import annotations

from irad.passes.request import MemoryType
from irad.passes.rule_context import RuleContext
from irad.passes.unit import Unit
from tests.passes.units import DOUBLES, unit_of, value

TEXT = """
define void @f(ptr noalias %records, ptr noalias %lists, i64 %i) {
entry:
  %at = getelementptr { i64, double, float, i32 }, ptr %records, i64 0, i32 1
  %some = getelementptr { i64, double, float, i32 }, ptr %records, i64 %i, i32 2
  %unknown = getelementptr i8, ptr %records, i64 %i
  %z = load double, ptr %at
  %list = load ptr, ptr %lists
  %element = getelementptr double, ptr %list, i64 %i
  store double %z, ptr %element
  store i8 0, ptr %unknown
  store float 0.0, ptr %some
  ret void
}
"""
RECORDS = MemoryType(24, ((8, "double"), (16, "float")))
LISTS = MemoryType(8, ((0, "ptr"),), behind=((0, DOUBLES),))


class Around(RuleContext):
    """Layouts and values that a rule asks for, in one function."""

    __slots__ = ("_unit",)

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    @property
    def unit(self) -> Unit:
        return self._unit


def test_layouts():
    unit = unit_of(TEXT, "ssc", [RECORDS, LISTS, None])
    around = Around(unit)
    layouts = {name: around.layout(value(unit.function, name)) for name in ("records", "at", "some", "unknown", "list")}
    assert layouts == {
        "records": RECORDS,
        "at": MemoryType(24, ((0, "double"), (8, "float"))),
        "some": MemoryType(24, ((0, "float"), (16, "double"))),
        "unknown": RECORDS,
        "list": DOUBLES,
    }
    assert around.layout(value(unit.function, "lists"), 0) == DOUBLES


def test_accesses_tell_the_places_of_numbers_where_no_layout_is_known():
    text = """
    define void @f(double %x) {
      %array = alloca [4 x double]
      %pair = alloca [2 x i64]
      %second = getelementptr i64, ptr %pair, i64 1
      store double %x, ptr %array
      store double %x, ptr %pair
      store float 1.0, ptr %second
      ret void
    }"""
    unit = unit_of(text, "c")
    around, array, pair = Around(unit), value(unit.function, "array"), value(unit.function, "pair")
    assert around.number_places(array) == around.layout(array) == DOUBLES  # all elements, not only the first
    assert around.layout(pair) is None
    found = around.number_places(pair)
    assert found is not None
    assert found.fields == ((0, "double"), (8, "float"))
