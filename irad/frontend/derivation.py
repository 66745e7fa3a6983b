"""From a Numba function, argument types and a `Task` to compiled derivative code.

Input   a dispatcher, the Numba types of a call, a task.
Output  `Derivation`: the derivative's symbols and library, and what the lowering must know to call it.
Method  load the program, check that the task makes sense for its types, derive, make it linkable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type

from irad.compiling import step, with_room_for_frames
from irad.debug import events
from irad.driver import Derivative, MemoryType, Observer, ParameterKind, Request, derive, locate, prepare_program
from irad.errors import ActivityError, IradError, UnsupportedProgram
from irad.frontend.calls.signature import check_arguments, check_representable, check_return
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.custom import catalogue, rule_plugins, ruled_calls
from irad.frontend.custom.program_rules import complete, memory_of, registry_of, rules_of
from irad.frontend.custom.workspace_pools import Pool
from irad.frontend.linkable import Linkable
from irad.frontend.numba.convention import NUMBA
from irad.frontend.numba.cpu import NumbaProgram, load_program
from irad.frontend.numba.library import CPU
from irad.frontend.numba.messages import location_of
from irad.frontend.numba.private import compiler_lock
from irad.frontend.pointers import install
from irad.frontend.values import abi, layouts, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind
from irad.ir.module import Module
from irad.passes.analysis.speculation import is_pure, writes_elsewhere, written_parameters
from irad.passes.derivative import generate
from irad.passes.generated import Generated
from irad.records import dataclass
from irad.ruleset.registry import Registry


@dataclass(frozen=True)
class Compiled:
    """A derivative ready to be linked.

    Attributes:
        program: the primal.
        derivative: the engine's result.
        library: the library that Numba links.
        written: LLVM parameters of the primal whose memory it may write.
        writes_elsewhere: whether it may write to memory that is neither its own nor that of its parameters.
        is_pure: as `irad.passes.analysis.speculation` has it.
    """

    program: NumbaProgram
    derivative: Derivative
    library: Linkable
    written: frozenset[int]
    writes_elsewhere: bool
    is_pure: bool

    @property
    def clear(self) -> str | None:
        """The symbol of the function that clears memory with all threads, where there are parallel loops."""
        return None if self.derivative.clear is None else self.library.symbols[self.derivative.clear]


@dataclass(frozen=True)
class Derivation:
    """Everything the lowering of one derivative call needs.

    Attributes:
        task: description of the call.
        argument_types: types of the caller's arguments, one per parameter of the function.
        parameter_types: types the primal was compiled for; they differ where it has explicit signatures.
        caller_arguments: the caller's arguments.
        arguments: the arguments as the primal takes them.
        return_type: Numba type of the primal's value; where that may be None and needs a cotangent, of one that is not.
        compiled: the code.
        function: the Python function.
    """

    task: Task
    argument_types: tuple[Type, ...]
    parameter_types: tuple[Type, ...]
    caller_arguments: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    return_type: Type
    compiled: Compiled
    function: Callable[..., Any]

    @property
    def differentiated_type(self) -> Type:
        """Numba type of what is differentiated of the primal's value."""
        if not self.task.has_aux:
            return self.return_type
        assert isinstance(self.return_type, types.BaseTuple)
        return self.return_type.types[0]

    @property
    def may_lack_value(self) -> bool:
        """True if the primal may return None instead of the value that is differentiated."""
        return bool(self.return_type != self.compiled.program.signature.return_type)

    def active_numbers(self) -> list[tuple[Argument, Content]]:
        """The numbers in all differentiated arguments, in the order of the LLVM parameters."""
        return [(argument, leaf) for argument, leaf in self._active_leaves() if leaf.kind.has_cotangent]

    def active_memory(self) -> list[tuple[Argument, Content]]:
        """The arrays and records in all differentiated arguments, in the order of the LLVM parameters."""
        return [(argument, leaf) for argument, leaf in self._active_leaves() if leaf.kind.has_memory]

    def workspace(self) -> list[tuple[Argument, Content]]:
        """The arrays and records in arguments without a role that active values pass through."""
        shadows = self.compiled.derivative.shadows
        return [(a, leaf) for a, leaf in self._constant_leaves() if self._is_lent(a) and leaf.data_index in shadows]

    def _is_lent(self, argument: Argument) -> bool:
        return self.task.lends_to(argument.position)

    @property
    def writes_nothing(self) -> bool:
        """True if the function writes to no memory of the caller's."""
        return not any(leaf.data_index in self.compiled.written for a in self.arguments for leaf in a.leaves)

    @property
    def may_run_again(self) -> bool:
        """True if another run does the same, and changes nothing but what the derivative is to be written to."""
        results = self.task.roles if self.task.kept else ()
        places = {position for position, _ in results} - self.task.kept
        others = (a for a in self.arguments if a.position not in places)
        return self.repeats and not any(leaf.data_index in self.compiled.written for a in others for leaf in a.leaves)

    @property
    def may_have_zeros_that_are_not_strong(self) -> bool:
        """True if a NaN that arithmetic makes reaches the result, and the call can be made again with strong ones."""
        program = self.compiled.program
        has_rules = bool(program.ruled) or bool(catalogue.symbols())
        return self.may_run_again and not has_rules and self.compiled.is_pure

    @property
    def repeats(self) -> bool:
        """True if each run with the same content of the arrays does the same."""
        leaves = [leaf for argument in self.arguments for leaf in argument.leaves]
        draws = any(map(is_generator, leaves))
        changes = any(leaf.data_index in self.compiled.written and not leaf.is_array for leaf in leaves)
        return not (draws or changes or self.compiled.writes_elsewhere)

    def constant_leaves(self) -> list[tuple[Argument, Content]]:
        """Leaves of arguments that have no role and are not workspace."""
        workspace = self.workspace()
        return [found for found in self._constant_leaves() if found not in workspace]

    def _constant_leaves(self) -> Iterator[tuple[Argument, Content]]:
        for argument in self.arguments:
            if self.task.role_of(argument.position) is Role.CONST:
                for leaf in argument.leaves:
                    yield argument, leaf

    def active_lists(self) -> list[tuple[Argument, Content]]:
        """The lists of numbers in all differentiated arguments, in the order of the LLVM parameters.

        None where there are objects: these may hold such a list, so it is treated as one of them. None either where
        memory for a derivative is given, which is that of an object.
        """
        return (
            [] if self.active_objects() else [found for found in self._references() if found[1].kind is LeafKind.LIST]
        )

    def active_objects(self) -> list[tuple[Argument, Content]]:
        """The objects in all differentiated arguments, in the order of the LLVM parameters."""
        found = self._references()
        return found if any(leaf.kind is LeafKind.OBJECT or self._is_given(a) for a, leaf in found) else []

    def _is_given(self, argument: Argument) -> bool:
        """True if the caller gives memory for the derivative with respect to an argument."""
        return self.task.role_of(argument.position).takes_derivative

    def _references(self) -> list[tuple[Argument, Content]]:
        return [found for found in self._active_leaves() if found[1].kind.is_reference]

    def _active_leaves(self) -> Iterator[tuple[Argument, Content]]:
        for argument in self.arguments:
            if self.task.role_of(argument.position) is not Role.CONST:
                for leaf in argument.leaves:
                    yield argument, leaf


