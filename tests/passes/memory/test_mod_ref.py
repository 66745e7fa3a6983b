from __future__ import annotations

import pytest

from irad.passes.callees import mark_remote
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from tests.passes.units import DOUBLES, parsed, registry, value

LENT = """
declare void @irad.mpi.open_recv(ptr, i64, i64, i64, i64, ptr, i64)
declare void @irad.mpi.finish(ptr, i64)
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %record) {{
  call void @irad.mpi.open_recv(ptr %a, i64 1, i64 8, i64 0, i64 0, ptr %record, i64 0)
  %done = call i32 @{callee}(ptr %record)
  ret void
}}
define i32 @waits(ptr %record) {{
  call void @irad.mpi.finish(ptr %record, i64 0)
  ret i32 0
}}
define i32 @local(ptr %record) {{
  store i64 0, ptr %record
  ret i32 0
}}
"""


@pytest.mark.parametrize(("callee", "written"), [("waits", {"a", "record"}), ("local", {"record"})])
def test_a_callee_that_completes_messages_writes_to_memory_that_was_lent(callee: str, written: set[str]):
    module, function = parsed(LENT.format(callee=callee))
    mark_remote(list(module.functions.values()), registry())
    memory = dict.fromkeys(function.params, DOUBLES)
    points_to = find_objects(function, memory, registry(), is_entry=True)
    writes = ModRef(points_to, registry()).of(value(function, "done")).writes
    assert {name for name in ("a", "b", "record") if writes & points_to.mask(value(function, name))} == written
