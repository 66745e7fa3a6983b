"""From a module in a file to the module with its derivatives: what `irad opt` does.

Input   LLVM text of a module, the machine that it is for, options.
Output  `Differentiated`: an llvmlite module in which no call asks for a derivative any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from llvmlite.binding import ModuleRef

from irad.backend.toolchain import Toolchain
from irad.driver import Derivative, MemoryType, ParameterKind, Request, derive, locate
from irad.errors import BackendError, IradError, UnsupportedProgram
from irad.ir import types
from irad.ir.instructions import Call
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.options import Options
from irad.passes.generated import Generated
from irad.passes.memory.record_layouts import scalars
from irad.passes.pipeline import COMPLETE
from irad.raw import program
from irad.raw.calls import AutodiffCall, find_calls
from irad.raw.checks import check_units
from irad.raw.declared import Declared, define_pair, read_declared
from irad.raw.emit import PERSONALITY, add_wrapper, operands_of, result_of, wrapper_type
from irad.raw.link import join, share
from irad.raw.markers import ArgumentRole, drop_markers
from irad.raw.memory import InferredMemory
from irad.raw.places import name_places
from irad.raw.program import C
from irad.records import dataclass
from irad.rules import builtin
from irad.ruleset.registry import Registry

_NO_NUMBERS = MemoryType(8, ())


@dataclass(frozen=True, slots=True)
class Differentiated:
    """A module with its derivatives.

    Attributes:
        module: of llvmlite.
        calls: one text for each call that was replaced.
    """

    module: ModuleRef
    calls: tuple[str, ...]


def differentiate(text: str, toolchain: Toolchain, options: Options, level: int = 3) -> Differentiated:
    """Replaces all calls for derivatives.

    Args:
        text: LLVM text.
        toolchain: makes code for the machine that the module is for.
        options: options of the derivation.
        level: of optimisation of the derivatives.

    Raises:
        IradError: a call cannot be understood, or a function not be differentiated.
    """
    module = parse_module(text)
    declared = read_declared(module, builtin.registry())
    registry = Registry.of(*declared.rules()).overlaid_on(builtin.registry())
    memory = InferredMemory(module)
    try:
        calls = find_calls(module, registry, memory.holds_integers)
    except IradError as error:
        name_places(error, module)
        raise
    if not calls:
        raise BackendError(
            "nothing in this module asks for a derivative",
            "call a function whose name contains __irad_autodiff or __irad_fwddiff (or __enzyme_… of both): see "
            "irad opt --help",
            "the compiler may have removed a call whose result is unused",
        )
    work = _Work(text, toolchain, module, options, declared, registry, memory)
    for asked in calls:
        work.add(asked)
    work.raise_errors()
    drop_markers(module)
    joined = join(module, work.modules, work.shared, work.wrappers, work.tables, level)
    return Differentiated(joined, tuple(describe(asked) for asked in calls))


def describe(asked: AutodiffCall) -> str:
    """A call for a derivative in words."""
    roles = ", ".join(argument.role.value for argument in asked.arguments)
    return f"{asked.primal.name}({roles})"


@dataclass(eq=False, slots=True)
class _Work:
    """The derivatives of one module; equal calls share one."""

    text: str
    toolchain: Toolchain
    module: Module
    options: Options
    declared: Declared
    registry: Registry
    memory: InferredMemory
    modules: list[Module] = field(default_factory=list)
    shared: set[str] = field(default_factory=set)
    wrappers: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    errors: list[IradError] = field(default_factory=list)

    def add(self, asked: AutodiffCall) -> None:
        """Derives what a call asks for and makes it a call of that."""
        try:
            result_of(asked)
            derivative = self.derive(asked)
            made = self.completed(asked, derivative)
        except IradError as error:
            error.instruction = error.instruction or asked.call
            name_places(error, self.module, str(asked.primal.name), is_forward=asked.mode.is_forward)
            self.errors.append(error)
            return
        self.tables |= set(derivative.pointers)
        name = self.next_wrapper(asked)
        self.shared |= share(made, self.module, name, asked.primal)
        self.modules.append(made)
        self.wrappers.append(name)
        self.redirect(asked, self.wrappers[-1])

    def next_wrapper(self, asked: AutodiffCall) -> str:
        """The symbol of what takes the place of the next call."""
        return f"irad.{'fwddiff' if asked.is_forward else 'autodiff'}.{len(self.wrappers)}"

    def derive(self, asked: AutodiffCall) -> Derivative:
        """The derivative that a call asks for."""
        name, symbols = str(asked.primal.name), self.declared.symbols()
        text = program.load(self.text, name, self.registry, self.toolchain, asked.mode, symbols)
        return derive(
            text,
            self.request(asked),
            self.registry,
            check=self.options.verify,
            observe=_refuse,
            canonical_loops=self.toolchain.canonical_loops,
        )

    def completed(self, asked: AutodiffCall, derivative: Derivative) -> Module:
        """The derivative's module with the pairs that the original has, and the wrapper."""
        made = parse_module(derivative.text)
        for pair in derivative.ruled:
            define_pair(made, pair, self.declared.handwritten[pair.primal])
        add_wrapper(made, asked, derivative, self.next_wrapper(asked), catches=PERSONALITY in self.module.functions)
        return made

    def request(self, asked: AutodiffCall) -> Request:
        result = asked.primal.function_type.result
        kinds = [ParameterKind.SHADOW if program.returns_numbers(result) else ParameterKind.CONST]
        memory: list[MemoryType | None] = [_memory_of_value(result)]
        for argument, param in zip(asked.arguments, asked.primal.params, strict=True):
            kinds.append(ParameterKind.ACTIVE if argument.has_tangent else _kind_of(argument.role))
            memory.append(self.memory.of_argument(param, argument.value) if argument.is_duplicated else None)
        unneeded = (n for n, argument in enumerate(asked.arguments, 1) if argument.role is ArgumentRole.DUP_NO_NEED)
        return Request(
            entry=program.ENTRY,
            kinds=tuple(kinds),
            memory=tuple(memory),
            host=C,
            mode=asked.mode,
            plan=self.options.plan,
            strict=self.options.strict,
            zero_wins=self.options.zero_times_infinity == "zero",
            no_zero_wins=self.options.zero_times_infinity == "nan",
            unneeded=frozenset(unneeded),
        )

    def redirect(self, asked: AutodiffCall, name: str) -> None:
        """Makes the call one of the wrapper."""
        call = asked.call
        type_ = wrapper_type(asked)
        wrapper = self.module.declare(name, type_)
        values = operands_of(asked)
        call.set_operands([*values, wrapper])
        call.function_type, call.convention = type_, None
        call.argument_attributes, call.result_attributes = ((),) * len(values), ()
        call.attributes, call.bundles, call.flags = (), (), ()
        if isinstance(call, Call):
            call.tail = None

    def raise_errors(self) -> None:
        """Raises what went wrong: one error as it is, several as one."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise UnsupportedProgram(_flat(self.errors))


def _refuse(name: str, record: object) -> None:
    """Refuses what only raw IR can contain, while everything that the analyses refer to still exists."""
    if name != COMPLETE:
        return
    assert isinstance(record, Generated)
    try:
        check_units(record.pairs)
    except IradError as error:
        locate(error, record.program.module, C)
        raise


def _flat(errors: Sequence[IradError]) -> list[IradError]:
    found: list[IradError] = []
    for error in errors:
        found.extend(error.errors if isinstance(error, UnsupportedProgram) else [error])
    return found


def _kind_of(role: ArgumentRole) -> ParameterKind:
    match role:
        case ArgumentRole.CONST:
            return ParameterKind.CONST
        case ArgumentRole.OUT:
            return ParameterKind.ACTIVE
        case ArgumentRole.DUP | ArgumentRole.DUP_NO_NEED:
            return ParameterKind.SHADOW


def _memory_of_value(result: types.Type) -> MemoryType:
    """Memory at the place of the primal's result."""
    if not program.returns_numbers(result):
        return _NO_NUMBERS
    return MemoryType(types.size_of(result), tuple((offset, str(kind)) for offset, kind in scalars(result)))
