"""Effects of functions with a rule on memory, found in their bodies."""

from __future__ import annotations

from irad.passes.analysis.summary import summarise
from irad.ruleset.memory_type import MemoryType
from tests.passes.units import DOUBLES, parsed, registry

_NO_POINTERS = MemoryType(8, ())
_RECORDS = """
@record = private constant { ptr, i32 } zeroinitializer
@weights = private constant [4 x i8] zeroinitializer
@state = private global double 0.0
"""


def attributes(body: str, *, has_rule: bool = False) -> tuple[str, ...]:
    """Of a function with memory for its result, a place for an exception, and two arrays."""
    text = f"{_RECORDS}define void @f(ptr noalias %ret, ptr noalias %exc, ptr %a, ptr %b, i1 %c) {{\n{body}\n}}\n"
    _, function = parsed(text)
    ret, exc, a, b, *_ = function.params
    summarise(
        function, {ret: _NO_POINTERS, exc: _NO_POINTERS, a: DOUBLES, b: DOUBLES}, registry(), ret, has_rule=has_rule
    )
    return function.attributes


def summary(reads: str, writes: str, captures: str = "") -> tuple[str, ...]:
    return f'"irad.reads"="{reads}"', f'"irad.writes"="{writes}"', f'"irad.captures"="{captures}"'


_ADD = """  %x = load double, ptr %a
  store double %x, ptr %b
  ret void"""


def test_reads_and_writes() -> None:
    assert attributes(_ADD) == summary("2", "3")


def test_a_rule_may_read_what_the_body_leaves_alone() -> None:
    assert attributes("  ret void", has_rule=True) == summary("2,3", "")
    assert attributes("  store double 1.0, ptr %b\n  ret void", has_rule=True) == summary("2", "3")
    assert attributes(f"  store ptr %b, ptr %ret\n{_ADD}", has_rule=True) == summary("2", "0,3", "3")
    assert attributes("  ret void") == summary("", "")


def test_a_pointer_to_an_argument_in_the_result() -> None:
    assert attributes(f"  store ptr %b, ptr %ret\n{_ADD}") == summary("2", "0,3", "3")


def test_a_pointer_to_an_argument_in_a_global() -> None:
    assert attributes(f"  store ptr %b, ptr @state\n{_ADD}") == ()


def test_a_global_that_is_written() -> None:
    assert attributes(f"  store double 1.0, ptr @state\n{_ADD}") == ()


_MERGED = """  %x = load double, ptr %a
  store double %x, ptr %b
  %value = select i1 %c, ptr null, ptr {constant}
  %place = select i1 %c, ptr %ret, ptr %exc
  store ptr %value, ptr %place
  ret void"""


def test_an_exception_whose_store_is_merged_with_that_of_the_result() -> None:
    assert attributes(_MERGED.format(constant="@record")) == summary("2", "0,1,3")


def test_a_constant_array_in_the_result() -> None:
    # such an array may hold floats, so what the caller reads there has to be known to it
    assert attributes(_MERGED.format(constant="@weights")) == ()
