"""Places of instructions in the user's source: the `!dbg` chain of LLVM's metadata.

    DILocation(line, scope, inlinedAt) → DILexicalBlock… → DISubprogram(name, file) → DIFile(filename, directory)

An instruction without `!dbg`, such as one that a pass made, answers with the place of what it was made for (`origin`).
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

from irad.errors import SourceLocation
from irad.ir.instructions import Instruction
from irad.ir.module import Block, Function, Module
from irad.ir.text.names import unescape
from irad.records import dataclass

_FIELD: Final = re.compile(r'([A-Za-z]\w*): ("[^"]*"|[^,()]+)')


def source_location(module: Module, inst: Instruction) -> SourceLocation | None:
    """The innermost place of an instruction; None where nothing is known."""
    return DebugInfo(module).location(inst)


@dataclass(frozen=True, slots=True)
class Frame:
    """One place of an instruction, the symbol of the function it is in, and where that is defined."""

    place: SourceLocation
    symbol: str
    definition: SourceLocation


class DebugInfo:
    """Resolves the debug metadata of one module. Remembers the nodes it has read, so metadata must not change."""

    __slots__ = ("_fields", "_module", "_scopes")

    def __init__(self, module: Module) -> None:
        self._module = module
        self._fields: dict[str, dict[str, str]] = {}
        self._scopes: dict[str, tuple[str, str, str, int]] = {}

    def location(self, inst: Instruction) -> SourceLocation | None:
        """The innermost place of an instruction; None where nothing is known."""
        chain = self.inline_chain(inst)
        return chain[0] if chain else None

    def inline_chain(self, inst: Instruction) -> list[SourceLocation]:
        """The places of an instruction, innermost first; empty where nothing is known."""
        return [frame.place for frame in self.frames(inst)]

    def frames(self, inst: Instruction) -> list[Frame]:
        """Places of an instruction, innermost first, with the symbols of the functions before inlining."""
        seen: set[Instruction] = set()
        current: Instruction | None = inst
        while current is not None and current not in seen:
            seen.add(current)
            node = current.metadata.get("dbg")
            if node is not None:
                owner = _module_of(current)
                same = owner is None or owner is self._module or current is inst
                return self.frames_of(node) if same else DebugInfo(owner or self._module).frames_of(node)
            current = current.origin
        return []

    def frames_of(self, node: str | None) -> list[Frame]:
        """The frames of a location by its node, as it stands after `!dbg`."""
        found: list[Frame] = []
        seen: set[str] = set()
        while node is not None and node not in seen:
            seen.add(node)
            fields = self._read(node)
            if "scope" not in fields:
                break
            function, file, symbol, defined = self._scope(fields["scope"])
            place = SourceLocation(file, int(fields.get("line", "0")), function)
            found.append(Frame(place, symbol, SourceLocation(file, defined, function)))
            node = fields.get("inlinedAt")
        return found

    def _scope(self, node: str) -> tuple[str, str, str, int]:
        """Function, file, symbol and first line of a scope, empty where unknown; the file of the innermost block."""
        known = self._scopes.get(node)
        if known is not None:
            return known
        function, file, symbol, line = "", "", "", 0
        seen: set[str] = set()
        current: str | None = node
        while current is not None and current not in seen:
            seen.add(current)
            fields = self._read(current)
            if not file and "file" in fields:
                file = self._file(fields["file"])
            if fields[_KIND] == "DISubprogram":
                function, symbol = _string(fields.get("name", "")), _string(fields.get("linkageName", ""))
                line = int(fields.get("line", "0"))
                break
            current = fields.get("scope")
        self._scopes[node] = function, file, symbol, line
        return function, file, symbol, line

    def _file(self, node: str) -> str:
        fields = self._read(node)
        return posixpath.join(_string(fields.get("directory", "")), _string(fields.get("filename", "")))

    def _read(self, node: str) -> dict[str, str]:
        """The fields of a node, by number or written in place; only the kind where it is not in the module."""
        known = self._fields.get(node)
        if known is None:
            text = node
            if node[1:].isdecimal():
                entry = self._module.metadata.get(int(node[1:]))
                text = entry.text if entry is not None else ""
            kind, _, inside = text.partition("(")
            known = self._fields[node] = {_KIND: kind[1:], **dict(_FIELD.findall(inside))}
        return known


_KIND: Final = "(kind)"


def _module_of(inst: Instruction) -> Module | None:
    match inst.block:
        case Block(function=Function(module=Module() as module)):
            return module
        case _:
            return None


def _string(spelled: str) -> str:
    return unescape(spelled[1:-1]) if spelled[:1] == '"' else spelled
