"""The CPU front end: a Numba function and its argument types become one LLVM text.

Input   a ``CPUDispatcher`` in any state and Numba types of its arguments.
Output  `NumbaProgram`: scalar, normalised LLVM text of the function and of its callees, and what is needed to run it.
Method  compile privately (`private`), link the raw modules, optimise them to the normal form (`optimise`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import errors as numba_errors
from numba.core.ccallback import CFunc
from numba.core.codegen import CodeLibrary
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.funcdesc import FunctionDescriptor
from numba.core.types import Type
from numba.core.typing import Signature as NumbaSignature

from irad.backend import equality
from irad.backend.optimise import scalarise
from irad.backend.patterns import calls_through_pointers, has_vectors
from irad.compiling import collection_paused, step
from irad.driver import LoopArray, Signature
from irad.errors import BackendError, IradError, SourceLocation, UnsupportedError
from irad.frontend.custom import catalogue, ruled_calls
from irad.frontend.custom.ruled_calls import Outlined
from irad.frontend.diagnosis.unexpected import about_argument, as_cause, no_signature, unexpected
from irad.frontend.frozen import check
from irad.frontend.frozen.check import check_links, lowered_of
from irad.frontend.numba import internals, marks, private, samplers, shortcuts
from irad.frontend.numba.convention import NUMBA
from irad.frontend.numba.form import Form
from irad.frontend.numba.lengths import observed_lengths
from irad.frontend.numba.library import CPU
from irad.frontend.numba.memory import signature_of
from irad.frontend.numba.messages import REFUSALS, Explanation, explanation, location_of
from irad.frontend.numba.patches import watch
from irad.frontend.numba.raw_target import ENVIRONMENT_PREFIX, UNRESOLVED_PREFIX, AddressedFunction, RawLibrary
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.worklist import reachable
from irad.passes.prepare.devirtualise import devirtualise
from irad.passes.subscripts.dimensions import DIMENSION
from irad.records import dataclass


@dataclass(frozen=True)
class NumbaProgram:
    """A whole program as text.

    Attributes:
        text: scalar, normalised LLVM text.
        entry: symbol of the user's function in it.
        signature: Numba's signature of the entry.
        descriptor: Numba's function descriptor of the entry.
        environments: values of the program's environment globals; set them when the text is loaded.
        python_functions: symbol → Python function (or the library function it implements) and its signature.
        symbols: of all functions that were lowered for it, those inside derivatives included.
        kernels: symbol and arguments of the kernel of each parallel loop.
        ruled: functions for which users wrote rules.
        signatures: memory that the parameters of the functions in the text point to.
        source: where the user's function is defined.
        alive: objects whose addresses the text holds.
        lengths: those of a call for which versions were made, or might have been.
    """

    text: str = field(repr=False)
    entry: str
    signature: NumbaSignature
    descriptor: FunctionDescriptor = field(repr=False)
    environments: tuple[Any, ...] = field(repr=False)
    python_functions: dict[str, tuple[Callable[..., Any], NumbaSignature]] = field(repr=False)
    symbols: frozenset[str] = field(repr=False)
    kernels: tuple[tuple[str, tuple[LoopArray, ...]], ...] = field(repr=False)
    ruled: tuple[Outlined, ...] = field(repr=False)
    signatures: tuple[Signature, ...] = field(repr=False)
    source: SourceLocation
    alive: tuple[Any, ...] = field(repr=False)
    lengths: Mapping[int, int] = field(repr=False)


_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})
_programs: weakref.WeakKeyDictionary[Any, dict[Any, NumbaProgram]] = weakref.WeakKeyDictionary()


@catalogue.when_changed
def _forget() -> None:
    """Drops all programs: a rule decides which calls stay calls."""
    with private.compiler_lock():
        _programs.clear()
        private.shadow().forget_callers_when_idle()


def _note_specialisation(dispatcher: Dispatcher, compiled: CompileResult) -> None:
    """Drops the derivatives of a function that Numba compiled after them, with other values of globals."""
    check.note_level(compiled)
    earlier = private.shadow().lowered(dispatcher, tuple(compiled.signature.args))
    if any(lowered.has_changed(compiled, private.compiled_by_numba) for lowered in earlier):
        is_known = dispatcher not in private.shadow().implementations  # else no program tells that it is in it
        catalogue.changed(dispatcher if is_known else None)


watch(_note_specialisation)


def load_program(
    dispatcher: Dispatcher,
    argument_types: tuple[Type, ...],
    *,
    peels: bool = True,
    checks: bool = False,
    plain: bool = False,
    promotes: bool = True,
) -> NumbaProgram:
    """The LLVM text of a Numba function for argument types.

    The dispatcher is not touched: nothing is added to its overloads, caches or statistics. Functions are lowered again;
    globals have the values that Numba froze, or, where it compiled nothing yet, those of this moment. The result is
    remembered as long as the dispatcher lives.

    Args:
        dispatcher: any ``CPUDispatcher``.
        argument_types: Numba types, defaults and star arguments folded as Numba does.
        peels: whether LLVM may take iterations out of loops; else their numbers are those of the source.
        checks: whether an index out of bounds raises.
        plain: whether parallel loops are compiled as loops, and checkpoints as calls.
        promotes: whether small arrays become values.

    Raises:
        BackendError: Numba cannot compile it.
        ChangedProgramError: Numba compiled it, or what it calls, with values that it did not keep.
        numba.core.errors.ForceLiteralArg: Numba asks for literal types of some arguments; call again with those.
    """
    if plain:  # what is compiled in that form has tables of its own, in which none of the library is yet
        program = load_program(dispatcher, argument_types, peels=peels, checks=checks, promotes=promotes)
        if not (program.kernels or any(each.rule.has_plain_form for each in program.ruled)):
            return program
    key = (argument_types, peels, checks, plain, promotes)
    known = _programs.get(dispatcher, {})
    # What was loaded for another call, to be checked with a few numbers, does not have the versions for this one.
    found = known.get(key)
    if found is None or (promotes and not found.lengths and observed_lengths(dispatcher, tuple(found.signature.args))):
        source = location_of(dispatcher.py_func)
        told = step(f"compiling {source.function} with Numba")
        with told as details, collection_paused(), private.shadow().active(Form(checks, plain)):
            while True:
                epoch = catalogue.epoch()
                compiled = _current(lambda: _compile(dispatcher, argument_types))
                lengths = observed_lengths(dispatcher, tuple(compiled.signature.args))
                program = _load(compiled, source, lengths=lengths, peels=peels, promotes=promotes)
                if epoch == catalogue.epoch():
                    break  # else the check had Numba load a callee from disk that was made otherwise
            known = _programs.setdefault(dispatcher, {})
            known[key] = program
            details.append(f"{program.text.count(chr(10))} lines of LLVM IR")
    return known[key]


def linked_text(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> str:
    """The program as Numba lowers it, linked and not optimised; not remembered.

    Raises:
        BackendError: Numba cannot compile it.
    """
    with private.shadow().active():
        return str(_Linker(_compile(dispatcher, argument_types).library).module)


def program_to_run(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> tuple[str, CompileResult]:
    """The program as Numba lowers it, to be run and not differentiated; linked, not optimised, and not remembered.

    Returns:
        The text, without marks of irad, and Numba's compile result, which the text has addresses of.

    Raises:
        BackendError: Numba cannot compile it.
        ChangedProgramError: Numba compiled it, or what it calls, with values that it did not keep.
    """
    with private.shadow().active(Form(only_runs=True)):
        compiled = _current(lambda: _compile(dispatcher, argument_types))
        linked = _Linker(compiled.library)
        _check_frozen(linked.libraries)
        module = linked.module
        if any(each.name == DIMENSION for each in module.functions):
            module.link_in(llvm.parse_assembly(_UNMARKED_DIMENSION))
        return shortcuts.define(samplers.define_draws(equality.reveal(str(module)))), compiled


_UNMARKED_DIMENSION: Final = f"""
define linkonce_odr i64 @{DIMENSION}(i64 %size, ptr %array) alwaysinline {{
  ret i64 %size
}}
"""


def load_callee(
    found: AddressedFunction, *, peels: bool = True, checks: bool = False, promotes: bool = True
) -> NumbaProgram:
    """The program of a function that Numba compiled, with the entry that was asked for; not remembered."""
    with private.shadow().active(Form(checks)):
        function = found.function
        if isinstance(function, CFunc):
            compiled = private.shadow().context.compile_cfunc(function)
            source = location_of(function.__wrapped__)
        else:
            compiled = _current(lambda: _compile(ruled_calls.caller_of(function), tuple(found.signature.args)))
            source = location_of(function.py_func)
        return _load(compiled, source, wrapper=found.is_wrapper, peels=peels, promotes=promotes)


def _compile(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> CompileResult:
    """Numba's compile result, lowered only."""
    try:
        compiled = private.compile_raw(dispatcher, argument_types)
    # Not a refusal: the caller tries again with literal types.
    except numba_errors.ForceLiteralArg:
        raise
    except IradError as error:  # of what it calls
        error.location = error.location or location_of(dispatcher.py_func)
        raise
    except REFUSALS as error:
        found = about_argument(explanation(error), error, dispatcher.py_func, argument_types)
        raise refusal(found, location_of(dispatcher.py_func)) from error
    # It says nothing about the program, so it must not become a refusal.
    except MemoryError:
        raise
    except Exception as error:
        unforeseen = unexpected(error)
        if unforeseen is None:
            raise
        raise refusal(unforeseen, location_of(dispatcher.py_func)) from as_cause(error)
    if compiled is None:
        misfit = no_signature(private.declared_arguments(dispatcher), argument_types)
        raise refusal(misfit, location_of(dispatcher.py_func))
    return compiled


