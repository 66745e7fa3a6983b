from __future__ import annotations

import re

from irad.passes.instrument.source_map import SourceMap
from irad.passes.instrument.watched import TapePlaces
from tests.passes.augmented.test_allocation_failure import CALLEE
from tests.passes.units import derivative


def with_lines(text: str) -> str:
    """The text with debug metadata: each instruction is on its own line of the file ``text``."""
    lines, nodes, subprogram = [], [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"define .*@(\w+)\(", line):
            subprogram = number
            nodes.append(
                f'!{number} = distinct !DISubprogram(name: "{found[1]}", linkageName: "{found[1]}", file: !1001, '
                f"line: {number}, type: !1002, unit: !1000, spFlags: DISPFlagDefinition)"
            )
            line = line.replace(" {", f" !dbg !{number} {{")
        elif line.startswith("  "):
            nodes.append(f"!{number} = !DILocation(line: {number}, column: 1, scope: !{subprogram})")
            line += f", !dbg !{number}"
        lines.append(line)
    fixed = """
!llvm.dbg.cu = !{!1000}
!llvm.module.flags = !{!1003}
!1000 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1001, emissionKind: FullDebug)
!1001 = !DIFile(filename: "text", directory: "/nowhere")
!1002 = !DISubroutineType(types: !{null})
!1003 = !{i32 2, !"Debug Info Version", i32 3}
"""
    return "\n".join([*lines, fixed, *nodes])


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def places_of(text: str, kinds: str) -> TapePlaces:
    program = derivative(with_lines(text), kinds, meters=True).program
    return TapePlaces(program.tape_marks, program.frame_parts, SourceMap(program.module, program.request.host.library))


def test_frames_and_slabs_have_the_lines_where_they_are_allocated():
    """The frame of a callee is allocated where it is called, that of the entry by its caller, before its first line."""
    _, callee, slab, entry = (place.location for place in places_of(CALLEE, "scsc").all())
    for place, function, words in (
        (callee, "f", "call i32 @inner"),
        (slab, "inner", "%i = phi"),
        (entry, "f", "define i32 @f"),
    ):
        assert place is not None
        assert (place.function, place.line) == (function, line_of(CALLEE, words)), words
