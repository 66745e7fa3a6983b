"""From a function and the types of a call to a `Report`.

Input   a `Subject`, the stages that are wanted.
Output  `Report`: plain data.
Method  derive once more, with an observer; read the analyses, the plan and the tape while they exist. The stages before
        the analyses need no derivative, so functions that are refused have them too.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from irad.decompile.naming.symbols import Namer
from irad.decompile.text import PythonText, adjoint_as_python
from irad.driver import prepare_program
from irad.errors import IradError, SignatureError, UnsupportedError
from irad.frontend.derivation import observe_derivation
from irad.frontend.numba.cpu import NumbaProgram, location_of
from irad.frontend.numba.library import CPU
from irad.frontend.numba.reports.inspection import TypedFunction, program_of, raw_text, typed_functions
from irad.ir.debug_info import DebugInfo
from irad.ir.text.parser import parse_module
from irad.message import array_types
from irad.passes.pipeline import COMPLETE
from irad.report.lines import line_facts, refusals
from irad.report.llvm_text import lines_of_functions, lines_of_text
from irad.report.machine import assembly_stage, compile_code, optimized_stage
from irad.report.model import Report, Stage, StageText, TextLine
from irad.report.observed import Observed, namer_of
from irad.report.profile import Profile, profile
from irad.report.source import UserSource, is_library
from irad.report.stages import adjoint_python_stage, facts_stage, python_stage
from irad.report.subject import Subject
from irad.report.tape.measure import is_call, measure
from irad.report.tape.totals import counted
from irad.report.variables import Copies

_CALL_DETAILS = re.compile(
    r"(?:, |(?<=\())func=[^,]+, args=\[.*?\], kws=.*?, vararg=[^,]+, varkwarg=[^,]+, target=[^)]+\)"
)

EARLY = frozenset({Stage.PYTHON, Stage.NUMBA_IR, Stage.LLVM, Stage.PREPARED})
"""The stages that every function has which Numba compiles."""

ALL = tuple(stage for stage in Stage if stage is not Stage.PTX)
"""The stages that can be had on the CPU."""


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
        """Where the time goes: runs the derivative for a second."""
        return profile(self.subject, self.source, self.args)

    @cached_property
    def measurement(self) -> tuple[tuple[int, ...] | None, str]:
        """How many units each place of the tape had in one call; None, and why, where there was none."""
        if not is_call(self.args):
            return None, ""
        try:
            return measure(self.subject, self.args).units, ""
        except Exception as error:  # of the user's function: what else is known is shown all the same
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
        """What there is of a function that is refused: its source, what is refused, the stages before the analyses.

        Args:
            error: what `report` has raised; it is raised again where there are no such stages either.
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
            place = [f"# That is at {error.location}."] if error.location is not None else []
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
        """What Numba lowers, before any optimisation."""
        return raw_text(self.subject.primal, self.subject.argument_types)

    @cached_property
    def source(self) -> UserSource:
        """The user's lines."""
        functions = (function for function, _ in self.program.python_functions.values())
        return UserSource.of(self.subject.primal.py_func, functions)

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """What LLVM made from the derivative."""
        return compile_code(self.subject.compiled())

    @cached_property
    def observed(self) -> Observed:
        """What the engine finds."""
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
        "there is no PTX of a function for the CPU",
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
