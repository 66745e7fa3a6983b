"""Assembly of optimised LLVM text with a source line per instruction.

Numba's code has debug locations of the functions it was made from, but no function of its own in the debug information;
so LLVM writes no line table for it. Here each function gets one, with locations on lines that the caller chooses. The
code itself does not change: debug information never changes what LLVM generates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import llvmlite.binding as llvm

from irad.backend.toolchain import Toolchain
from irad.ir.instructions import CallSite
from irad.ir.module import Function, MetadataNode, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module

# Of assembly, not of LLVM's text.
_LOCATION: Final = re.compile(r"\s+\.loc\s+\d+\s+(\d+)")
_OF_LINES: Final = re.compile(r"\s+\.(?:file|section\s+\.debug)|\.L(?:tmp|func_)")
_LABEL: Final = re.compile(r"\t\.size|[^\s.#][^\s]*:")


def assembly_with_lines(
    text: str, line_of: Callable[[str], int | None], toolchain: Toolchain
) -> list[tuple[str, int | None]]:
    """The lines of assembly of a module, each with its line of the source.

    Args:
        text: an optimised module, as LLVM prints it.
        line_of: the line to note for a location (`!7`), None for none.
        toolchain: for whose machine.
    """
    module = llvm.parse_assembly(_with_lines(text, line_of))
    found: list[tuple[str, int | None]] = []
    line: int | None = None
    for one in toolchain.machine().emit_assembly(module).splitlines():
        location = _LOCATION.match(one)
        if location is not None:
            line = int(location[1]) or None
        elif _OF_LINES.match(one) is None:
            if _LABEL.match(one) is not None:
                line = None
            found.append((one, line if one.startswith("\t") and not one.startswith("\t.") else None))
    return found


def _with_lines(text: str, line_of: Callable[[str], int | None]) -> str:
    module = parse_module(text)
    file = module.shared_metadata('!DIFile(filename: "source", directory: "")')
    kind = module.shared_metadata("!DISubroutineType(types: !{})")
    unit = _distinct(
        module,
        f"!DICompileUnit(language: DW_LANG_C, file: {file}, isOptimized: true, runtimeVersion: 0, "
        "emissionKind: DebugDirectivesOnly)",
    )
    flags = module.shared_metadata('!{i32 2, !"Dwarf Version", i32 4}')
    version = module.shared_metadata('!{i32 2, !"Debug Info Version", i32 3}')
    module.named_metadata |= {"llvm.dbg.cu": (unit,), "llvm.module.flags": (flags, version)}
    for function in module.defined_functions():
        scope = _distinct(
            module,
            f'!DISubprogram(name: "f{module.new_metadata_number()}", scope: {file}, file: {file}, line: 1, '
            f"type: {kind}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})",
        )
        function.metadata = (*(each for each in function.metadata if each[0] != "dbg"), ("dbg", scope))
        _relocate(function, scope, line_of)
    return print_module(module)


def _relocate(function: Function, scope: str, line_of: Callable[[str], int | None]) -> None:
    """Puts every location of a function into the function."""
    for inst in function.instructions():
        inst.metadata.pop("llvm.loop", None)
        location = inst.metadata.get("dbg")
        line = None if location is None else line_of(location)
        if location is not None or isinstance(inst, CallSite):  # LLVM wants one on every call
            inst.metadata["dbg"] = f"!DILocation(line: {line or 0}, scope: {scope})"


def _distinct(module: Module, text: str) -> str:
    number = module.new_metadata_number()
    module.metadata[number] = MetadataNode(text, distinct=True)
    return f"!{number}"
