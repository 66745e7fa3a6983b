"""Assembly of optimised LLVM text with a source line per instruction.

Numba's code has debug locations of the functions it was made from, but no function of its own in the debug information;
so LLVM writes no line table for it. Here each function gets one, and locations in that, of lines that the caller
chooses.
The code itself does not change: debug information never changes what LLVM generates.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Final

import llvmlite.binding as llvm

from irad.frontend import numba_private

_NODE: Final = re.compile(r"^!(\d+) = ", re.M)
_DEBUG: Final = re.compile(r", !dbg (![0-9]+)")
_LOOP: Final = re.compile(r", !llvm\.loop ![0-9]+")
_OWN: Final = re.compile(r" !dbg ![0-9]+(?= \{$)")
_CALL: Final = re.compile(r"^  (?:%\S+ = )?(?:tail |musttail |notail )?call ")
_NAMED: Final = re.compile(r"^!llvm\.(?:dbg\.cu|module\.flags) = .*$\n?", re.M)
_LOCATION: Final = re.compile(r"^\s+\.loc\s+\d+\s+(\d+)")


def assembly_with_lines(text: str, line_of: Callable[[str], int | None]) -> list[tuple[str, int | None]]:
    """The lines of assembly of a module, each with its line of the source.

    Args:
        text: an optimised module, as LLVM prints it.
        line_of: the line to note for a location (`!7`), None for none.
    """
    module = llvm.parse_assembly(_with_lines(text, line_of))
    found: list[tuple[str, int | None]] = []
    line: int | None = None
    for one in numba_private.target_machine().emit_assembly(module).splitlines():
        location = _LOCATION.match(one)
        if location is not None:
            line = int(location[1]) or None
        elif re.match(r"\s+\.(?:file|section\s+\.debug)", one) is None and not re.match(r"\.L(?:tmp|func_)", one):
            if one.startswith("\t.size") or re.match(r"[^\s.#][^\s]*:", one):
                line = None
            found.append((one, line if one.startswith("\t") and not one.startswith("\t.") else None))
    return found


def _with_lines(text: str, line_of: Callable[[str], int | None]) -> str:
    numbers = itertools.count(max(map(int, _NODE.findall(text)), default=-1) + 1)
    unit, file, kind, flags, version = (next(numbers) for _ in range(5))
    lines = list(_rewritten(_NAMED.sub("", text).splitlines(), line_of, numbers, (unit, file, kind)))
    lines += [
        f"!llvm.dbg.cu = !{{!{unit}}}",
        f"!llvm.module.flags = !{{!{flags}, !{version}}}",
        f"!{unit} = distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, isOptimized: true, runtimeVersion: 0, "
        "emissionKind: DebugDirectivesOnly)",
        f'!{file} = !DIFile(filename: "source", directory: "")',
        f"!{kind} = !DISubroutineType(types: !{{}})",
        f'!{flags} = !{{i32 2, !"Dwarf Version", i32 4}}',
        f'!{version} = !{{i32 2, !"Debug Info Version", i32 3}}',
    ]
    return "\n".join(lines)


def _rewritten(
    lines: list[str], line_of: Callable[[str], int | None], numbers: Iterator[int], nodes: tuple[int, int, int]
) -> Iterator[str]:
    """The lines with every location placed in its function; the functions' nodes follow."""
    unit, file, kind = nodes
    scope: int | None = None
    made: list[int] = []

    def location(match: re.Match[str]) -> str:
        return f", !dbg !DILocation(line: {line_of(match[1]) or 0}, scope: !{scope})"

    for line in lines:
        if line.startswith("define "):
            scope = next(numbers)
            made.append(scope)
            yield f"{_OWN.sub('', line).removesuffix(' {')} !dbg !{scope} {{"
        elif not line.startswith(" "):
            yield line
        elif _DEBUG.search(line) is None and _CALL.search(line) is not None:  # LLVM wants one on every call
            yield f"{_LOOP.sub('', line)}, !dbg !DILocation(line: 0, scope: !{scope})"
        else:
            yield _DEBUG.sub(location, _LOOP.sub("", line))
    for number in made:
        yield (
            f'!{number} = distinct !DISubprogram(name: "f{number}", scope: !{file}, file: !{file}, line: 1, '
            f"type: !{kind}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})"
        )
