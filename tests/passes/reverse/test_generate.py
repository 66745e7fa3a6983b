from __future__ import annotations

from irad.passes.derivative import analyse
from irad.passes.program import Program
from irad.passes.reverse.generate import busy_blocks
from irad.passes.variant import Variant
from irad.rules.cuda import BLOCK_BARRIER, RULES
from irad.ruleset.registry import Registry
from tests.passes.units import parsed, registry, request_of

TEXT = f"""
declare void @{BLOCK_BARRIER}(i32)
define void @f(ptr %a, i1 %c) {{
entry:
  br i1 %c, label %waits, label %idle
waits:
  call void @{BLOCK_BARRIER}(i32 0)
  br label %end
idle:
  %n = load i64, ptr %a
  br label %end
end:
  ret void
}}
"""


def test_a_block_in_which_threads_wait_has_an_adjoint():
    module, function = parsed(TEXT)
    request = request_of(function, "cc")
    rules = Registry.of(*RULES).overlaid_on(registry())
    variant = Variant(function, request.kinds, request.memory, False, False, is_entry=True)
    unit = analyse(Program(module, rules, request), variant)
    assert [block.name for block in busy_blocks(unit)] == ["waits"]
