from __future__ import annotations

import pytest

from irad.passes.memory.addresses import ANYWHERE, START, Position, Positions, offset_modulo, position
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
        ("loaded", 16, 0),  # data pointers point to the start of a record
        ("inner", 16, 8),
        ("p", None, None),  # 20, 68, 116, …
        ("p", 16, 4),
        ("at", 16, 8),
        ("p", 48, 20),
        ("p", 32, None),  # 48 is not a multiple of 32
    ],
)
def test_offsets(name, stride, offset):
    _, function = parsed(TEXT)
    assert offset_modulo(value(function, name), stride) == offset


def test_bases_are_starts():
    _, function = parsed(TEXT)
    assert position(value(function, "inner"), START).exact == 8


def test_a_long_chain_is_followed():
    steps = "\n".join(f"  %p{i + 1} = getelementptr i8, ptr %p{i}, i64 1" for i in range(3000))
    _, function = parsed(f"define void @f(ptr %p0) {{\n{steps}\n  ret void\n}}")
    assert offset_modulo(value(function, "p3000"), None) == 3000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", Position(0, 0)),
        ("field", Position(20 + 32 + 8, 0)),
        ("element", Position(4, 8)),
        ("row", Position(12, 16)),
        ("same", Position(20, 0)),
        ("other", Position(0, 20, among=(0, 20))),
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
        (Position(8, 24, among=(8, 32)), Position(32, 0), True),
        (Position(8, 24, among=(8, 32)), Position(56, 0), False),
        (Position(8, 24, among=(8, 32)), Position(16, 8, among=(16, 24)), False),
        (Position(8, 24, among=(8, 32)), Position(0, 16), True),
        (Position(8, 24, among=(8, 32)), Position(4, 24), False),
    ],
)
def test_positions_that_meet(a: Position, b: Position, together: bool) -> None:
    assert a.may_be(b) is together
    assert b.may_be(a) is together


def among(*offsets: int) -> Position:
    first, *others = (Position(offset, 0) for offset in offsets)
    for other in others:
        first = first.or_else(other)
    return first


FEW = among(40, 16, 64)


def test_a_few_offsets_are_known_one_by_one():
    assert FEW == Position(16, 24, among=(16, 40, 64))
    assert FEW.moved(Position(8, 0)) == among(24, 48, 72)
    assert FEW.moved(among(0, 8)) == among(16, 24, 40, 48, 64, 72)
    assert FEW.times(Position(-2, 0)) == among(-32, -80, -128)
    assert FEW.distance_to(Position(64, 0)) == among(0, 24, 48)
    assert FEW.modulo(24) == 16
    assert FEW.modulo(48) is None
    assert FEW.wrapped(8) == FEW
    assert FEW.exact is None


def test_many_offsets_are_known_by_what_they_have_in_common():
    eight = among(*range(0, 64, 8))
    assert eight.few == tuple(range(0, 64, 8))
    assert eight.or_else(Position(64, 0)) == eight.endless() == Position(0, 8)
    assert FEW.moved(eight) == Position(0, 8)
    assert FEW.or_else(Position(8, 48)) == Position(0, 8)
    assert FEW.moved(Position(0, 48)) == Position(16, 24)
    assert FEW.wrapped(7) == Position(0, 8)  # 64 may have become -64: what they have in common divides 128, too
    assert among(-8, 8).wrapped(64) == Position(8, 16)


def test_a_position_covers_those_of_which_it_has_all_offsets():
    assert FEW.covers(among(16, 64))
    assert FEW.covers(Position(40, 0))
    assert Position(16, 24).covers(FEW)
    assert not among(16, 64).covers(FEW)
    assert not FEW.covers(Position(88, 0))
    assert not FEW.covers(Position(16, 24))
    assert not Position(16, 48).covers(FEW)