_Result = TypeVar("_Result")
_MEMO = "_irad_compiled_derivatives"  # on the dispatcher: the values refer to it


@with_room_for_frames
def derivation_of(
    dispatcher: Dispatcher,
    argument_types: tuple[Type, ...],
    task: Task,
    *,
    arguments_may_change: bool = False,
    unmodified: frozenset[int] = frozenset(),
) -> Derivation:
    """Compiles the derivative of a function for argument types, or finds it compiled.

    Args:
        dispatcher: the primal.
        argument_types: Numba types, one per parameter, star arguments as one tuple.
        task: description of the derivative.
        arguments_may_change: the caller may overwrite the arguments between the two sweeps.
        unmodified: positions of arguments whose memory the caller nevertheless leaves as it is.

    Raises:
        SignatureError: the task does not fit the types.
        IradError: the program cannot be compiled or differentiated.
    """

    def derive_it(task: Task) -> Derivation:
        wanted = _want(dispatcher, argument_types, task, arguments_may_change, unmodified)
        known = wanted.dispatcher.__dict__.setdefault(_MEMO, {})
        key = wanted.parameter_types, wanted.request, wanted.program.text, catalogue.epoch()
        compiled = known.get(key)
        if compiled is None:
            compiled = known[key] = _compile(wanted.program, wanted.request, task.options.verify)
        return Derivation(
            task,
            argument_types,
            wanted.parameter_types,
            wanted.caller_arguments,
            wanted.arguments,
            wanted.return_type,
            compiled,
            inspect.unwrap(dispatcher.py_func),
        )

    with compiler_lock():
        return _lending(dispatcher, argument_types, task, derive_it)


