"""From a kernel and the types of a launch to a `Report`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

from irad.decompile.naming.symbols import Namer
from irad.errors import BackendError, IradError, UnsupportedError
from irad.frontend.numba.cpu import location_of
from irad.ir.debug_info import DebugInfo
from irad.ir.text.parser import parse_module
from irad.kernel.derive import KernelDerivative
from irad.kernel.program import ENTRY, load
from irad.passes.pipeline import COMPLETE
from irad.report.collect import EARLY
from irad.report.kernels.additions import additions_of
from irad.report.kernels.code import code_of, optimized_stage, ptx_stage
from irad.report.kernels.names import KernelNamer
from irad.report.kernels.subject import KernelSubject
from irad.report.lines import Variables, line_facts, refusals
from irad.report.llvm_text import lines_of_functions, lines_of_text
from irad.report.model import Addition, KernelCode, Report, Stage, StageText, TextLine
from irad.report.observed import Observed
from irad.report.source import UserSource
from irad.report.stages import facts_stage, python_stage
from irad.report.variables import Copies
from irad.source_text import names_in

ALL = tuple(stage for stage in Stage if stage not in (Stage.NUMBA_IR, Stage.ADJOINT_PYTHON, Stage.ASM))
"""The stages of a kernel."""


@dataclass
class KernelCollector:
    """Makes reports of one kernel; what takes long is done once, when it is first needed."""

    subject: KernelSubject
    args: tuple[Any, ...] = ()
    stages: tuple[Stage, ...] = ALL

    def report(self, stages: Collection[Stage], *, measures: bool = False) -> Report:
        """A report with the text of some stages, as `irad.report.collect.Collector` makes it of functions.

        Raises:
            UnsupportedError: a stage that kernels do not have.
            IradError: the kernel cannot be differentiated.
        """
        if missing := [stage for stage in stages if stage not in ALL]:
            raise _no_stage(missing[0])
        is_early = bool(stages) and not set(stages) - EARLY
        observed = Observed() if is_early else self.observed
        code, note = ((), "") if is_early or not measures else self.code
        kernel = self.subject.primal.py_func
        return Report(
            function=kernel.__qualname__,
            place=location_of(kernel),
            signature=self.subject.signature,
            options=str(self.subject.options),
            functions=observed.functions,
            lines=line_facts(self.source, observed.functions, [] if is_early else [self.variables]),
            stages={stage: self.stage(stage, is_early) for stage in Stage if stage in stages},
            note=note,
            code=code,
            additions=() if is_early else self.additions,
        )

    def refused(self, error: IradError) -> Report:
        """What there is of a kernel that is refused; see `irad.report.collect.Collector.refused`."""
        try:
            early = self.report([stage for stage in ALL if stage in EARLY])
        except IradError:
            raise error from None
        return replace(early, refusals=refusals(self.source, error))

    def adjoint_as_python(self) -> NoReturn:
        """Refused: threads have no Python form."""
        raise _no_stage(Stage.ADJOINT_PYTHON)

    @property
    def profile(self) -> NoReturn:
        """Refused: nothing is run."""
        raise UnsupportedError(
            "a kernel has no profile",
            "on a GPU: Nsight Compute shows the lines of the kernel, since irad keeps them",
            "a report needs no GPU, and the executor's times are not those of one",
        )

    @cached_property
    def source(self) -> UserSource:
        """The user's lines: of the kernel, and of the device functions beside it that it calls."""
        kernel = self.subject.primal.py_func
        return UserSource.of(kernel, self.subject.device_functions)

    @cached_property
    def namer(self) -> KernelNamer:
        """Names what is in the program."""
        return KernelNamer((self.subject.program.module.name,), self.subject.primal.py_func.__qualname__)

    @cached_property
    def copies(self) -> Copies:
        """What variables are called."""
        module = parse_module(self.subject.program.module.text)
        module.functions[self.subject.program.module.name].name = ENTRY
        return Copies.of_raw(module)

    @cached_property
    def derived(self) -> tuple[KernelDerivative, Observed, tuple[Addition, ...]]:
        """The derivative, what the engine found, and how it adds to shadows."""
        found, additions = Observed(), list[Addition]()

        def observe(name: str, record: Any) -> None:
            if name == "analysis.summary":
                found.primals = record.module.defined_functions()
            elif name == COMPLETE:
                defined = {ENTRY: self.subject.primal.py_func}
                found.read(record, (), defined, self.source, self.copies, self.namer)
                additions.extend(additions_of(record.pairs[0], found.functions[0], self.source))

        return self.subject.derive(observe), found, tuple(additions)

    @property
    def observed(self) -> Observed:
        """What the engine finds."""
        return self.derived[1]

    @property
    def additions(self) -> tuple[Addition, ...]:
        """How the derivative adds to shadows."""
        return self.derived[2]

    @cached_property
    def code(self) -> tuple[tuple[KernelCode, ...], str]:
        """What the code needs of GPUs; nothing, and why, where that is not known."""
        try:
            return code_of(self.subject.program.module, self.derived[0].module), ""
        except BackendError as error:
            return (), f"registers were not counted: {error.problem}: {error.remedy}"

    @cached_property
    def variables(self) -> Variables:
        """The variables that a line names: active if a value is that it makes, or if it makes none, any value."""
        made = defaultdict[tuple[int, str], set[bool]](set)
        anywhere = defaultdict[str, bool](bool)
        for value in (value for function in self.observed.functions for value in function.values):
            line = self.source.line_of(value.places)
            for name in {*value.variables, value.source}:  # of an argument or a shared array the latter
                anywhere[name] |= value.is_active
                if line is not None:
                    made[line, name].add(value.is_active)
        found = {}
        functions = (self.subject.primal.py_func, *self.subject.device_functions)
        variables = {name for function in functions for name in function.__code__.co_varnames}
        for line in self.source.numbers:
            names = names_in(self.source.text(line)) & variables
            active = frozenset(name for name in names if True in made.get((line, name), {anywhere[name]}))
            found[line] = active, names - active
        return found

    def stage(self, stage: Stage, is_early: bool) -> StageText:
        """The text of one stage."""
        match stage:
            case Stage.PYTHON:
                return python_stage(self.source)
            case Stage.LLVM:
                text = self.subject.program.module.text
                return StageText(stage, "llvm", lines_of_text(text, self.source, Namer.of_text(text)))
            case Stage.PREPARED:
                return StageText(stage, "llvm", self.prepared if is_early else self.observed.prepared)
            case Stage.ADJOINT:
                return StageText(stage, "llvm", self.observed.adjoint)
            case Stage.OPTIMIZED:
                return optimized_stage(self.derived[0].module, self.source)
            case Stage.PTX:
                return ptx_stage(self.derived[0].module, self.source, self.subject.primal.py_func.__name__)
            case _:
                return facts_stage(stage, self.observed.functions, self.source)

    @cached_property
    def prepared(self) -> tuple[TextLine, ...]:
        """The program as the engine reads it, of a kernel that is not differentiated."""
        module = parse_module(load(self.subject.program.module, self.subject.axes).text)
        return lines_of_functions(module.defined_functions(), DebugInfo(module), self.source, self.namer)


def _no_stage(stage: Stage) -> UnsupportedError:
    return UnsupportedError(
        f"there is no stage {stage.value} of a CUDA kernel",
        f"ask for one of {', '.join(each.value for each in ALL)}",
        "many threads run a kernel, on a GPU",
    )