def _current(compile_it: Callable[[], CompileResult]) -> CompileResult:
    """A compile result of which no function was lowered before Numba compiled it, with other values or rules."""
    epoch = catalogue.epoch()
    compiled = compile_it()
    # Numba imports the module of a function that came in a pickle while it lowers it; that may declare rules.
    is_ruled_otherwise = catalogue.epoch() != epoch
    if is_ruled_otherwise or any(lowered.is_outdated() for lowered in lowered_of(_reachable(compiled.library))):
        private.shadow().forget_callers()
        compiled = compile_it()
    return compiled


def _check_frozen(libraries: list[CodeLibrary]) -> None:
    """Checks that functions are what Numba compiled for them, where it did.

    Raises:
        ChangedProgramError: Numba compiled another program, and kept too little for irad to do the same.
    """
    # callees first: what is compiled again is called by what comes after it
    for lowered in reversed(lowered_of(libraries)):
        lowered.check(private.compiled_by_numba, private.compiled_again)
    for library in libraries:
        if getattr(library, "lowered", None) is not None:
            check_links(library)


def _load(
    compiled: CompileResult,
    source: SourceLocation,
    *,
    wrapper: bool = False,
    lengths: Mapping[int, int] = _NONE,
    peels: bool,
    promotes: bool,
) -> NumbaProgram:
    """The program of what was lowered.

    Args:
        compiled: Numba's compile result.
        source: where the function is defined.
        wrapper: whether its entry is the wrapper that is called from C.
        lengths: lengths that parameters probably have.
        peels, promotes: as of `load_program`.
    """
    if wrapper:
        symbol = compiled.fndesc.llvm_cfunc_wrapper_name
        linked = _Linker(private.shadow().context.cfunc_library(compiled.library))
    else:
        symbol = compiled.fndesc.mangled_name
        linked = _Linker(compiled.library)
    _check_frozen(linked.libraries)
    libraries = _reachable(compiled.library)
    _refuse_pullbacks(linked)
    ruled = tuple(each for library in linked.libraries for each in _ruled(library))
    text = _normal_form(linked.module, (symbol, *(each.symbol for each in ruled)), lengths, peels, promotes)
    return NumbaProgram(
        text=text,
        entry=symbol,
        signature=compiled.signature,
        descriptor=compiled.fndesc,
        environments=linked.environments(),
        python_functions=_python_functions(linked.libraries),
        symbols=frozenset(_symbols(linked.libraries)),
        kernels=tuple(k for library in libraries if (k := getattr(library, "kernel", None)) is not None),
        ruled=ruled,
        signatures=tuple(_signatures(linked.libraries, text)),
        source=source,
        alive=(compiled, *linked.libraries),
        lengths=lengths,
    )