def _lending(
    dispatcher: Dispatcher, argument_types: tuple[Type, ...], task: Task, attempt: Callable[[Task], _Result]
) -> _Result:
    """Does something for a task. Where active values are stored in constant lists or objects, these are workspace."""
    try:
        return attempt(task)
    except IradError as error:
        several = error.errors if isinstance(error, UnsupportedProgram) else (error,)
        _name_function(several, dispatcher)
        if task.is_forward:
            word_for_forward_mode(several)
        if not ((task.lends_shadows or task.lent) and any(isinstance(each, ActivityError) for each in several)):
            raise
        workspace = tuple(
            (argument.position, Role.WORKSPACE)
            for argument in abi.arguments_of(dispatcher.py_func, argument_types)
            if task.lends_to(argument.position) and any(leaf.kind.is_reference for leaf in argument.leaves)
        )
        if workspace:
            with suppress(IradError):  # the first error is about what the user wrote
                return attempt(replace(task, roles=(*task.roles, *workspace)))
        for each in several:
            if task.lends_shadows and isinstance(each, ActivityError) and each.memory is not None:
                each.remedy = "make it inside the function"
        raise


def _name_function(errors: Sequence[IradError], dispatcher: Dispatcher) -> None:
    """Places what is refused in the code of a derivative itself at the function that it is a derivative of."""
    while hasattr(dispatcher, "primal"):
        dispatcher = dispatcher.primal
    for error in errors:
        if error.location is not None and NUMBA.library.holds(error.location.file):
            error.location, error.detail, error.focus = location_of(dispatcher.py_func), None, None


def observe_derivation(
    dispatcher: Dispatcher,
    argument_types: tuple[Type, ...],
    task: Task,
    observe: Observer,
    *,
    arguments_may_change: bool = False,
) -> None:
    """Derives like `derivation_of`, but from scratch and for an observer only: nothing is compiled or remembered.

    Raises:
        SignatureError: the task does not fit the types.
        IradError: the program cannot be compiled or differentiated.
    """

    def derive_it(task: Task) -> None:
        wanted = _want(dispatcher, argument_types, task, arguments_may_change)
        registry = registry_of(wanted.program.ruled, _registry(), wanted.request.mode)
        derive(wanted.program.text, wanted.request, registry, observe=observe, canonical_loops=CPU.canonical_loops)

    with compiler_lock():
        _lending(dispatcher, argument_types, task, derive_it)


def generated(
    dispatcher: Dispatcher, argument_types: tuple[Type, ...], task: Task, last: str
) -> tuple[Wanted, Module, Generated]:
    """Generates like `derivation_of`, up to a pass.

    Raises:
        SignatureError: the task does not fit the types.
        IradError: the program cannot be compiled or differentiated.
    """
    with compiler_lock():
        wanted = _want(dispatcher, argument_types, task, arguments_may_change=False)
        registry = registry_of(wanted.program.ruled, _registry(), wanted.request.mode)
        module = prepare_program(wanted.program.text, CPU.canonical_loops)
        try:
            made = generate(module, wanted.request, registry, last=last)
        except IradError as error:
            locate(error, module, NUMBA)
            raise
    return wanted, module, made


@dataclass(frozen=True)
class Wanted:
    """A derivation that is possible by its types."""

    dispatcher: Dispatcher
    program: NumbaProgram
    request: Request
    parameter_types: tuple[Type, ...]
    caller_arguments: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    return_type: Type


def _want(
    dispatcher: Dispatcher,
    argument_types: tuple[Type, ...],
    task: Task,
    arguments_may_change: bool,
    unmodified: frozenset[int] = frozenset(),
) -> Wanted:
    rule_plugins.load()
    dispatcher = ruled_calls.caller_of(dispatcher)
    check_representable(dispatcher.py_func, argument_types)
    caller_arguments = abi.arguments_of(dispatcher.py_func, argument_types)
    check_arguments(dispatcher, caller_arguments, task, may_be_none=True)
    options = task.options
    program = load_program(
        dispatcher,
        argument_types,
        peels=not options.debug,
        checks=options.boundscheck,
        plain=task.is_primal,
        promotes=options.promotes,
    )
    return_type = _differentiated(program.signature.return_type, task)
    check_return(dispatcher, return_type, task)
    parameter_types = tuple(program.signature.args)
    arguments = abi.arguments_of(dispatcher.py_func, parameter_types)
    check_arguments(dispatcher, arguments, task)
    stays = frozenset(
        leaf.data_index for a in arguments if a.position in unmodified for leaf in a.leaves if leaf.has_memory
    )
    request = replace(_request(program, arguments, task), arguments_may_change=arguments_may_change, stays=stays)
    return Wanted(dispatcher, program, request, parameter_types, caller_arguments, arguments, return_type)


