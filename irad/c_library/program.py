"""One LLVM module with everything in a library: functions, their callees, and replacements for Python.

Input   functions that Numba compiles, with the prototypes by which C calls them.
Output  a module for a processor that needs the C library, and BLAS and LAPACK where it calls them, and nothing else.
Method  The programs are linked as Numba lowers them, so that nothing was decided for the machine that they are compiled
        on. What describes an exception becomes a status and a text. LLVM removes pairs of reference counts, while these
        are calls; then it gets the run time, and optimises all together for the processor.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final

import llvmlite.binding as llvm
import numba

from irad.backend.link import declared_symbols
from irad.backend.runtime.support import counted_text, runtime_text, support
from irad.backend.toolchain import vectors_of_derivatives
from irad.backend.vector_math import LIBRARY, with_vector_variants
from irad.c_library import lapack
from irad.c_library.algorithms import ALGORITHMS
from irad.c_library.interface import Prototype
from irad.driver import locate
from irad.errors import BackendError, IradError, SourceLocation
from irad.frontend.calls.exceptions import IN_PYTHON, Rethrown
from irad.frontend.disk.dumped import addresses_in
from irad.frontend.numba.convention import NUMBA
from irad.frontend.numba.cpu import program_to_run
from irad.frontend.numba.library import parse
from irad.ir.instructions import CallSite
from irad.ir.text.parser import parse_module
from irad.ir.values import ConstantString
from irad.ir.worklist import reachable
from irad.raw.link import pass_builder
from irad.records import dataclass
from irad.ruleset.python_names import python_name

_RUNTIME: Final = Path(__file__).with_name("runtime.ll")
OK, UNKNOWN, REFUSED = 0, 1, 2
_STANDARD: Final = (
    *("MemoryError", "ValueError", "IndexError", "ZeroDivisionError", "LinAlgError", "AssertionError", "RuntimeError"),
    *("TypeError", "KeyError", "OverflowError", "ArithmeticError", "FloatingPointError", "NotImplementedError"),
    *("StopIteration", "LookupError", "Exception", "SystemError", "AttributeError", "NameError", "OSError"),
)
"""Exceptions whose numbers are the same in all libraries: 10, 11 and so on."""
_FIRST, _FIRST_OF_USER = 10, 100
_PICKLED: Final = ".const.pickledata."
_HASH: Final = ".sha1"
_UNWRAP: Final = "__excinfo_unwrap_args"
_MISFIT: Final = "irad.keep_misfit"


@dataclass(frozen=True, slots=True)
class Library:
    """Code of a library, and how it is called.

    Attributes:
        module: of llvmlite, for the processor.
        machine: the processor.
        prototypes: prototypes of the functions.
        statuses: by the name of the class of an exception that can occur, its number.
        needs_lapack: whether it calls BLAS or LAPACK.
    """

    module: Any
    machine: Any
    prototypes: tuple[Prototype, ...]
    statuses: dict[str, int]
    needs_lapack: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A function to be exported.

    Attributes:
        name: by which C calls it.
        dispatcher: the function of Numba that C calls.
        types: types of its parameters.
        prototype: made when it is compiled, of the type of its result.
        source: where the user's function is defined.
    """

    name: str
    dispatcher: Any
    types: tuple[Any, ...]
    prototype: Callable[[], Prototype]
    source: SourceLocation | None


def library_of(entries: Sequence[Entry], prefix: str, machine: Any, features: Collection[str]) -> Library:
    """The module of a library.

    Args:
        entries: the functions.
        prefix: prefix of the functions that belong to no single one.
        machine: llvmlite's, of the processor.
        features: processor features that vector variants of functions need.

    Raises:
        BackendError: Numba cannot compile a function, or it needs what only a process with Python has.
    """
    described = _Exceptions()
    module = llvm.parse_assembly("")
    prototypes, alive = [], []
    for entry in entries:
        symbol, text, compiled = _program(entry)
        alive.append(compiled)
        prototypes.append(entry.prototype())
        module.link_in(_program_module(described, text))
        module.link_in(parse(_function_of_c(prototypes[-1], symbol, len(entry.types))))
    visible = [each.name for each in prototypes]
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    _link_support(module)
    module = parse(with_vector_variants(str(module), features))
    _optimise(module, visible, machine, counts=True)
    _link_algorithms(module)
    _link_runtime(module, prefix)
    visible += [f"{prefix}_message", f"{prefix}_free"]
    _optimise(module, visible, machine, counts=False)
    _check_symbols(module, entries)
    _check_addresses(module, entries)
    statuses, needs_lapack = described.statuses(module), any(map(_is_lapack, declared_symbols(module)))
    _strip(module, machine)
    return Library(module, machine, tuple(prototypes), statuses, needs_lapack)


