from __future__ import annotations

import pytest

from irad.ir.instructions import Call
from irad.passes.mode import AUGMENTED
from tests.passes.units import DOUBLES, generated

# A callee fails if a limit is exceeded; what is held there is dropped on the way out.
TEXT = """
declare void @NRT_incref(ptr)
declare void @NRT_decref(ptr)
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare double @exp(double)

define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr %b, i1 %c) {{
entry:
  {before}
  %s = call i32 @inner(ptr %r, ptr %a)
  {behind}
  ret i32 %s
{blocks}
}}

define internal i32 @inner(ptr %r, ptr %a) {{
  %x = load double, ptr %a
  %y = call double @exp(double %x)
  %z = call double @exp(double %y)
  store double %z, ptr %r
  ret i32 0
}}
"""
TAKE, DROP = "call void @NRT_incref(ptr %{})", "call void @NRT_decref(ptr %{})"
NEW = "%m = call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 32)"
MEMORY = [DOUBLES, DOUBLES, DOUBLES, DOUBLES, None]


def dropped(before: str, behind: str, blocks: str = "", **options: bool) -> list[str]:
    """What is dropped where the sweep is left after the call of the callee."""
    text = TEXT.format(before=before, behind=behind, blocks=blocks)
    pairs = generated(text, "scscc", MEMORY, **options)
    leaving = [b for b in pairs[0].pair[AUGMENTED].blocks if str(b.name).startswith("exhausted.launch")]
    calls = [i for b in leaving[-1:] for i in b.instructions if isinstance(i, Call)]
    return [str(call.arguments[0].name) for call in calls]


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        (TAKE.format("a"), DROP.format("a"), ["a"]),
        (f"{TAKE.format('a')}\n{TAKE.format('a')}", f"{DROP.format('a')}\n{DROP.format('a')}", ["a", "a"]),
        (TAKE.format("a"), f"{TAKE.format('a')}\n{DROP.format('a')}\n{DROP.format('a')}", ["a"]),
        ("", f"{TAKE.format('a')}\n{DROP.format('a')}", []),
        (f"{TAKE.format('a')}\n{DROP.format('a')}", "", []),
        (NEW, DROP.format("m"), ["m"]),
        ("", f"{NEW}\n{DROP.format('m')}", []),
        (TAKE.format("a"), "", []),  # somebody else drops it
    ],
)
def test_straight_code(before, behind, expected):
    assert dropped(before, behind, meters=True) == expected


def test_without_a_limit_nothing_is_dropped():
    assert dropped(TAKE.format("a"), DROP.format("a")) == []


def test_a_reference_that_is_dropped_on_some_ways_is_kept():
    blocks = f"drop:\n  {DROP.format('a')}\n  br label %done\ndone:\n  ret i32 0"
    behind = "br i1 %c, label %drop, label %done\nunused:"
    assert dropped(TAKE.format("a"), behind, blocks, meters=True) == []


def test_ways_that_raise_do_not_count():
    blocks = f"raise:\n  ret i32 1\ndone:\n  {DROP.format('a')}\n  ret i32 0"
    text = "br i1 %c, label %raise, label %done\nunused:"
    assert dropped(TAKE.format("a"), text, blocks, meters=True) == ["a"]


def test_a_reference_that_may_be_taken_by_another_name():
    """The target of %p is not known: it may be %m."""
    before = f"{NEW}\nstore ptr %m, ptr %b\n{TAKE.format('m')}"
    behind = f"%p = load ptr, ptr %b\n{TAKE.format('p')}\n{DROP.format('m')}"
    assert dropped(before, behind, meters=True) == []