def _ruled(library: CodeLibrary) -> tuple[Outlined, ...]:
    """The functions of a library that users declared something of: it is one, or a derivative that calls some."""
    outlined = getattr(library, "outlined", None)
    return getattr(library, "ruled", ()) if outlined is None else (outlined,)


def _normal_form(
    module: llvm.ModuleRef, keep: tuple[str, ...], lengths: Mapping[int, int], peels: bool, promotes: bool
) -> str:
    """The program's text in normal form. Calls through pointers are made direct, then the pipeline inlines them.

    ``keep`` names the entry and the functions that stay calls.
    """
    return shortcuts.define(samplers.define_draws(_optimised(module, keep, lengths, peels, promotes)))


def _optimised(module: Any, keep: tuple[str, ...], lengths: Mapping[int, int], peels: bool, promotes: bool) -> str:
    references = NUMBA.references if promotes else None
    # The first is the entry, which nothing calls; the others are functions with a rule, and have to stay calls.
    noinline = (marks.RAISE, *keep[1:])
    raising = tuple(function.name for function in module.functions if _only_raises(function))
    text = scalarise(
        module,
        keep,
        CPU,
        noinline=noinline,
        raising=raising,
        peels=peels,
        references=references,
        lengths={keep[0]: lengths} if lengths else _NONE,
    )
    if has_vectors(text):  # what rules call was finished by Numba, for programs that are not differentiated
        # loaded where it is used: few programs have vectors before they are differentiated
        from irad.raw.normal_form.vectors import split_vectors

        parsed = parse_module(text)
        split_vectors(parsed)
        text = scalarise(print_module(parsed), keep, CPU, noinline=noinline, peels=peels, references=references)
    if not calls_through_pointers(text):
        return text
    parsed = parse_module(text)
    if not devirtualise(parsed):
        return text
    # Once more, so that calls which have become direct are inlined.
    return scalarise(print_module(parsed), keep, CPU, noinline=noinline, peels=peels, references=references)