def _strip(module: Any, machine: Any) -> None:
    """Drops names that nobody links, and debug information, of which LLVM cannot write that of many linked modules."""
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_strip_symbols_pass()
    pipeline.run(module, pass_builder(machine, 0))


def _program(entry: Entry) -> tuple[str, str, Any]:
    """Symbol and text of a function of Numba, and the objects that must live as long as these are used."""
    try:
        text, compiled = program_to_run(entry.dispatcher, entry.types)
    except IradError as error:
        error.callers = tuple(each for each in error.callers if not each.file.startswith("<irad."))
        if entry.source is not None and (error.location is None or error.location.file.startswith("<irad.")):
            error.location, error.detail, error.focus = entry.source, None, None
        raise
    return compiled.fndesc.mangled_name, text, compiled


def _program_module(described: _Exceptions, text: str) -> Any:
    """The module of a program, without handling of exceptions that needs Python."""
    module = parse(described.rewritten(text))
    _leave_python_out(module)
    return module


def _function_of_c(prototype: Prototype, symbol: str, count: int) -> str:
    """The function that C calls: its arguments are those of Numba's, after the places of a result and an exception."""
    types = prototype.llvm_parameters()
    parameters = ", ".join(f"{type_} %x{i}" for i, type_ in enumerate(types))
    # Without a result C passes no place for it.
    given = parameters if len(types) == count else ", ".join(filter(None, (parameters, "ptr null")))
    declared = ", ".join(("ptr", "ptr", *types, *["ptr"] * (count - len(types))))
    return f"""
declare i32 @"{symbol}"({declared})
declare i32 @irad.c.status(i32, ptr)
define i32 @{prototype.name}({parameters}) {{
  %returned = alloca ptr
  %raised = alloca ptr
  store ptr null, ptr %raised
  %status = call i32 @"{symbol}"(ptr %returned, ptr %raised, {given})
  %code = call i32 @irad.c.status(i32 %status, ptr %raised)
  ret i32 %code
}}
"""


# ------------------------------------------------------------------------------------------------ exceptions


class _Exceptions:
    """Exceptions that functions can raise: Numba pickles class and arguments, C gets a number and a text.

    These take the place of the pickled bytes, to which LLVM has made direct references in code that irad has optimised.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {name: _FIRST + i for i, name in enumerate(_STANDARD)}
        self._numbers[Rethrown.__name__] = REFUSED

    def rewritten(self, text: str) -> str:
        """The text of a program with these descriptions."""
        for variable, pickled in _pickled(llvm.parse_assembly(text)):
            raised = pickle.loads(pickled)
            if not (isinstance(raised, tuple) and len(raised) == 3):  # another object of Python, which is refused later
                continue
            name, message = _described(*raised)
            number = self._numbers.setdefault(name, _FIRST_OF_USER + len(self._numbers))
            content = number.to_bytes(4, "little") + message.encode() + b"\0"
            head = str(variable).partition("=")[0]
            spelt = "".join(f"\\{byte:02X}" for byte in content)
            text = text.replace(str(variable), f'{head}= internal constant [{len(content)} x i8] c"{spelt}"')
        return text

    def statuses(self, module: Any) -> dict[str, int]:
        """By name the number of each class that code in a module can raise."""
        found = {int.from_bytes(content[:4], "little") for _, content in _pickled(module)}
        return {name: number for name, number in self._numbers.items() if number in found}


def _pickled(module: Any) -> Iterator[tuple[Any, bytes]]:
    """The constants of a module in which Numba keeps its exceptions."""
    for variable in module.global_variables:
        if (
            variable.name.startswith(_PICKLED)
            and not variable.name.endswith(_HASH)
            and _HASH + "." not in variable.name
        ):
            (constant,) = parse_module(str(variable)).globals.values()
            assert isinstance(constant.initializer, ConstantString)
            yield variable, constant.initializer.data


def _leave_python_out(module: Any) -> None:
    """Replaces the functions that make objects of Python of an exception, or keep one of Python's."""
    for name in [each.name for each in module.functions if not each.is_declaration]:
        if name.startswith(_UNWRAP):
            result, body = "ptr", "ret ptr null"  # values that are known when it runs are not told
        elif name.startswith(IN_PYTHON):
            result, body = "void", "call void @irad.c.note(ptr %1)\n  ret void" if _MISFIT in name else "ret void"
        else:
            continue
        function = module.get_function(name)
        function.linkage = "weak_odr"  # which another definition replaces
        parameters = ", ".join(f"{each.type} %{index}" for index, each in enumerate(function.arguments))
        module.link_in(
            parse(f'declare void @irad.c.note(ptr)\ndefine {result} @"{name}"({parameters}) noinline {{\n  {body}\n}}')
        )
        module.get_function(name).linkage = "internal"