CIRCLES = """
declare ptr @make()
define void @f(ptr %a, ptr %b, i64 %i, i64 %n, i1 %c, i32 %k) {
entry:
  %made = call ptr @make()
  br label %loop
loop:
  %p = phi ptr [ %a, %entry ], [ %q, %next ]
  %q = phi ptr [ %b, %entry ], [ %p, %next ]
  %here = phi ptr [ null, %entry ], [ %kept, %next ]
  %j = phi i64 [ 0, %entry ], [ %j.next, %next ]
  %up = phi ptr [ %a, %entry ], [ %down.on, %next ]
  %down = phi ptr [ %b, %entry ], [ %up.on, %next ]
  br i1 %c, label %other, label %next
other:
  br label %next
next:
  %kept = phi ptr [ %here, %loop ], [ %made, %other ]
  %field = getelementptr i8, ptr %p, i64 8
  %up.on = getelementptr i8, ptr %up, i64 32
  %down.on = getelementptr i8, ptr %down, i64 48
  %j.next = add nuw nsw i64 %j, 2
  %pair = getelementptr i64, ptr %q, i64 %j
  br i1 %c, label %loop, label %end
end:
  %shift = shl i64 %i, 4
  %shifted = getelementptr i8, ptr %a, i64 %shift
  %by = shl i64 16, %n
  %shifted.by = getelementptr i8, ptr %a, i64 %by
  %product = mul i64 %i, 24
  %scaled = getelementptr i8, ptr %a, i64 %product
  %beside = add i64 %product, 8
  %wraps = getelementptr i8, ptr %a, i64 %beside
  %exact = mul nsw i64 %i, 24
  %behind = add nsw i64 %exact, 8
  %counted = getelementptr i8, ptr %a, i64 %behind
  %narrow = mul i32 %k, 12
  %wide = sext i32 %narrow to i64
  %narrowed = getelementptr i8, ptr %a, i64 %wide
  %masked = and i64 %i, -16
  %rounded = getelementptr i8, ptr %a, i64 %masked
  %less = sub nsw i64 %exact, %masked
  %difference = getelementptr i8, ptr %a, i64 %less
  %five = select i1 %c, i64 5, i64 9
  %rest = urem i64 %exact, 16
  %remainder = getelementptr i8, ptr %a, i64 %rest
  %chosen = getelementptr i8, ptr %a, i64 %five
  %unknown = getelementptr i8, ptr %a, i64 %i
  %nothing = select i1 %c, ptr null, ptr undef
  ret void
}
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p", Position(0, 0)),  # two pointers that a loop swaps
        ("q", Position(0, 0)),
        ("field", Position(8, 0)),
        ("kept", Position(0, 0)),  # null points to no memory
        ("here", Position(0, 0)),
        ("up", Position(0, 16)),  # steps of 32 and of 48, in turn
        ("pair", Position(0, 16)),  # every other of eight bytes
        ("shifted", Position(0, 16)),
        ("shifted.by", ANYWHERE),
        ("scaled", Position(0, 24)),
        ("wraps", Position(0, 8)),  # the sum may wrap around, and 24 does not divide 2**64
        ("counted", Position(8, 24)),
        ("narrowed", Position(0, 4)),  # nor 12 2**32
        ("rounded", Position(0, 16)),
        ("difference", Position(0, 8)),
        ("remainder", Position(0, 8)),
        ("chosen", Position(5, 4, among=(5, 9))),
        ("unknown", ANYWHERE),
        ("nothing", ANYWHERE),
    ],
)
def test_pointers_that_loops_move_and_indices_that_are_computed(name: str, expected: Position) -> None:
    _, function = parsed(CIRCLES)
    assert position(value(function, name), START) == expected


def test_what_is_not_known_in_a_circle_is_known_nowhere_in_it():
    _, function = parsed(CIRCLES)
    assert position(value(function, "kept")) == ANYWHERE
    assert position(value(function, "here")) == ANYWHERE


def test_positions_are_solved_once():
    _, function = parsed(CIRCLES)
    positions = Positions(START)
    names = ["field", "kept", "pair", "down", "counted"]
    together = [positions.of(value(function, name)) for name in names]
    assert together == [position(value(function, name), START) for name in names]


@pytest.mark.parametrize(
    ("place", "bits", "expected"),
    [
        (Position(8, 0), 64, Position(8, 0)),
        (Position(-8, 0), 64, Position((1 << 64) - 8, 1 << 64)),
        (Position(300, 0), 8, Position(44, 256)),
        (Position(8, 48), 64, Position(8, 16)),
        (Position(3, 5), 64, ANYWHERE),
    ],
)
def test_a_wrapped_position_covers_all_that_the_integer_may_be(place: Position, bits: int, expected: Position) -> None:
    assert place.wrapped(bits) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Position(3, 0), Position(5, 0), Position(15, 0)),
        (Position(0, 4), Position(0, 6), Position(0, 24)),
        (Position(1, 4), Position(2, 0), Position(2, 8)),
        (Position(1, 2), Position(1, 2), Position(1, 2)),
    ],
)
def test_products(a: Position, b: Position, expected: Position) -> None:
    assert a.times(b) == b.times(a) == expected
