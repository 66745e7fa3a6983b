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