def _described(class_: Any, arguments: Any, place: Any) -> tuple[str, str]:
    """Name of the class, and text, of an exception."""
    if class_ is None:
        class_ = Exception
    given = ["…" if type(each).__module__.startswith("llvmlite") else str(each) for each in arguments or ()]
    message = f"{class_.__name__}: {', '.join(given)}" if given else class_.__name__
    if place is not None and not str(place[1]).startswith("<irad") and not NUMBA.library.holds(place[1]):
        message += f" ({Path(place[1]).name}:{place[2]} in {place[0]})"
    return class_.__name__, message


# ------------------------------------------------------------------------------------------------ linking


def _link_algorithms(module: Any) -> None:
    """Links the functions of Numba's run time that are written in Python."""
    for symbol in [name for name in declared_symbols(module) if name in ALGORITHMS]:
        function, types, result = ALGORITHMS[symbol]
        text, compiled = program_to_run(numba.njit(function), types)
        module.link_in(_program_module(_Exceptions(), text))
        declaration = module.get_function(symbol)
        kinds = [str(each.type) for each in declaration.arguments]
        parameters = ", ".join(f"{type_} %x{i}" for i, type_ in enumerate(kinds))
        returned = (
            "ret void"
            if result == "void"
            else f"%wide = load i64, ptr %place\n  %value = trunc i64 %wide to {result}\n  ret {result} %value"
        )
        inner = compiled.fndesc.mangled_name
        module.link_in(
            parse(f"""
declare i32 @"{inner}"({", ".join(("ptr", "ptr", *kinds))})
define {result} @{symbol}({parameters}) {{
  %place = alloca i64
  %raised = alloca ptr
  store i64 0, ptr %place
  %status = call i32 @"{inner}"(ptr %place, ptr %raised, {parameters})
  {returned}
}}
""")
        )


def _link_support(module: Any) -> None:
    """Links the run-time support of derivatives, if there are some."""
    declared = {each.name for each in module.functions if each.is_declaration}
    if declared & support().reached(declared).keys():
        module.link_in(parse(runtime_text()))
        module.link_in(parse(counted_text()))


def _link_runtime(module: Any, prefix: str) -> None:
    """Links the replacements for Python's process, and the functions that C calls."""
    if any(each.name in lapack.SYMBOLS for each in module.functions):
        module.link_in(parse(lapack.text()))
    module.link_in(parse(runtime_of_c(prefix)))


def runtime_of_c(prefix: str) -> str:
    """Text of the replacement for Numba's run time, and of the functions that are common to all."""
    numbers = {"UNKNOWN": str(UNKNOWN), "REFUSED": str(REFUSED)}
    own = Template(_RUNTIME.read_text(encoding="utf-8")).substitute(numbers)
    return f"""{own}
define ptr @{prefix}_message() {{
  %text = load ptr, ptr @irad.c.last_text
  ret ptr %text
}}

define void @{prefix}_free(ptr %data) {{
  call void @free(ptr %data)
  ret void
}}
"""


