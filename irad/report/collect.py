"""Fills a report: what is read while the engine runs, then the lines, stages and figures."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from irad.decompile.names import Namer
from irad.decompile.text import PythonText, adjoint_as_python
from irad.driver import prepare_program
from irad.errors import IradError, SignatureError, SourceLocation, UnsupportedError, UnsupportedProgram
from irad.frontend.custom.ruled_calls import Outlined
from irad.frontend.derivation import observe_derivation
from irad.frontend.numba.cpu import NumbaProgram
from irad.frontend.numba.library import CPU
from irad.frontend.numba.messages import location_of
from irad.frontend.numba.reports import TypedFunction, program_of, raw_text, typed_functions
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.text.parser import parse_module
from irad.message import array_types
from irad.passes.generated import Generated
from irad.passes.instrument.source_map import SourceMap
from irad.passes.instrument.watched import TapePlaces
from irad.passes.pipeline import COMPLETE
from irad.report.functions import INACTIVE, PairReader
from irad.report.measure import Profile, is_call, measure, profile
from irad.report.model import FunctionReport, LineFacts, Refusal, Report, Stage, StageText, Storage, TextLine
from irad.report.source import UserSource, is_library
from irad.report.stages import (
    adjoint_python_stage,
    assembly_stage,
    compile_code,
    facts_stage,
    lines_of_functions,
    lines_of_text,
    optimized_stage,
    python_stage,
)
from irad.report.subject import Subject
from irad.report.tape_size import TapeReader, counted
from irad.report.variables import ActiveVariables, Copies, find_active
from irad.report.words import lane_words, numbers_of

# The lines of the user's source with everything that is known about them, or that is refused there.

_SUPPORT: Final = ("NRT_", "nrt_", "numba_", "irad.", "llvm.mem")

Variables = Mapping[int, tuple[frozenset[str], frozenset[str]]]


def line_facts(
    source: UserSource, functions: Collection[FunctionReport], variables: Iterable[Variables]
) -> tuple[LineFacts, ...]:
    """Facts for every line of the source, in order."""
    per_call, per_iteration, totals = (Counter[int]() for _ in range(3))
    rules: dict[int, dict[str, None]] = defaultdict(dict)
    active: dict[int, set[str]] = defaultdict(set)
    constant: dict[int, set[str]] = defaultdict(set)
    keeps: set[int] = set()
    entries = [entry for function in functions for entry in function.tape]
    for entry in entries:
        if entry.place is None or not source.is_here(entry.place):
            continue
        line = entry.place.line
        totals[line] += entry.total or 0
        if entry.bytes is None:
            keeps.add(line)
        else:
            (per_call if entry.storage is Storage.FRAME else per_iteration)[line] += entry.bytes
    for value in (value for function in functions for value in function.values):
        known = source.line_of(value.places)
        if value.rule is not None and known is not None and not _is_support(value.rule):
            rules[known][value.rule] = None
    for found in variables:
        for number, (some, others) in found.items():
            active[number] |= some
            constant[number] |= others
    is_measured = all(entry.total is not None for entry in entries)
    return tuple(
        LineFacts(
            line=number,
            text=source.text(number),
            active=tuple(sorted(active[number])),
            constant=tuple(sorted(constant[number] - active[number])),
            saved_per_call=per_call[number],
            saved_per_iteration=per_iteration[number],
            rules=tuple(rules[number]),
            saved=totals[number] if is_measured else None,
            keeps=number in keeps,
        )
        for number in source.numbers
    )


def refusals(source: UserSource, error: IradError) -> tuple[Refusal, ...]:
    """Everything that is refused, each with its line of the source."""
    found = dict[str, Refusal]()
    for each in error.errors if isinstance(error, UnsupportedProgram) else (error,):
        places = [place for place in (each.location, *each.callers) if place is not None]
        found.setdefault(str(each), Refusal(each.problem, str(each), source.line_of(places)))
    return tuple(found.values())


def _is_support(rule: str) -> bool:
    """True if a rule is for run-time support that no line of the source names: memory, reference counts, containers."""
    return rule.endswith(INACTIVE) or rule.startswith(_SUPPORT)


# What is read of a derivation while the engine runs, when analyses, sweeps and plan exist.


@dataclass
class Observed:
    """Facts that were read.

    Attributes:
        primals: the functions of the program, before they are differentiated.
        active: the active values and variables.
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
            copies: names of variables.
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
    """Place at which a function of the program is defined; None for library functions."""
    if getattr(inspect.unwrap(function), "__code__", None) is None:
        return None
    place = location_of(function)
    line = source.definition(place.line) if source.is_here(place) else place.line
    return None if is_library(place.file) else SourceLocation(place.file, line, place.function)


