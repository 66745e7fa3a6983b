from __future__ import annotations

import pytest

from irad.errors import ActivityError
from tests.passes.units import generated

TEXT = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %work) {{
  call void @outer(ptr %x, ptr %work)
  %y = load double, ptr %x
  store double %y, ptr %r
  ret i32 0
}}
define internal void @outer(ptr %x, ptr %work) {{
  call void @inner(ptr %work, ptr %x)
  ret void
}}
define internal void @inner(ptr %work, ptr %x) {{
  %v = load double, ptr %x
  %vv = fmul double %v, %v
  store double {stored}, ptr %work
  store double %vv, ptr %x
  ret void
}}
"""


def test_callees_of_callees_store_nothing_active_in_what_was_passed_as_constant():
    with pytest.raises(ActivityError, match=r"an active value is stored in .* passed as constant") as caught:
        generated(TEXT.format(stored="%vv"), "scsc")
    block = getattr(caught.value.instruction, "block", None)
    assert block is not None
    assert block.function.name == "inner"
    generated(TEXT.format(stored="1.0"), "scsc")
