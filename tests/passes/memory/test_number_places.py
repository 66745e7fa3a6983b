from __future__ import annotations

from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.number_places import number_places
from tests.passes.units import points_to_of, registry, value


def test_bytes_of_the_callers_that_are_not_accessed():
    """Numbers may lie there: that a function clears them without looking does not tell."""
    text = """
    declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
    define double @f(ptr %theirs) {
      %mine = alloca [4 x i64]
      %first = getelementptr i8, ptr %mine, i64 8
      store double 1.0, ptr %first
      %second = getelementptr i8, ptr %theirs, i64 8
      %x = load double, ptr %second
      %third = getelementptr i8, ptr %theirs, i64 16
      %p = load ptr, ptr %third
      call void @llvm.memset.p0.i64(ptr %theirs, i8 0, i64 24, i1 false)
      ret double %x
    }"""
    function, points_to = points_to_of(text, [None])
    found = find_memory_types(function, ModRef(points_to, registry()), dict.fromkeys(function.params))
    (theirs,) = function.params
    first, second = value(function, "first"), value(function, "second")
    assert number_places(found, second, 16).floats() == ((0, "double"),)  # a number and a pointer
    assert number_places(found, theirs).floats() == ((8, "double"),)
    assert number_places(found, theirs, 24) is None
    assert number_places(found, second, 17) is None
    assert number_places(found, first, 24).floats() == ((0, "double"),)  # its own memory: nothing else is there
