"""From a kernel and the types of a launch to a `Report`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NoReturn

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import LIMITS, bounds_of_launch
from irad.backend.cuda.lowering import entry_name
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx, optimised_text
from irad.backend.cuda.toolkit import Assembly, assemble
from irad.decompile.names import Namer
from irad.errors import BackendError, IradError, UnsupportedError
from irad.frontend.numba.messages import location_of
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import Load
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_lines
from irad.ir.values import Parameter, Value
from irad.kernel.derive import KernelDerivative
from irad.kernel.program import ENTRY, load
from irad.passes.generated import GeneratedPair
from irad.passes.parallel.ownership import Adding
from irad.passes.pipeline import COMPLETE
from irad.passes.request import ParameterKind
from irad.report.collect import EARLY, Observed, Variables, line_facts, refusals
from irad.report.kernels.subject import KernelSubject
from irad.report.model import Addition, FunctionReport, KernelCode, Report, Stage, StageText, TextLine, ValueFacts
from irad.report.source import UserSource
from irad.report.stages import facts_stage, lines_of_functions, lines_of_text, python_stage
from irad.report.variables import Copies
from irad.source_text import names_in

# Names in a kernel's program: its entry has none of its own, operations of the GPU have one in Python.

_REGISTERS: Final = "llvm.nvvm.read.ptx.sreg."
_OF_REGISTER: Final = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
_SHUFFLES: Final = {"idx": "shfl_sync", "up": "shfl_up_sync", "down": "shfl_down_sync", "bfly": "shfl_xor_sync"}
_OPERATIONS: Final = {
    "llvm.nvvm.barrier.cta.sync.aligned.all": "cuda.syncthreads",
    "llvm.nvvm.bar.warp.sync": "cuda.syncwarp",
    "llvm.nvvm.membar.cta": "cuda.threadfence_block",
    "llvm.nvvm.membar.gl": "cuda.threadfence",
    "llvm.nvvm.membar.sys": "cuda.threadfence_system",
    "irad.cuda.barrier.popc": "cuda.syncthreads_count",
    "irad.cuda.barrier.and": "cuda.syncthreads_and",
    "irad.cuda.barrier.or": "cuda.syncthreads_or",
    "irad.cuda.vote.all": "cuda.all_sync",
    "irad.cuda.vote.any": "cuda.any_sync",
    "irad.cuda.vote.uni": "cuda.eq_sync",
    "irad.cuda.vote.ballot": "cuda.ballot_sync",
    "irad.cuda.activemask": "cuda.activemask",
    "irad.cuda.lanemask.lt": "cuda.lanemask_lt",
    "irad.cuda.dynamic_shared_size": "the bytes of dynamic shared memory",
}


def cuda_name(symbol: str) -> str | None:
    """Python name of a symbol of the kernel dialect; None for other symbols."""
    if symbol.startswith(_REGISTERS):
        register, _, axis = symbol.removeprefix(_REGISTERS).partition(".")
        return f"cuda.{_OF_REGISTER.get(register, register)}" + (f".{axis}" if axis else "")
    match symbol.split("."):
        case ["irad", "cuda", "shfl", mode, _] if mode in _SHUFFLES:
            return f"cuda.{_SHUFFLES[mode]}"
        case ["irad", "cuda", "match", "any", _]:
            return "cuda.match_any_sync"
        case ["irad", "cuda", "atomic", ("add" | "sub") as kind, *_]:
            return f"cuda.atomic.{kind}"
        case _:
            return _OPERATIONS.get(symbol)


class KernelNamer(Namer):
    """Names of one kernel's program.

    Args:
        symbols: symbols of the program.
        kernel: its name for the user.
    """

    def __init__(self, symbols: Collection[str], kernel: str) -> None:
        super().__init__(symbols)
        self._kernel = kernel

    def name(self, symbol: str) -> str:
        """The short name of a symbol."""
        if symbol.startswith(ENTRY):
            return self._kernel + symbol.removeprefix(ENTRY)
        return cuda_name(symbol) or super().name(symbol)

    def shorten(self, text: str) -> str:
        """A text with its symbols replaced."""
        return super().shorten(text.replace(ENTRY, self._kernel))


# How a kernel's derivative adds to shadows, and why so: what the reverse sweep decided, array by array.

_HOW: Final = {
    Adding.PLAIN: "plainly",
    Adding.ATOMIC: "by atomic operations",
    Adding.SUMMED: "by one atomic operation for each block",
}
_WHY: Final = {
    Adding.PLAIN: "no two threads access the same element",
    Adding.ATOMIC: "several threads may read the same element",
    Adding.SUMMED: "all threads of a block read the same element",
}
_ALONE: Final = "each thread has its own"
_NUMBER: Final = "all threads share the number"


def additions_of(made: GeneratedPair, report: FunctionReport, source: UserSource) -> tuple[Addition, ...]:
    """Memory that the reverse sweep of a kernel adds to.

    Args:
        made: the pair of the kernel.
        report: on it.
        source: the user's lines.
    """
    names = print_lines(made.unit.function)[1]
    facts = {value.name: value for value in report.values if value.name}
    found: dict[tuple[str, str, str], set[int]] = {}
    for added, memory, how, why in _added(made):
        lines = found.setdefault((_named(facts.get(names.get(memory, ""))), _HOW[how], why), set())
        line = source.line_of(facts[names[added]].places)
        lines |= {line} if line is not None else set()
    kinds = zip(made.unit.function.params, made.unit.variant.kinds, strict=True)
    for param in (param for param, kind in kinds if kind is ParameterKind.ACTIVE):
        found[_named(facts.get(names[param])), _HOW[Adding.SUMMED], _NUMBER] = set()
    return tuple(Addition(*key, tuple(sorted(lines))) for key, lines in found.items())


def _named(facts: ValueFacts | None) -> str:
    return facts.source if facts is not None and facts.source else "a local array"


def _added(made: GeneratedPair) -> Iterator[tuple[Load, Value, Adding, str]]:
    """Each active load, with memory that it may read: to the shadow of that its cotangent is added."""
    unit = made.unit
    for inst in unit.function.instructions():
        if isinstance(inst, Load) and unit.activity.is_active(inst):
            pointer = inst.operands[0]
            how = made.sweep.adding(pointer, inst.type)
            for item in unit.points_to.of(pointer):
                if item.value is not None:
                    is_alone = how is Adding.PLAIN and not isinstance(item.value, Parameter)
                    yield inst, item.value, how, _ALONE if is_alone else _WHY[how]


# The stages after irad, of a kernel: the derivative optimised by LLVM, its PTX, and the resources that it needs.

ARCHITECTURES: Final = ("sm_80", "sm_90", "sm_100")
"""Whose machine code is looked at; texts are for the first."""


def code_of(primal: KernelModule, derivative: KernelModule) -> tuple[KernelCode, ...]:
    """Resources that kernel and derivative need, on each GPU.

    Raises:
        BackendError: ptxas is not on this machine.
    """
    found = []
    for arch in ARCHITECTURES:
        own, made = (assemble(compile_ptx(module, arch), arch) for module in (primal, derivative))
        limits = LIMITS[arch]
        largest = limits.threads_with(made.registers)
        bound = bounds_of_launch(derivative, limits.threads) if largest < limits.threads else None
        beyond = made if bound is None else assemble(compile_ptx(derivative, arch, bounds=LaunchBounds(bound)), arch)
        found.append(_needs(own, made, largest, beyond))
    return tuple(found)


def _needs(primal: Assembly, derivative: Assembly, largest: int, beyond: Assembly) -> KernelCode:
    return KernelCode(
        arch=derivative.arch,
        registers=derivative.registers,
        primal_registers=primal.registers,
        stack=derivative.stack,
        spilled=derivative.spill_stores + derivative.spill_loads,
        largest_block=largest,
        spilled_beyond=beyond.spill_stores + beyond.spill_loads,
        shared=derivative.shared,
        primal_shared=primal.shared,
    )


def optimized_stage(derivative: KernelModule, source: UserSource) -> StageText:
    """The derivative, inlined into one kernel, after all of LLVM's pipeline."""
    text = optimised_text(derivative, ARCHITECTURES[0])
    return StageText(Stage.OPTIMIZED, "llvm", lines_of_text(text, source, Namer.of_text(text)))