def pools_in(dispatcher: Dispatcher) -> set[Pool]:
    """The workspace of the rules that the derivatives of a function call."""
    with compiler_lock():
        tables = [each.__dict__.get(_MEMO, {}) for each in (dispatcher, ruled_calls.caller_of(dispatcher))]
        libraries = [each for table in tables for compiled in table.values() for each in compiled.library.libraries]
        slots = [getattr(library, "slots", None) for library in libraries]
    return {each.pool for each in slots if each is not None}


def _differentiated(return_type: Type, task: Task) -> Type:
    """The type of a returned value that has a cotangent: where the function may return None, the other type."""
    if not isinstance(return_type, types.Optional):
        return return_type
    # `Sweeps` copies no optional record; a pair of value and auxiliary data is there or not as a whole
    is_there = task.is_forward and (task.has_aux or isinstance(return_type.type, types.Record))
    return return_type.type if is_there or task.seed is not Seed.NONE else return_type


def _returns_derivative(program: NumbaProgram, task: Task) -> bool:
    """True if the memory that the value is returned through has a shadow."""
    if task.is_forward:
        return any(leaf.kind is not LeafKind.INERT for leaf in tree.returned_leaves(program.signature.return_type))
    return task.seed is not Seed.NONE


def _request(program: NumbaProgram, arguments: tuple[Argument, ...], task: Task) -> Request:
    returns = ParameterKind.SHADOW if _returns_derivative(program, task) else ParameterKind.CONST
    kinds = [returns, ParameterKind.CONST]
    memory: list[MemoryType | None] = [
        abi.memory_of_return(program.signature.return_type),
        abi.BOOKKEEPING,
    ]
    for argument in arguments:
        active = task.role_of(argument.position) is not Role.CONST
        for leaf in argument.leaves:
            for offset in range(layouts.width_of(leaf.type)):
                kinds.append(kind_of_parameter(leaf, offset) if active else ParameterKind.CONST)
                memory.append(abi.memory_of_parameter(leaf, offset, active=active))
    return Request(
        entry=program.entry,
        kinds=tuple(kinds),
        host=NUMBA,
        mode=task.mode,
        plan=task.options.plan,
        strict=task.options.strict,
        memory=tuple(memory),
        kernels=program.kernels,
        workspace=frozenset(
            leaf.data_index
            for argument in arguments
            if task.lends_to(argument.position)
            for leaf in argument.leaves
            if leaf.has_memory
        ),
        unneeded=frozenset(
            leaf.data_index
            for argument in arguments
            if argument.position in task.unneeded
            for leaf in argument.leaves
            if leaf.has_memory
        )
        | _unneeded_value(program, task),
        restores=catalogue.any_restores(),
        ruled=memory_of(program.ruled),
        signatures=program.signatures,
        has_types=True,
        watches=task.options.debug,
        meters=task.options.tape_limit is not None and not task.is_forward,  # where there is no tape, none is too large
        checks_bounds=task.options.boundscheck,
        zero_wins=task.options.zero_times_infinity == "zero",
        no_zero_wins=task.options.zero_times_infinity == "nan",
        shows_zeros=task.shows_zeros,
        is_linear=task.is_linear,
        vector_math=task.options.has_vector_math,
        is_primal=task.is_primal,
        speculates=not _has_rules(program) and is_checkable(arguments, task),
    )


def _unneeded_value(program: NumbaProgram, task: Task) -> frozenset[int]:
    """The parameter for the value if the value is not needed, so that a rule need not compute it.

    Without such a rule nothing depends on it, and a gradient is the same program with the value or without.
    """
    value_type = program.signature.return_type
    is_number = value_type in layouts.FLOATS or value_type in layouts.COMPLEX
    is_dropped = task.returns is Returns.GRADIENT and is_number and not task.options.debug
    return frozenset({abi.RETURN_INDEX}) if is_dropped and _has_rules(program) else frozenset()


def _has_rules(program: NumbaProgram) -> bool:
    """True if reverse mode calls what users wrote, or may."""
    return any(each.rule.is_for_reverse for each in program.ruled) or bool(catalogue.symbols())


