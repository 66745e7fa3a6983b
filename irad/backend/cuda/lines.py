"""Lines of the source in generated kernels, so that PTX has `.loc` marks, which tools for GPUs show.

Input   a module; its instructions know their lines, functions that a derivation made do not say what they are.
Output  the module with a subprogram for each such function; in its code everything counts as inlined there.
Method  LLVM writes lines of functions with a subprogram only, and requires that the chain of calls that a line was
        inlined through ends in that subprogram. Debug information is reduced to lines: with more, ptxas does not
        optimise.

    !21 = !DILocation(line: 7, scope: !9)        !21 = !DILocation(line: 7, scope: !9, inlinedAt: !40)
                                                 !40 = distinct !DILocation(line: 0, scope: !41)
                                                 !41 = distinct !DISubprogram(name: "k.reverse", …)
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import CallSite
from irad.ir.module import Function, MetadataNode, Module

_LOCATION: Final = "!DILocation("
_UNIT: Final = "!DICompileUnit("
_INLINED: Final = "inlinedAt: "
_FILE: Final = "file: "


def attach_lines(module: Module) -> None:
    """Gives every function with code a subprogram, if the module has debug information."""
    for node in module.metadata.values():
        if node.text.startswith(_UNIT):
            for kind in ("FullDebug", "LineTablesOnly"):
                node.text = node.text.replace(f"emissionKind: {kind}", "emissionKind: DebugDirectivesOnly")
    units = module.named_metadata.get("llvm.dbg.cu", ())
    if units:
        for function in module.defined_functions():
            if "dbg" not in dict(function.metadata):
                _Attachment(module, function, units[0]).attach()


class _Attachment:
    """One function."""

    def __init__(self, module: Module, function: Function, unit: str) -> None:
        self.module, self.function = module, function
        file = _after(module.metadata[int(unit[1:])].text, _FILE)
        kind = module.shared_metadata("!DISubroutineType(types: !{null})")
        self.subprogram = self.node(
            f'!DISubprogram(name: "{function.name}", scope: {file}, file: {file}, type: {kind}, '
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})"
        )
        self.site = self.node(f"{_LOCATION}line: 0, scope: {self.subprogram})")
        self.moved: dict[str, str] = {}

    def attach(self) -> None:
        """Changes the function and its instructions."""
        self.function.metadata = (*self.function.metadata, ("dbg", self.subprogram))
        for inst in self.function.instructions():
            if "dbg" in inst.metadata:
                inst.metadata["dbg"] = self.move(inst.metadata["dbg"])
            elif isinstance(inst, CallSite):
                inst.metadata["dbg"] = self.site  # LLVM may inline the callee, and wants to know where

    def move(self, location: str) -> str:
        """The location at the end of whose chain of calls this function stands."""
        if location not in self.moved:
            old = self.module.metadata[int(location[1:])]
            around = _after(old.text, _INLINED)
            inner = old.text.removesuffix(")") if around is None else old.text.partition(f", {_INLINED}")[0]
            outer = self.site if around is None else self.move(around)
            self.moved[location] = self.node(f"{inner}, {_INLINED}{outer})", distinct=old.distinct)
        return self.moved[location]

    def node(self, text: str, *, distinct: bool = True) -> str:
        """A reference to a new node."""
        number = self.module.new_metadata_number()
        self.module.metadata[number] = MetadataNode(text, distinct)
        return f"!{number}"


def _after(text: str, label: str) -> str | None:
    """The reference behind a label of a node, None without the label."""
    _, found, rest = text.partition(label)
    return rest.partition(",")[0].partition(")")[0] if found else None