def ptx_stage(derivative: KernelModule, source: UserSource, name: str) -> StageText:
    """The PTX of the derivative, with the user's lines; the kernel goes by its Python name."""
    ptx = compile_ptx(derivative, ARCHITECTURES[0])
    return StageText(Stage.PTX, "ptx", tuple(_lines(ptx, entry_name(derivative.name), name, source)))


def _lines(ptx: str, entry: str, name: str, source: UserSource) -> Iterator[TextLine]:
    """A line belongs to the directive `.loc file line column` before it; the files are listed at the end."""
    texts = ptx.splitlines()
    namer = Namer.of_text(ptx.replace(entry, name))
    files = dict(_file(text) for text in texts if text.strip().startswith(".file"))
    line: int | None = None
    for raw in texts:
        words = raw.split()
        if words[:1] == [".loc"]:
            number = int(words[2])
            here = files.get(words[1]) == source.file and number in source.numbers
            line = number if here else None
        directive = bool(words) and words[0].startswith((".loc", ".file", ".section", "//", ".reg", ".version"))
        shown = namer.shorten(raw.expandtabs(8).replace(entry, name))
        yield TextLine(shown, line, None, directive or not words, raw if raw != shown else None)


def _file(text: str) -> tuple[str, str]:
    """Number and name of `.file 1 "/src/model.py"`."""
    _, number, name = text.split(maxsplit=2)
    return number, name.strip().strip('"')


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
        """Report on a kernel that is refused; see `irad.report.collect.Collector.refused`."""
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
        """Names of variables."""
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
        """Findings of the engine."""
        return self.derived[1]

    @property
    def additions(self) -> tuple[Addition, ...]:
        """Ways in which the derivative adds to shadows."""
        return self.derived[2]

    @cached_property
    def code(self) -> tuple[tuple[KernelCode, ...], str]:
        """Needs of the code on GPUs; none, and the reason, if that is not known."""
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
        f"a CUDA kernel has no stage {stage.value}",
        f"ask for one of {', '.join(each.value for each in ALL)}",
        "many threads run a kernel, on a GPU",
    )
