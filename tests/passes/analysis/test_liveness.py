from __future__ import annotations

import pytest

from irad.frontend.numba.convention import NUMBA
from irad.ir.cfg import control_flow
from irad.passes.analysis.liveness import live_blocks
from tests.passes.units import parsed

TEXT = """
define i32 @f(i1 %c, i1 %d, i32 %s) {{
entry:
  br i1 %c, label %good, label %bad
good:
  br i1 %d, label %end, label %mixed
bad:
  br label %end
mixed:
  br label %end
end:
  %status = phi i32 [ 0, %good ], [ {bad}, %bad ], [ {mixed}, %mixed ]
  ret i32 %status
}}
"""


def live(text: str, is_entry: bool = True) -> str:
    _, function = parsed(text)
    returned = NUMBA.returned if is_entry else None
    return " ".join(sorted(str(b.name) for b in live_blocks(control_flow(function), returned)))


@pytest.mark.parametrize(
    ("bad", "mixed", "expected"),
    [
        ("1", "0", "end entry good mixed"),
        ("-1", "5", "end entry good"),
        ("-2", "-3", "bad end entry good mixed"),  # None and the end of an iteration are not errors
        ("1", "%s", "end entry good mixed"),  # a status that is not constant may be none
    ],
)
def test_statuses(bad, mixed, expected):
    assert live(TEXT.format(bad=bad, mixed=mixed)) == expected


def test_after_a_callee_the_caller_may_go_on():
    assert live(TEXT.format(bad="1", mixed="1"), is_entry=False) == "bad end entry good mixed"


def test_a_function_that_always_raises():
    text = "define i32 @f() {\nentry:\n  ret i32 1\n}"
    assert live(text) == ""
    assert live(text, is_entry=False) == "entry"


def test_a_status_that_is_passed_on():
    text = "define i32 @f(i32 %s) {\nentry:\n  ret i32 %s\n}"
    assert live(text) == "entry"


def test_a_loop_that_raises():
    text = """
    define i32 @f(i1 %c, i1 %d) {
    entry:
      br label %loop
    loop:
      br i1 %c, label %raise, label %latch
    latch:
      br i1 %d, label %loop, label %end
    raise:
      br label %clean
    clean:
      br label %end
    end:
      %status = phi i32 [ 0, %latch ], [ 1, %clean ]
      ret i32 %status
    }"""
    assert live(text) == "end entry latch loop"


def test_a_void_function():
    assert live("define void @f() {\nentry:\n  ret void\n}") == "entry"
