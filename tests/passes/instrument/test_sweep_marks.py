from __future__ import annotations

from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.instrument.sweep_marks import mark_reverse_sweeps

TEXT = """
define double @f(double %x) !dbg !5 {
  %y = fmul double %x, %x, !dbg !7
  %z = fadd double %y, %x, !dbg !7
  ret double %z, !dbg !8
}

define double @g(double %x) !dbg !5 {
  %y = fmul double %x, %x, !dbg !7
  ret double %y
}

!llvm.dbg.cu = !{}
!5 = distinct !DISubprogram(name: "f", line: 1)
!7 = !DILocation(line: 3, column: 1, scope: !5)
!8 = distinct !DILocation(line: 4, scope: !5)
"""


def test_locations_of_marked_functions_have_a_column_of_their_own():
    module = parse_module(TEXT)
    mark_reverse_sweeps(module, [module.functions["f"]])
    text = print_module(module)
    y, z, end = (inst.metadata["dbg"] for inst in module.functions["f"].instructions())
    assert y == z != "!7"
    assert f"{y} = !DILocation(line: 3, column: 2, scope: !5)" in text
    assert end == "!8"  # it names no column: it stays
    [other, _] = module.functions["g"].instructions()
    assert other.metadata["dbg"] == "!7"
    assert "!7 = !DILocation(line: 3, column: 1, scope: !5)" in text
