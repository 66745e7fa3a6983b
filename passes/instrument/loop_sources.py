"""Lines of the source at which loops are.

Input   the loops of a function, where its instructions come from.
Output  a place for each loop: the line of its ``for`` or ``while``; of a loop that the source does not spell out, such
        as an array expression, the line that it belongs to.
Method  the debug locations of a loop's instructions are matched with the loop statements of the source. A loop is the
        outermost statement that holds all its code and whose head some instruction comes from, unless a loop around it
        is that one already. The branch that closes a loop does not tell: LLVM gives it the line of what is tested last.
        A thread's loop over its chunks of a parallel loop is not a loop of the source: it is where the parallel loop
        is.

    for i in range(n):          the loop of the line of this ``for``
        total += (x * y).sum()  a loop of this line
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from irad.errors import SourceLocation
from irad.ir.loops import Loop
from irad.ir.module import Block, Function
from irad.passes.instrument.source_map import SourceMap
from irad.records import dataclass
from irad.source_text import LoopStatement, loop_statements

_Level: TypeAlias = tuple[int, str, str]  # how deep in inlined calls, file, function


@dataclass(eq=False, slots=True)
class LoopSources:
    """The places of loops; each is found once."""

    user: SourceMap
    _found: dict[Loop, SourceLocation | None] = field(default_factory=dict)
    _statements: dict[Loop, tuple[str, LoopStatement]] = field(default_factory=dict)

    def of(self, loop: Loop) -> SourceLocation | None:
        """Place of a loop; None where nothing in it has a place."""
        if loop not in self._found:
            if loop.parent is not None and not self.is_over_chunks(loop.parent):
                self.of(loop.parent)
            self._found[loop] = self._of_chunks(loop) if self.is_over_chunks(loop) else self._find(loop)
        return self._found[loop]

    def around(self, loop: Loop | None) -> tuple[SourceLocation | None, ...]:
        """The places of a loop and of those around it, outermost first; those of the source."""
        places: list[SourceLocation | None] = []
        while loop is not None:
            if not self.is_over_chunks(loop):
                places.insert(0, self.of(loop))
            loop = loop.parent
        return tuple(places)

    def is_over_chunks(self, loop: Loop) -> bool:
        """True if it is a thread's loop over its chunks of a parallel loop."""
        function = loop.header.function
        return loop.parent is None and isinstance(function, Function) and function in self.user.launches

    def _of_chunks(self, loop: Loop) -> SourceLocation | None:
        function = loop.header.function
        assert isinstance(function, Function)
        return self.of(loop.children[0]) if len(loop.children) == 1 else self.user.launch(function)

    def _find(self, loop: Loop) -> SourceLocation | None:
        inner = frozenset(block for child in loop.children for block in child.blocks)
        own = list(self._chains(block for block in loop.order if block not in inner))
        every = own if not inner else list(self._chains(loop.order))
        if loop.parent is not None and self.is_over_chunks(loop.parent):
            return self._find_parallel(loop, every)
        taken = set(self._taken(loop))
        levels = sorted({level for chain in own for level in _levels(chain)})
        for has_head in (True, False):
            for level in levels:
                found = self._statement(level, own, every, taken, has_head=has_head)
                if found is not None:
                    self._statements[loop] = level[1], found
                    return SourceLocation(level[1], found.line, level[2])
        return _first_line(own or every) or self._launch(loop)

    def _find_parallel(self, loop: Loop, every: list[Sequence[SourceLocation]]) -> SourceLocation | None:
        """Place of a parallel loop. Its head is not in its body: it is where the loop is launched, or below that.

        Numba launches at one place what it has made from several statements.
        """
        launch = self._launch(loop)
        if launch is None:
            return _first_line(every)
        lines = {chain[-1].line for chain in every}
        for statement in loop_statements(launch.file):
            around = statement.line >= launch.line and lines and all(map(statement.contains, lines))
            if statement.has_head(launch.line) or around:
                self._statements[loop] = launch.file, statement
                return SourceLocation(launch.file, statement.line, launch.function)
        return launch

    def _launch(self, loop: Loop) -> SourceLocation | None:
        function = loop.header.function
        return self.user.launch(function) if isinstance(function, Function) else None

    def _statement(
        self,
        level: _Level,
        own: list[Sequence[SourceLocation]],
        every: list[Sequence[SourceLocation]],
        taken: set[tuple[str, LoopStatement]],
        *,
        has_head: bool,
    ) -> LoopStatement | None:
        """The loop statement of a level that holds a loop: the outermost of those with a head, else the innermost."""
        mine, lines = _lines(level, own), _lines(level, every)
        fitting = [
            statement
            for statement in loop_statements(level[1])
            if (level[1], statement) not in taken
            and all(map(statement.contains, lines))
            and (not has_head or any(map(statement.has_head, mine)))
        ]
        return fitting[0 if has_head else -1] if fitting else None

    def _chains(self, blocks: Iterable[Block]) -> Iterator[Sequence[SourceLocation]]:
        for block in blocks:
            for inst in block.instructions:
                chain = [place for place in self.user.chain(inst) if place.line]
                if chain:
                    yield chain

    def _taken(self, loop: Loop) -> Iterator[tuple[str, LoopStatement]]:
        around = loop.parent
        while around is not None:
            if around in self._statements:
                yield self._statements[around]
            around = around.parent


def _levels(chain: Sequence[SourceLocation]) -> Iterator[_Level]:
    for depth, place in enumerate(reversed(chain)):
        yield depth, place.file, place.function


def _lines(level: _Level, chains: list[Sequence[SourceLocation]]) -> set[int]:
    return {
        place.line
        for chain in chains
        for found, place in zip(_levels(chain), reversed(chain), strict=True)
        if found == level
    }


def _first_line(chains: list[Sequence[SourceLocation]]) -> SourceLocation | None:
    """First line of the code of a loop that no statement spells out, in the innermost inlined function."""
    places = [chain[0] for chain in chains]
    if not places:
        return None
    last = places[-1]
    return min((p for p in places if (p.file, p.function) == (last.file, last.function)), key=lambda p: p.line)
