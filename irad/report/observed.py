"""What is read of a derivation while the engine runs, when analyses, sweeps and plan exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from irad.decompile.naming.symbols import Namer
from irad.errors import SourceLocation
from irad.frontend.custom.ruled_calls import Outlined
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.reports.inspection import TypedFunction
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.passes.generated import Generated
from irad.passes.instrument.source_map import SourceMap
from irad.passes.instrument.watched import TapePlaces
from irad.report.functions import PairReader
from irad.report.lanes import lane_words, numbers_of
from irad.report.llvm_text import lines_of_functions
from irad.report.model import FunctionReport, TextLine
from irad.report.source import UserSource, is_library
from irad.report.tape.read import TapeReader
from irad.report.variables import ActiveVariables, Copies, find_active


@dataclass
class Observed:
    """What was read.

    Attributes:
        primals: the functions of the program, before they are differentiated.
        active: which values and variables are active.
        variables: of each function, by line.
    """

    primals: list[Function] = field(default_factory=list)
    functions: tuple[FunctionReport, ...] = ()
    active: ActiveVariables | None = None
    variables: list[Any] = field(default_factory=list)
    prepared: tuple[TextLine, ...] = ()
    adjoint: tuple[TextLine, ...] = ()
    source: UserSource | None = None

    def read(
        self,
        generated: Generated,
        ruled: tuple[Outlined, ...],
        defined: Mapping[str, Callable[..., Any]],
        source: UserSource,
        copies: Copies,
        namer: Namer | None = None,
    ) -> None:
        """Reads everything while the primal is still there.

        Args:
            generated: the program with its derivative.
            ruled: its functions with rules of the user's.
            defined: the Python functions of its symbols.
            source: the user's lines.
            copies: what variables are called.
            namer: of the program's functions; by default by their symbols.
        """
        derived, pairs = generated.program, generated.pairs
        module = derived.module
        info = DebugInfo(module)
        namer = namer or namer_of(ruled, map(str, module.functions))
        places = {symbol: _definition(function, source) for symbol, function in defined.items()}
        tape_places = TapePlaces(
            derived.tape_marks, derived.frame_parts, SourceMap(module, derived.request.host.library, derived.launches)
        )
        readers = {
            made.pair.variant: PairReader(made, info, source, namer, ruled, places, copies, tape_places.loops)
            for made in pairs
        }
        _name_lanes(readers.values(), derived.launches)
        reader = TapeReader(generated, tape_places, lambda variant, value: readers[variant].spell(value))
        tape = reader.entries()
        self.source = source
        self.functions = tuple(each.report(pairs, tape.get(variant, ())) for variant, each in readers.items())
        self.active = find_active(pairs, copies, info)
        self.prepared = lines_of_functions(self.primals, info, source, namer)
        made = [function for each in pairs for function in each.pair.functions.values()]
        self.adjoint = lines_of_functions(made, info, source, namer)

    def split_variables(self, typed: Iterable[TypedFunction]) -> None:
        """Finds out which variables are active on which line of the user's functions."""
        source, active = self.source, self.active
        assert source is not None, "the program was read"
        assert active is not None
        here = [each for each in typed if source.is_here(location_of(each.function))]
        self.variables = [active.split(each, source.definition) for each in here]


def namer_of(ruled: Iterable[Outlined], symbols: Iterable[str]) -> Namer:
    """Names the functions of a program, those with rules by what they stand for."""
    return Namer(symbols, {each.symbol: each.rule.name for each in ruled})


def _name_lanes(readers: Iterable[PairReader], launches: Mapping[Function, CallSite]) -> None:
    """Tells the readers of parallel loops' bodies what the function around passes to them."""
    by_function = {each.made.unit.function: each for each in readers}
    for function, reader in by_function.items():
        loop, launch = reader.made.augmented.program.loops.get(function), launches.get(function)
        caller = launch.block.function if launch is not None and launch.block is not None else None
        around = by_function.get(caller) if isinstance(caller, Function) else None
        if loop is not None and around is not None:
            reader.name_parameters(lane_words(loop, launch, around.words.of_given), numbers_of(loop))


def _definition(function: Any, source: UserSource) -> SourceLocation | None:
    """Where a function of the program is defined; of library functions nothing is said."""
    if getattr(inspect.unwrap(function), "__code__", None) is None:
        return None
    place = location_of(function)
    line = source.definition(place.line) if source.is_here(place) else place.line
    return None if is_library(place.file) else SourceLocation(place.file, line, place.function)
