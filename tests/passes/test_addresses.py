from __future__ import annotations

import pytest

from irad.passes.addresses import ANYWHERE, Position, offset_modulo, position
from tests.passes.units import parsed, value

TEXT = """
%pair = type { i32, double }
define void @f(ptr %a, i64 %i, i1 %c) {
entry:
  %first = getelementptr i8, ptr %a, i64 20
  %field = getelementptr %pair, ptr %first, i64 2, i32 1
  %back = getelementptr double, ptr %field, i64 -1
  %element = getelementptr double, ptr %first, i64 %i
  %row = getelementptr [4 x float], ptr %a, i64 %i, i64 3
  %same = select i1 %c, ptr %first, ptr %first
  %other = select i1 %c, ptr %first, ptr %a
  %loaded = load ptr, ptr %a
  %inner = getelementptr i8, ptr %loaded, i64 8
  br label %loop
loop:
  %p = phi ptr [ %first, %entry ], [ %next, %loop ]
  %next = getelementptr %pair, ptr %p, i64 3
  %at = getelementptr i8, ptr %p, i64 4
  br i1 %c, label %loop, label %end
end:
  ret void
}
"""


@pytest.mark.parametrize(
    ("name", "stride", "offset"),
    [
        ("a", None, 0),
        ("first", None, 20),
        ("field", None, 20 + 32 + 8),
        ("back", None, 52),
        ("element", None, None),
        ("element", 8, 4),  # 20 mod 8
        ("element", 16, None),  # steps of 8 bytes do not keep the place in records of 16
        ("row", None, None),
        ("row", 16, 12),
        ("row", 8, 4),
        ("same", None, 20),
        ("other", None, None),
        ("other", 20, 0),  # 20 and 0 agree modulo 20
        ("loaded", None, None),
        ("loaded", 16, 0),  # data pointers lead to the start of a record
        ("inner", 16, 8),
        ("p", None, None),  # 20, 68, 116, …
        ("p", 16, 4),
        ("at", 16, 8),
        ("p", 48, 20),
        ("p", 32, None),  # 48 is no multiple of 32
    ],
)
def test_offsets(name, stride, offset):
    _, function = parsed(TEXT)
    assert offset_modulo(value(function, name), stride) == offset


def test_bases_are_starts():
    _, function = parsed(TEXT)
    loaded, inner = value(function, "loaded"), value(function, "inner")
    assert offset_modulo(inner, None, {loaded}) == 8


def test_a_long_chain_is_given_up():
    steps = "\n".join(f"  %p{i + 1} = getelementptr i8, ptr %p{i}, i64 1" for i in range(140))
    _, function = parsed(f"define void @f(ptr %p0) {{\n{steps}\n  ret void\n}}")
    assert offset_modulo(value(function, "p5"), None) == 5
    assert offset_modulo(value(function, "p140"), None) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", Position(0, 0)),
        ("field", Position(20 + 32 + 8, 0)),
        ("element", Position(4, 8)),
        ("row", Position(12, 16)),
        ("same", Position(20, 0)),
        ("other", Position(0, 20)),
        ("p", Position(20, 48)),
        ("next", Position(20, 48)),
        ("at", Position(24, 48)),
        ("loaded", ANYWHERE),
        ("inner", ANYWHERE),
    ],
)
def test_a_position_is_an_offset_and_a_period(name: str, expected: Position) -> None:
    _, function = parsed(TEXT)
    assert position(value(function, name)) == expected


@pytest.mark.parametrize(
    ("a", "b", "together"),
    [
        (Position(8, 0), Position(8, 0), True),
        (Position(8, 0), Position(16, 0), False),
        (Position(8, 0), Position(0, 16), False),
        (Position(40, 0), Position(8, 16), True),
        (Position(8, 24), Position(0, 16), True),  # 32 is both
        (Position(4, 24), Position(0, 16), False),
        (ANYWHERE, Position(8, 0), True),
    ],
)
def test_positions_that_meet(a: Position, b: Position, together: bool) -> None:
    assert a.may_be(b) is together
    assert b.may_be(a) is together