def _only_raises(function: llvm.ValueRef) -> bool:
    """True if a function takes nothing but integers, and raises whenever it is called.

    Such a function writes a message: Numba's for shapes that do not match has two thousand instructions, and an
    assignment to a slice calls it for each axis. Since neither memory nor active numbers are passed to it, nothing is
    lost to the analyses where it stays a call.
    """
    if function.is_declaration or not function.name.startswith("_ZN"):
        return False
    parameters = list(function.arguments)
    if [each.name for each in parameters[:2]] != ["retptr", "excinfo"]:
        return False
    if not all(str(each.type).startswith("i") for each in parameters[2:]):
        return False
    last = (list(block.instructions)[-1] for block in function.blocks)
    statuses = {str(next(each.operands)) for each in last if each.opcode == "ret"}
    return bool(statuses) and statuses.isdisjoint(_NO_ERROR)


_NO_ERROR = frozenset({"i32 0", "i32 -2", "i32 -3"})  # ok, ok with None, end of iteration: Numba's status codes


def refusal(found: Explanation, source: SourceLocation) -> BackendError:
    """Numba's refusal of a function, with the line it is about."""
    place, callers = found.location(source)
    refused = BackendError(
        f"Numba cannot compile {source.function}: {found.problem}", found.remedy, found.reason, place, focus=found.focus
    )
    refused.callers = callers
    return refused


def refuse_pullback(primal: Dispatcher) -> None:
    """Refuses a tape that is made in a function to be differentiated.

    Raises:
        UnsupportedError: it is.
    """
    if private.shadow().refuses_pullbacks:
        raise _pullback_inside(primal.py_func.__qualname__)


def _pullback_inside(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"the function to differentiate keeps a tape of {name}",
        "(a) irad.vjp in place of irad.split, or irad.value_and_grad, or "
        "(b) give the function that calls it a rule, in irad.rules",
        "tapes outlive the call that made them, and irad does not differentiate them",
    )


def _refuse_pullbacks(linked: _Linker) -> None:
    """Refuses tapes, and reverse mode of recursive functions, anywhere but in the bodies of functions with a rule.

    Raises:
        UnsupportedError: it does.
    """
    for library in (each for root in linked.roots for each in _reachable(root, into_ruled=False)):
        name = getattr(library, "pullback", None)
        if name is not None:
            raise _pullback_inside(name)
        recursive = getattr(library, "recursive", None)
        if recursive is not None:
            raise UnsupportedError(
                f"the second derivative of {recursive} is differentiated, and {recursive} is recursive",
                "(a) write it as a loop or (b) give it a rule, in irad.rules",
                "irad cannot follow what nested calls of a recursive function save",
            )


def _reachable(root: CodeLibrary, *, into_ruled: bool = True) -> list[CodeLibrary]:
    """A library and everything that it calls, each once, callers first; without Numba's runtime.

    Without ``into_ruled`` not what the bodies of functions with a rule call.
    """
    runtime = private.runtime_library()

    def callees(library: CodeLibrary) -> list[CodeLibrary]:
        outlined = getattr(library, "outlined", None)
        if not into_ruled and outlined is not None and outlined.rule.replaces_body:
            return []
        return [callee for callee in reversed(internals.linked_libraries(library)) if callee is not runtime]

    return list(reachable([root], callees))


def _python_functions(libraries: list[CodeLibrary]) -> dict[str, tuple[Callable[..., Any], NumbaSignature]]:
    """The Python functions that the symbols of libraries were compiled from."""
    found = {
        library.descriptor.mangled_name: library.function
        for library in libraries
        if isinstance(library, RawLibrary) and library.function is not None
    }
    for symbol, function in private.overload_functions():
        if symbol in found and callable(function):
            found[symbol] = (function, found[symbol][1])
    return found