_CALL_DETAILS = re.compile(
    r"(?:, |(?<=\())func=[^,]+, args=\[.*?\], kws=.*?, vararg=[^,]+, varkwarg=[^,]+, target=[^)]+\)"
)

EARLY = frozenset({Stage.PYTHON, Stage.NUMBA_IR, Stage.LLVM, Stage.PREPARED})
"""The stages that every function has which Numba compiles."""

ALL = tuple(stage for stage in Stage if stage is not Stage.PTX)
"""The stages that are available on the CPU."""


def collect(subject: Subject, stages: Collection[Stage] = ALL) -> Report:
    """Everything that is known about a derivative.

    Args:
        subject: from `irad.report.subject.subject_of`.
        stages: whose text is wanted. If there are some and all come before the analyses, the function is not
            differentiated, and the report has no functions and no facts on its lines.

    Raises:
        UnsupportedError: a stage that there is not.
        IradError: the function cannot be differentiated.
    """
    return Collector(subject).report(stages)


@dataclass
class Collector:
    """Makes reports of one subject; what takes long is done once, when it is first needed."""

    subject: Subject
    args: tuple[Any, ...] = ()  # of the call, or their types: what a profile runs
    stages: tuple[Stage, ...] = ALL

    @cached_property
    def profile(self) -> Profile:
        """Shares of the running time: runs the derivative for a second."""
        return profile(self.subject, self.source, self.args)

    @cached_property
    def measurement(self) -> tuple[tuple[int, ...] | None, str]:
        """Number of units of each place of the tape in one call; None, and the reason, where there was none."""
        if not is_call(self.args):
            return None, ""
        try:
            return measure(self.subject, self.args).units, ""
        except Exception as error:  # of the user's function: what else is known is still shown
            name = self.subject.primal.py_func.__qualname__
            return None, f"the tape was not measured: {name} raises {type(error).__name__}: {error}"

    def report(self, stages: Collection[Stage], *, measures: bool = False) -> Report:
        """A report with the text of some stages; see `collect`.

        Args:
            stages: as there.
            measures: call the derivative once, on copies of the arguments, to see how much its tape takes; only where
                there are arguments, not types.
        """
        if Stage.PTX in stages:
            raise _no_ptx()
        dispatcher = self.subject.primal
        is_early = bool(stages) and not set(stages) - EARLY
        observed = Observed() if is_early else self.observed
        functions, note = observed.functions, ""
        if measures and not is_early:
            units, note = self.measurement
            functions = functions if units is None else tuple(counted(each, units) for each in functions)
        place = location_of(dispatcher.py_func)
        return Report(
            function=dispatcher.py_func.__qualname__,
            place=place,
            signature=f"{self.subject.signature} -> {self.program.signature.return_type}",
            options=str(self.subject.task.options),
            functions=functions,
            lines=line_facts(self.source, functions, observed.variables),
            stages={stage: self.stage(stage, is_early) for stage in Stage if stage in stages},
            note=note,
        )

    def refused(self, error: IradError) -> Report:
        """Report on a function that is refused: its source, what is refused, the stages before the analyses.

        Args:
            error: the exception from `report`; raised again if these stages are missing as well.
        """
        try:
            early = self.report(EARLY)
        except IradError:
            raise error from None
        return replace(early, refusals=refusals(self.source, error))

    def adjoint_as_python(self) -> PythonText:
        """Value and gradient as Python source.

        Raises:
            UnsupportedError: something in it has no Python form.
        """
        subject = self.subject
        positions = tuple(position for position, _ in subject.task.roles)
        return adjoint_as_python(subject.primal, subject.argument_types, positions, subject.task.options)

    def _adjoint_lines(self) -> list[str]:
        """The lines of the adjoint as Python source; why there is none, as comments."""
        try:
            return self.adjoint_as_python().lines
        except (UnsupportedError, SignatureError) as error:
            at = error.location and replace(error.location, file=Path(error.location.file).name)  # as in the heading
            place = [f"# That is at {at}."] if at is not None else []
            reasons = [f"# There is no Python form: {error.problem}.", *place, "# The adjoint as LLVM IR shows it all."]
            return [line for text in reasons for line in textwrap.wrap(text, 100, subsequent_indent="#   ")]

    @cached_property
    def program(self) -> NumbaProgram:
        """The program that irad reads."""
        return program_of(self.subject.primal, self.subject.argument_types)

    @cached_property
    def typed(self) -> tuple[TypedFunction, ...]:
        """Numba's typed IR of the user's functions."""
        found = typed_functions(self.subject.primal, self.subject.argument_types, lambda file: not is_library(file))
        return tuple(found)

    @cached_property
    def raw(self) -> str:
        """LLVM text that Numba lowers, before any optimisation."""
        return raw_text(self.subject.primal, self.subject.argument_types)

    @cached_property
    def source(self) -> UserSource:
        """The user's lines."""
        functions = (function for function, _ in self.program.python_functions.values())
        return UserSource.of(self.subject.primal.py_func, functions)

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Texts that LLVM made from the derivative."""
        return compile_code(self.subject.compiled())

    @cached_property
    def observed(self) -> Observed:
        """Findings of the engine."""
        found = Observed()

        def observe(name: str, record: Any) -> None:
            if name == "analysis.summary":
                found.primals = record.module.defined_functions()
            elif name == COMPLETE:
                functions = {symbol: f for symbol, (f, _) in self.program.python_functions.items()}
                copies = Copies.of_raw(parse_module(self.raw))
                found.read(record, self.program.ruled, functions, self.source, copies)
                found.split_variables(self.typed)

        observe_derivation(
            self.subject.primal,
            self.subject.argument_types,
            self.subject.task,
            observe,
            arguments_may_change=self.subject.arguments_may_change,
        )
        return found

    def stage(self, stage: Stage, is_early: bool) -> StageText:
        """The text of one stage."""
        match stage:
            case Stage.PYTHON:
                return python_stage(self.source)
            case Stage.NUMBA_IR:
                return StageText(stage, "text", tuple(_numba_ir(self.typed, self.source)))
            case Stage.LLVM:
                return StageText(stage, "llvm", lines_of_text(self.raw, self.source, Namer.of_text(self.raw)))
            case Stage.PREPARED:
                return StageText(stage, "llvm", self.prepared if is_early else self.observed.prepared)
            case Stage.ADJOINT_PYTHON:
                return adjoint_python_stage(self._adjoint_lines(), self.source)
            case Stage.ADJOINT:
                return StageText(stage, "llvm", self.observed.adjoint)
            case Stage.OPTIMIZED:
                return optimized_stage(self.texts, self.source)
            case Stage.ASM:
                return assembly_stage(self.texts, self.source)
            case _:
                return facts_stage(stage, self.observed.functions, self.source)

    @cached_property
    def prepared(self) -> tuple[TextLine, ...]:
        """The program as the analyses find it, of a function that is not differentiated."""
        module = prepare_program(self.program.text, CPU.canonical_loops)
        functions = [f for f in module.functions.values() if not f.is_declaration]
        return lines_of_functions(
            functions, DebugInfo(module), self.source, namer_of(self.program.ruled, map(str, module.functions))
        )


def _no_ptx() -> UnsupportedError:
    return UnsupportedError(
        "a function for the CPU has no PTX",
        "(a) ask for the stage asm, or (b) inspect a kernel of numba.cuda.jit",
        "PTX is the code of NVIDIA's GPUs",
    )


def _numba_ir(functions: Sequence[TypedFunction], source: UserSource) -> Iterable[TextLine]:
    if not functions:
        yield TextLine("# Numba keeps no types of this function: of one with a block in object mode, for example.")
    for each in functions:
        here = source.is_here(location_of(each.function))
        yield TextLine(f"# {each.function.__qualname__}")
        for line in each.ir.lines:
            text = array_types(_CALL_DETAILS.sub(")", line.text))
            raw = line.text if text != line.text else None
            yield TextLine(text, source.definition(line.line) if here else None, raw=raw)
        yield TextLine("")
