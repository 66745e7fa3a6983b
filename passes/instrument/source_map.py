"""The user's places of instructions: what errors, debug mode, the report of the tape and the inspector name.

Input   a module with its debug metadata.
Output  for an instruction its places in the user's files, innermost first.
Method  places in Numba and irad are left out, so that library code counts where it is called. The body of a parallel
        loop, which Numba keeps in a string, counts for the file that the loop is in. A line that lies outside the
        function it is said to be in is that of library code that Numba has inlined itself: it keeps the line and
        changes the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from irad.errors import SourceLocation
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite, Instruction
from irad.ir.module import Function, Module
from irad.message import definition_line
from irad.source_text import holds_line

_NUMBA: Final = f"{os.sep}numba{os.sep}"
_OVERLOADS: Final = f"{os.sep}irad{os.sep}frontend{os.sep}"
_ARRAY_EXPRESSION: Final = "__numba_array_expr"  # Numba's functions for them know no line
_PARALLEL_LOOP: Final = "__numba_parfor_gufunc"
_LINES_OF_KERNELS: Final = 16  # of the function that Numba writes around the body of a parallel loop


@dataclass(eq=False, slots=True)
class SourceMap:
    """Finds places in one module, whose metadata must not change.

    Attributes:
        launches: the call of each parallel loop, by its function.
    """

    module: Module
    launches: Mapping[Function, CallSite] = field(default_factory=dict)
    _info: DebugInfo = field(init=False)

    def __post_init__(self) -> None:
        self._info = DebugInfo(self.module)

    def chain(self, inst: Instruction) -> list[SourceLocation]:
        """The places of an instruction, its own first, then that of the call it was inlined at, and so on.

        Where all of it is library code, its own place alone; empty where nothing is known.
        """
        found = _outside_library(self._info.inline_chain(inst))
        if any(place.function.startswith(_PARALLEL_LOOP) for place in found):
            launch = self._launch(inst)
            if launch is not None:
                found = [_in_file(place, launch) for place in found if not _is_around_body(place)]
        return [place for place in found if holds_line(place.file, place.function, place.line)]

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
        """Where a parallel loop is launched; None for other functions."""
        call = self.launches.get(function)
        if call is None:
            return None
        caller = call.block.function if call.block is not None else None
        return self.nearest(call) or (self.definition(caller) if isinstance(caller, Function) else None)

    def definition(self, function: Function) -> SourceLocation | None:
        """Where a function is defined, as far as its code tells; None for library code."""
        for inst in function.instructions():
            frames = self._info.frames(inst)
            if frames and frames[-1].symbol.strip('"') == function.name:
                found = frames[-1].definition
                if is_library(found.file) or not found.line:
                    return None
                return SourceLocation(found.file, definition_line(found.file, found.line), found.function)
        return None

    def _launch(self, inst: Instruction) -> SourceLocation | None:
        """Where the parallel loop is in whose body an instruction is."""
        step: Instruction | None = inst
        while step is not None:
            function = step.block.function if step.block is not None else None
            if isinstance(function, Function) and function in self.launches:
                return self.launch(function)
            step = step.origin
        return None


def user_places(chain: list[SourceLocation]) -> list[SourceLocation]:
    """Those of an instruction's places that lie in the user's files; the innermost of all where none does."""
    found = _outside_library(chain)
    return [place for place in found if holds_line(place.file, place.function, place.line)] or found


def _outside_library(chain: list[SourceLocation]) -> list[SourceLocation]:
    chain = [place for place in chain if not place.function.startswith(_ARRAY_EXPRESSION)] or chain
    return [place for place in chain if not is_library(place.file)] or chain[:1]


def is_library(file: str) -> bool:
    """Whether a file belongs to Numba, or to what irad compiles of its own."""
    return _NUMBA in file or _OVERLOADS in file


def _is_around_body(place: SourceLocation) -> bool:
    """Whether a place is in the code that Numba writes around the body of a parallel loop."""
    return place.function.startswith(_PARALLEL_LOOP) and place.line <= _LINES_OF_KERNELS


def _in_file(place: SourceLocation, launch: SourceLocation) -> SourceLocation:
    """A place in the body of a parallel loop as one in the file that the loop is in."""
    if not place.function.startswith(_PARALLEL_LOOP):
        return place
    return SourceLocation(launch.file, place.line, launch.function)