def _symbols(libraries: list[CodeLibrary]) -> Iterator[str]:
    for library in libraries:
        if isinstance(library, RawLibrary):
            yield from () if library.descriptor is None else (library.descriptor.mangled_name,)
        else:
            yield from getattr(library, "program_symbols", ())


def _signatures(libraries: list[CodeLibrary], text: str) -> Iterator[Signature]:
    """The signatures of the functions that are left in a program."""
    names = text.replace('"', "")
    for library in libraries:
        if not isinstance(library, RawLibrary):
            derived: tuple[Signature, ...] = getattr(library, "signatures", ())
            yield from (each for each in derived if each.memory and f"@{each.symbol}(" in names)
            continue
        descriptor = getattr(library, "outlined_descriptor", library.descriptor)
        if descriptor is not None and f"@{descriptor.mangled_name}(" in names:
            function = library.module.get_function(descriptor.mangled_name)
            yield signature_of(descriptor, [parameter.name for parameter in function.arguments])


class _Linker:
    """Joins the raw modules of a program."""

    def __init__(self, root: CodeLibrary) -> None:
        self.libraries, self.roots = [root], [root]
        assert isinstance(root, RawLibrary)
        self.module = root.module.clone()
        self._add(root)
        self._resolve()

    def _add(self, root: CodeLibrary) -> None:
        """Links a library and its callees."""
        for library in _reachable(root):
            if library not in self.libraries:
                self.libraries.append(library)
                self._link(library)

    def _link(self, library: CodeLibrary) -> None:
        if isinstance(library, RawLibrary):
            self.module.link_in(library.module, preserve=True)
        else:
            self.module.link_in(llvm.parse_assembly(equality.hide(str(private.raw_module_of(library)))))

    def _resolve(self) -> None:
        """Links what is called through recursion or as a first-class value, which no library names as its callee."""
        asked: set[str] = set()
        while wanted := [symbol for symbol in self._undefined() if symbol not in asked]:
            asked.update(wanted)
            for library in [each for symbol in wanted for each in self._provide(symbol)]:
                self.roots.append(library)
                self._add(library)
        self._link_unresolved()
        if missing := self._undefined():
            _refuse_pullbacks(self)  # tapes are made with code of another derivative
            raise BackendError(
                f"the program calls {missing[0]}, which Numba compiled but did not pass on to irad",
                "report it with the function that caused it",
                "irad differentiates the whole program and needs the code of every function in it",
            )
        self.module.link_in(llvm.parse_assembly(private.inline_runtime()))

    def _undefined(self) -> list[str]:
        """Symbols that Numba must have compiled, but that no linked module defines."""
        names = {f.name for f in self.module.functions if f.is_declaration}
        names |= {n for n in map(_unresolved_target, self.module.global_variables) if n}
        defined = {f.name for f in self.module.functions if not f.is_declaration}
        return sorted(name for name in names - defined if name.startswith(("_ZN", "cfunc._ZN")))

    def _provide(self, symbol: str) -> Iterator[CodeLibrary]:
        context = private.shadow().context
        library = context.libraries.get(symbol.removeprefix("cfunc."))
        if library is not None:
            yield context.cfunc_library(library) if symbol.startswith("cfunc.") else library

    def _link_unresolved(self) -> None:
        """Recursive calls go through pointers that Numba's JIT fills in; here they are constants."""
        symbols = [symbol for g in self.module.global_variables if (symbol := _unresolved_target(g))]
        if symbols:
            lines = [f'declare void @"{s}"()\n@"{UNRESOLVED_PREFIX}{s}" = constant ptr @"{s}"' for s in symbols]
            self.module.link_in(llvm.parse_assembly("\n".join(lines)))
            for variable in self.module.global_variables:
                if _unresolved_target(variable):
                    variable.linkage = "internal"

    def environments(self) -> tuple[Any, ...]:
        """The environments of all functions."""
        names = [g.name for g in self.module.global_variables if g.name.startswith(ENVIRONMENT_PREFIX)]
        return tuple(e for e in map(private.find_environment, names) if e is not None)


def _unresolved_target(variable: llvm.ValueRef) -> str | None:
    """The symbol a recursive call is meant for, if this global is Numba's placeholder for one."""
    name: str = variable.name
    return name.removeprefix(UNRESOLVED_PREFIX) if name.startswith(UNRESOLVED_PREFIX) else None