def _optimise(module: Any, visible: Collection[str], machine: Any, *, counts: bool) -> None:
    """Optimises a module, of which only some functions are visible.

    Args:
        counts: whether reference counts are still calls, pairs of which are removed.
    """
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in visible and not value.name.startswith("llvm."):
            value.linkage = "internal"
    builder = pass_builder(machine, 3)
    pipeline: Any = builder.getModulePassManager()
    if counts:
        pipeline.add_refprune_pass()
    pipeline.add_global_dead_code_eliminate_pass()
    pipeline.add_strip_dead_prototype_pass()
    with vectors_of_derivatives():
        pipeline.run(module, builder)
    module.verify()


# ------------------------------------------------------------------------------------------------ checks


def _is_lapack(symbol: str) -> bool:
    return symbol.endswith("_") and symbol in lapack.system_symbols()


_REMEDIES: Final[Sequence[tuple[tuple[str, ...], str, str]]] = (
    (
        (
            "numba_parallel_for",
            "numba_gufunc",
            "get_num_threads",
            "do_scheduling",
            "allocate_sched",
            "irad.raise_in_thread",
        ),
        "compile it without parallel=True; threads of the C program may call the function at the same time",
        "parallel loops need Numba's threads",
    ),
    (
        ("numba_dict_", "numba_list_", "numba_set_"),
        "pass and use arrays and tuples",
        "typed lists and dictionaries are implemented in Numba's own library",
    ),
    (
        ("Py", "_Py", "numba_gil", "numba_unpickle", "numba_unicode", "numba_get_pyobject"),
        "leave out print, object mode and strings created at run time",
        "an exported function runs without Python",
    ),
)


def _check_symbols(module: Any, entries: Sequence[Entry]) -> None:
    """Refuses a module that calls functions outside the libraries of C, BLAS and LAPACK.

    Raises:
        BackendError: names the symbol, and the line that calls it.
    """
    missing = [name for name in declared_symbols(module) if not (is_in_c(name) or _is_lapack(name))]
    if not missing:
        return
    known = [
        (group, missing_as, symbol)
        for symbol in missing
        for group, (prefixes, _, _) in enumerate(_REMEDIES)
        for missing_as, prefix in enumerate(prefixes)
        if symbol.startswith(prefix)
    ]
    remedy, reason = "leave out what calls it", "no library that C programs have defines this function"
    symbol = missing[0]
    if known:
        group, _, symbol = min(known)
        _, remedy, reason = _REMEDIES[group]
    parsed = parse_module(str(module))
    calls = {
        name: [each for each in function.instructions() if isinstance(each, CallSite)]
        for name, function in parsed.functions.items()
    }
    reached = {
        entry.name: list(reachable([entry.name], lambda name: [_callee(each) for each in calls.get(name, ())]))
        for entry in entries
    }
    entry = next((each for each in entries if symbol in reached[each.name]), entries[-1])
    called = python_name(symbol)
    called = called if symbol in called else f"{called} ({symbol})"
    error = BackendError(f"{entry.name} cannot be exported: it calls {called}", remedy, reason)
    error.instruction = next(
        (each for name in reached[entry.name] for each in calls.get(name, ()) if _callee(each) == symbol), None
    )
    locate(error, parsed, NUMBA)
    error.location = error.location or entry.source
    raise error


def _callee(call: CallSite) -> str:
    return str(getattr(call.callee, "name", ""))


def _check_addresses(module: Any, entries: Sequence[Entry]) -> None:
    """Refuses a module that holds an address of this process.

    Raises:
        BackendError: it does.
    """
    found = addresses_in(str(module))
    if found is not None:
        raise BackendError(
            f"{entries[0].name} cannot be exported: {found}",
            "pass what it refers to as an argument: a large array that is a global name, a function given by address",
            "the library runs in other processes, where that address is meaningless",
            entries[0].source,
        )


_OF_COMPILER: Final = frozenset({"__muldc3", "__mulsc3", "__divdc3", "__divsc3", "__powidf2", "__powisf2"})


@cache
def _libraries() -> tuple[Any, ...]:
    """The C library, its mathematical library, and its vector functions, if there are any."""
    found = []
    for name in (*filter(None, map(ctypes.util.find_library, ("c", "m"))), LIBRARY):
        with contextlib.suppress(OSError):
            found.append(ctypes.CDLL(name))
    return tuple(found)


def is_in_c(symbol: str) -> bool:
    """True if a library that comes with every C compiler defines a symbol."""
    return symbol in _OF_COMPILER or any(hasattr(library, symbol) for library in _libraries())
