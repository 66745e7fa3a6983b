"""From program text and a request to the text of the derivative."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping, Sequence

from irad.compiling import collection_paused
from irad.errors import IradError, SourceLocation, UnsupportedProgram
from irad.ir.instructions import CallSite, Instruction, Store
from irad.ir.module import Function, Module
from irad.ir.reducible import make_reducible
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import format_instruction, print_module
from irad.ir.values import ConstantInt
from irad.ir.verifier import verify
from irad.ir.worklist import Worklist, components
from irad.message import source_line
from irad.options import errors_show_llvm
from irad.passes.convention import HostConvention
from irad.passes.derivative import finish, generate, prepare_module
from irad.passes.instrument.marks import MarkKind
from irad.passes.instrument.source_map import SourceMap
from irad.passes.instrument.watched import TapePlace, TapePlaces, TapeSlot, WatchedPlace, places_of
from irad.passes.mode import ModeFunction
from irad.passes.parallel.bulk import CLEAR
from irad.passes.parallel.flatten import launches_of
from irad.passes.program import DerivedFunctions, Observer, Program
from irad.passes.request import CalleeRequest, LoopArray, MemoryType, ParameterKind, Request, Signature
from irad.passes.variant import PointerVariant, Variant
from irad.records import dataclass
from irad.ruleset.registry import Registry

__all__ = [
    "CalleeRequest",
    "Derivative",
    "LoopArray",
    "MarkKind",
    "MemoryType",
    "Observer",
    "ParameterKind",
    "PointerVariant",
    "Request",
    "RuledFunctions",
    "Signature",
    "TapePlace",
    "TapeSlot",
    "WatchedPlace",
    "derive",
]


@dataclass(frozen=True, slots=True)
class RuledFunctions:
    """Functions that have to be defined elsewhere, by a rule for the function `primal`.

    Attributes:
        variant: the variant that they belong to.
        primal: symbol of the function that has the rule.
        symbols: those to define, of the types that the mode has for the variant.
        frame_size: symbol of a constant i64 to define: the bytes of frame that they share.
        width: that of the mode.
    """

    variant: Variant
    primal: str
    symbols: Mapping[ModeFunction, str]
    frame_size: str
    width: int = 1


@dataclass(frozen=True, slots=True)
class Derivative:
    """A derivative as LLVM text.

    Attributes:
        text: a module with the functions below and everything that they call.
        symbols: the functions of the mode, in the order in which they run.
        frame_size: bytes of frame, which the caller provides (64-byte aligned) and keeps from one call to the other.
        pointers: the tables that calls through pointers look up; by symbol, which the caller resolves.
        shadows: indices of the primal's parameters whose shadow the functions are given, in order. Those of kind CONST
            get zeroed memory of the same extent: a pointer may point there or to active memory.
        ruled: the functions that the text only declares.
        clear: `void (ptr, i64 bytes)`: clears memory with all threads; None where the program has no parallel loops.
        table: symbol of the table of ``places``, which whoever loads the text defines; None where nothing is watched.
        places: watched places, by number.
        tape: the places of the tape that are counted, by number; empty where none is.
        is_recursive: whether one of its functions calls itself, by way of others perhaps.
        is_speculative: zeros are not strong: where a result is NaN, the caller has to ask again, without
            `Request.speculates`.
    """

    text: str
    symbols: Mapping[ModeFunction, str]
    frame_size: int
    shadows: tuple[int, ...]
    pointers: Mapping[str, PointerVariant]
    ruled: tuple[RuledFunctions, ...] = ()
    clear: str | None = None
    table: str | None = None
    places: tuple[WatchedPlace, ...] = ()
    tape: tuple[TapePlace, ...] = ()
    is_recursive: bool = False
    is_speculative: bool = False

    @property
    def first(self) -> str:
        """The symbol of the function that runs the primal: the first of the mode."""
        return next(iter(self.symbols.values()))


def derive(
    program_text: str,
    request: Request,
    registry: Registry,
    *,
    check: bool = False,
    observe: Observer | None = None,
    canonical_loops: Callable[[str], str] | None = None,
) -> Derivative:
    """Differentiates the entry function of a program.

    Args:
        program_text: LLVM text in normal form, as the front end gives it.
        request: description of the derivative.
        registry: the rules.
        check: verify the code after each pass, and that the sweeps of each pair agree on what they decide.
        observe: is shown each pass of `irad.passes.pipeline` after it has run, by name, with what it worked on.
        canonical_loops: gives the loops of a program the normal form; without it, a program whose cycles can be entered
            at several places is refused.

    Raises:
        IradError: the program cannot be differentiated; with the place in the user's source.
    """
    with collection_paused():
        module = prepare_program(program_text, canonical_loops)
        if check:
            verify(module)
        try:
            generated = generate(module, request, registry, verifies=check, observe=observe)
        except UnsupportedProgram as several:
            locate(several, module, request.host)
            if len(set(map(str, several.errors))) == 1:  # of one line of the source
                raise several.errors[0] from None
            raise
        except IradError as error:
            locate(error, module, request.host)
            raise
        program = generated.program
        user = SourceMap(module, request.host.library, program.launches)
        # Places are read off before `finish`, which gives the instructions of the reverse sweep other lines.
        table, places = _places(program, user) if request.watches else (None, ())
        is_recursive = _has_recursion([each for made in generated.pairs for each in made.pair.functions.values()])
        tape = TapePlaces(program.tape_marks, program.frame_parts, user).all() if request.meters else ()
        finish(generated)
        entry = generated.pairs[0].pair
        size = entry.frame_size.initializer
        assert isinstance(size, ConstantInt)
        text = print_module(module)
    return Derivative(
        text,
        _symbols(entry),
        size.value,
        entry.shadows,
        program.tables_by_symbol(),
        tuple(_ruled(each, request.mode.width) for each in program.ruled),
        CLEAR if CLEAR in module.functions else None,
        table,
        places,
        tape,
        is_recursive,
        not (module.strong_zeros or request.no_zero_wins),
    )


def prepare_program(program_text: str, canonical_loops: Callable[[str], str] | None = None) -> Module:
    """The program as the analyses find it; arguments as those of `derive`."""
    module = _parse(program_text, canonical_loops)
    prepare_module(module)
    return module


def _has_recursion(functions: Sequence[Function]) -> bool:
    """True if one of some functions calls itself, by way of others perhaps."""
    calls: dict[Function, list[Function]] = {}
    for function in (pending := Worklist(functions)):
        calls[function] = _callees(function)
        pending.add(*calls[function])
    circles = {each for part in components(list(calls), calls) if len(part) > 1 for each in part}
    return any(each in circles or each in calls[each] for each in functions)


def _callees(function: Function) -> list[Function]:
    calls = (inst for inst in function.instructions() if isinstance(inst, CallSite))
    return [call.callee for call in calls if isinstance(call.callee, Function)]


def _places(program: Program, user: SourceMap) -> tuple[str, tuple[WatchedPlace, ...]]:
    """Watched places; the table is named by what it describes, so that equal programs share it."""
    table, places = program.places(), places_of(program.marks, user)
    name = f"irad.places.{hashlib.sha256(repr(places).encode()).hexdigest()[:16]}"
    del program.module.globals[str(table.name)]
    table.name = name
    program.module.globals[name] = table
    return name, places


def _symbols(derived: DerivedFunctions) -> Mapping[ModeFunction, str]:
    return {each: str(function.name) for each, function in derived.functions.items()}


def _ruled(derived: DerivedFunctions, width: int) -> RuledFunctions:
    primal, size = str(derived.variant.function.name), str(derived.frame_size.name)
    return RuledFunctions(derived.variant, primal, _symbols(derived), size, width)


def _parse(program_text: str, canonical_loops: Callable[[str], str] | None) -> Module:
    """The program with no cycles but loops in normal form."""
    module = parse_module(program_text)
    if canonical_loops is None:
        return module
    changed = [make_reducible(function) for function in module.defined_functions()]
    return parse_module(canonical_loops(print_module(module))) if any(changed) else module


def locate(error: IradError, module: Module, host: HostConvention) -> None:
    """Gives an error, and those it lists, the place in the user's source; and LLVM's text, if it was asked for.

    Of library code that was inlined into the user's, it is the place where it is called.
    """
    user = SourceMap(module, host.library, launches_of(module))
    for item in (error, *(error.errors if isinstance(error, UnsupportedProgram) else ())):
        if not isinstance(item.instruction, Instruction):
            continue
        if item.location is None:
            places = user.places(item.instruction)
            item.location, item.callers = (places[0] if places else None), tuple(places[1:])
            item.detail = item.detail or _source_line(item.location)
            item.focus = item.focus or _focus(item.instruction, item.detail)
        if errors_show_llvm():
            item.llvm = format_instruction(item.instruction)


def _source_line(location: SourceLocation | None) -> str | None:
    return source_line(location.file, location.line) or None if location is not None else None


def _focus(inst: Instruction, line: str | None) -> str | None:
    """Target of a line's only assignment, if a store is at fault."""
    if not isinstance(inst, Store) or line is None:
        return None
    try:
        statements = ast.parse(line).body
    except SyntaxError:
        return None
    match statements:
        case [ast.Assign(targets=[target]) | ast.AugAssign(target=target)]:
            return ast.get_source_segment(line, target)
        case _:
            return None
