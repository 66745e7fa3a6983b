from __future__ import annotations

from irad.passes.request import MemoryType
from tests.passes.units import unit_of, value

HEAD = "declare noalias ptr @malloc(i64)\ndefine i32 @f(ptr noalias %r, ptr %a, i64 %i) {\n  %m = alloca [160 x i8]\n"


def layout(body: str) -> MemoryType | None:
    unit = unit_of(HEAD + body + "\n  ret i32 0\n}", "ccc")
    return unit.memory_types.layout(unit.points_to.mask(value(unit.function, "m")))


FIELD = """
  %at{n} = getelementptr [{stride} x i8], ptr %m, i64 %i
  %field{n} = getelementptr i8, ptr %at{n}, i64 {offset}
  %x{n} = load {type}, ptr %field{n}, align {align}
"""


def field(n: int, offset: int, stride: int = 9, type: str = "double", align: int = 1) -> str:
    return FIELD.format(n=n, offset=offset, stride=stride, type=type, align=align)


def test_a_number_behind_a_flag():
    assert layout(field(1, 1)) == MemoryType(9, ((1, "double"),))


def test_two_types_of_numbers():
    both = field(1, 0, 24, "float", 4) + field(2, 8, 24, "double", 8)
    assert layout(both) == MemoryType(24, ((0, "float"), (8, "double")))


def test_an_array_of_numbers_is_none_of_records():
    assert layout(field(1, 0, 8, align=8)) == MemoryType(8, ((0, "double"),))
    assert layout(field(1, 8, 16, align=1)) == MemoryType(8, ((0, "double"),))


def test_what_the_accesses_do_not_tell():
    assert layout(field(1, 1, 9) + field(2, 1, 10)) is None, "two strides"
    assert layout(field(1, 4, 9)) is None, "a number across the end of a record"
    overlapping = field(1, 1, 17) + field(2, 5, 17, "float")
    assert layout(overlapping) is None


def test_a_pointer_that_a_loop_advances():
    body = """
      br label %loop
    loop:
      %p = phi ptr [ %m, %0 ], [ %q, %loop ]
      %field = getelementptr i8, ptr %p, i64 1
      %x = load double, ptr %field, align 1
      %q = getelementptr i8, ptr %p, i64 9
      %c = icmp eq i64 %i, 0
      br i1 %c, label %loop, label %end
    end:
    """
    assert layout(body) == MemoryType(9, ((1, "double"),))
