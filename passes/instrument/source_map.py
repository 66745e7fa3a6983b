"""Source locations of instructions, for errors, debug mode, the report of the tape and the inspector.

Input   a module with its debug metadata.
Output  for an instruction its places in the user's files, innermost first.
Method  places in library code (`LibraryCode`) are left out, so that such code counts where it is called. The body of a
        parallel loop, which has no file of its own, counts for the file that the loop is in. A line that lies outside
        the function it is said to be in is that of library code that the host has inlined itself: it keeps the line and
        changes the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from irad.errors import SourceLocation
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite, Instruction
from irad.ir.module import Function, Module
from irad.message import definition_line
from irad.passes.convention import LibraryCode
from irad.records import dataclass
from irad.source_text import holds_line


@dataclass(eq=False, slots=True)
class SourceMap:
    """Finds places in one module, whose metadata must not change.

    Attributes:
        library: selects code that is not the user's.
        launches: the call of each parallel loop, by its function.
    """

    module: Module
    library: LibraryCode
    launches: Mapping[Function, CallSite] = field(default_factory=dict)
    _info: DebugInfo = field(init=False)

    def __post_init__(self) -> None:
        self._info = DebugInfo(self.module)

    def chain(self, inst: Instruction) -> list[SourceLocation]:
        """The places of an instruction, its own first, then that of the call it was inlined at, and so on.

        Where all of it is library code, its own place alone; empty where nothing is known.
        """
        return [place for place in self._known(inst) if holds_line(place.file, place.function, place.line)]

    def places(self, inst: Instruction) -> list[SourceLocation]:
        """Lines of an instruction; without any, those of the enclosing parallel loop, or the best known."""
        found = self.chain(inst)
        if found:
            return found
        launch = self._launch(inst)
        return [launch] if launch is not None else self._outside_library(self._info.inline_chain(inst))

    def locate(self, inst: Instruction) -> SourceLocation | None:
        """The innermost of the places; None where nothing is known."""
        return next(iter(self.chain(inst)), None) or self._launch(inst)

    def nearest(self, inst: Instruction) -> SourceLocation | None:
        """The place of an instruction; if LLVM has merged several lines, or none is known, that of a neighbour."""
        found = self.locate(inst)
        if found is not None and found.line:
            return found
        primal = inst
        while primal.origin is not None:
            primal = primal.origin
        if primal.block is None:
            return found
        order = primal.block.instructions
        start = order.index(primal)
        beside = (self.locate(each) for each in (*order[start + 1 :], *reversed(order[:start])))
        return next((place for place in beside if place is not None and place.line), found)

    def launch(self, function: Function) -> SourceLocation | None:
        """Place at which a parallel loop is launched; None for other functions."""
        call = self.launches.get(function)
        if call is None:
            return None
        caller = call.block.function if call.block is not None else None
        return self.nearest(call) or (self.definition(caller) if isinstance(caller, Function) else None)

    def definition(self, function: Function) -> SourceLocation | None:
        """Place at which a function is defined, as far as its code tells; None for library code."""
        for inst in function.instructions():
            frames = self._info.frames(inst)
            if frames and frames[-1].symbol.strip('"') == function.name:
                found = frames[-1].definition
                if self.library.holds(found.file) or not found.line:
                    return None
                return SourceLocation(found.file, definition_line(found.file, found.line), found.function)
        return None

    def _launch(self, inst: Instruction) -> SourceLocation | None:
        """Place of the parallel loop in whose body an instruction is."""
        step: Instruction | None = inst
        while step is not None:
            function = step.block.function if step.block is not None else None
            if isinstance(function, Function) and function in self.launches:
                return self.launch(function)
            step = step.origin
        return None

    def _known(self, inst: Instruction) -> list[SourceLocation]:
        """The places outside of the library, those in the body of a parallel loop in the file that the loop is in."""
        found = self._outside_library(self._info.inline_chain(inst))
        launch = self._launch(inst) if any(map(self._is_in_kernel, found)) else None
        if launch is None:
            return found
        return [
            SourceLocation(launch.file, place.line, launch.function) if self._is_in_kernel(place) else place
            for place in found
            if not (self._is_in_kernel(place) and place.line <= self.library.kernel_lines)
        ]

    def _outside_library(self, chain: list[SourceLocation]) -> list[SourceLocation]:
        chain = [place for place in chain if not place.function.startswith(self.library.without_lines)] or chain
        return [place for place in chain if not self.library.holds(place.file)] or chain[:1]

    def _is_in_kernel(self, place: SourceLocation) -> bool:
        return place.function.startswith(self.library.kernels)