def kind_of_parameter(leaf: Content, offset: int) -> ParameterKind:
    """Kind of the LLVM parameter at an offset from the first one of a leaf that has a derivative."""
    if leaf.kind.has_cotangent and offset < leaf.float_count:
        return ParameterKind.ACTIVE
    if (leaf.kind.has_memory or leaf.kind.is_reference) and leaf.index + offset == leaf.data_index:
        return ParameterKind.SHADOW
    return ParameterKind.CONST


def _compile(program: NumbaProgram, request: Request, verify: bool) -> Compiled:
    written: set[int] = set()
    elsewhere: list[bool] = []
    pure: list[bool] = []

    def observe(name: str, record: Any) -> None:
        if name == "analysis.refusals" and record.variant.is_entry:
            written.update(written_parameters(record))
            elsewhere.append(writes_elsewhere(record))
            pure.append(is_pure(record))

    registry = registry_of(program.ruled, _registry(), request.mode)
    with step(f"differentiating {program.source.function}") as details:
        derivative = derive(
            program.text, request, registry, check=verify, observe=observe, canonical_loops=CPU.canonical_loops
        )
        details.append(f"{_lines(derivative.text)} of LLVM IR made of {_lines(program.text)}")
    install(derivative.pointers, request, _registry())
    events.install(derivative.table, derivative.places, rules_of(program.ruled, request.mode))
    exports = (*derivative.symbols.values(), *([derivative.clear] if derivative.clear else []))
    text, libraries = complete(derivative, program.ruled, request)
    library = Linkable(
        *(text, exports, program.environments, program.alive, libraries, _functions_of(program)),
        program.signatures,
        program.source.function if derivative.is_recursive and not request.mode.is_forward else None,
        request.vector_math,
        program.symbols,
        program.ruled,
    )
    return Compiled(program, derivative, library, frozenset(written), any(elsewhere), all(pure))


def _lines(text: str) -> str:
    return f"{text.count(chr(10))} lines"


def _functions_of(program: NumbaProgram) -> frozenset[object]:
    """The Python functions of a program, and those of which it calls derivatives."""
    functions = (function for function, _ in program.python_functions.values())
    called = (each.functions for each in program.alive if isinstance(each, Linkable))
    return frozenset(inspect.unwrap(function) for function in functions).union(*called)


def _registry() -> Registry:
    """The built-in rules. Their tables are made for the first derivative."""
    from irad.rules import builtin  # takes long, and is not needed to make a derivative that is not called

    return builtin.registry()


# --- remedies in the words of forward mode ----------------------------------------------------------------------------
# Analyses, which both modes share, word them for reverse mode.

_WORDS: Final = (
    ("irad.grad or irad.vjp, which create", "irad.jvp or irad.pushforward, which create"),
    ("pass it as irad.Active", "pass it as irad.Duplicated, with its tangent"),
    ("irad.rules.easy_rule, or irad.rules.augmented_primal and reverse", "irad.rules.easy_rule or irad.rules.forward"),
    (
        "whose reverse sets the shadow of what it overwrites to zero (irad.rules.augmented_primal and reverse)",
        "which sets the tangent of what it overwrites (irad.rules.forward)",
    ),
)


def word_for_forward_mode(errors: Iterable[IradError]) -> None:
    """Has remedies name what forward mode has."""
    for error in errors:
        for reverse, forward in _WORDS:
            error.remedy = error.remedy.replace(reverse, forward)


# --- results that can be scanned for NaN: numbers and contiguous arrays -----------------------------------------------


def is_checkable(arguments: Sequence[Argument], task: Task) -> bool:
    """True if all that a derivative goes to can be looked through, where a caller is going to."""
    if not task.speculates or any(is_generator(leaf) for argument in arguments for leaf in argument.leaves):
        return False
    active = (leaf for a in arguments if task.role_of(a.position) is not Role.CONST for leaf in a.leaves)
    return all(map(_is_checkable_leaf, active))


def is_generator(leaf: Content) -> bool:
    """True if a part of an argument draws random numbers, others in each run."""
    return isinstance(leaf.type, types.NumPyRandomGeneratorType)


def _is_checkable_leaf(leaf: Content) -> bool:
    if leaf.kind is LeafKind.ARRAY:
        return leaf.type.layout in ("C", "F") and leaf.element in (*layouts.FLOATS, *layouts.COMPLEX)
    return leaf.kind in (LeafKind.NUMBER, LeafKind.INERT)
