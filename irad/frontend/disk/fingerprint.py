"""Fingerprints of compiled functions: code, that of all they may call, values, rules, versions, the processor.

Input   a dispatcher, before anything is compiled.
Output  `Fingerprint`: a digest that is the same in every process in which compilation has the same result, and the
        functions and values that it is made of.
Method  From a function to what its global names, closure cells and attributes of modules stand for, and on. More may
        be followed than Numba would call; what is of an unknown kind has no digest (`CannotStore`), so nothing that
        matters is left out.
Limit   Implementations of operators are not found from the code that uses them: `stored` looks for them in what was
        compiled. What `numba`, `numpy`, `scipy`, `numba_mpi` and irad define is known by their versions.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import marshal
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial, singledispatchmethod
from importlib.util import find_spec
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np
from numba.core import config, types
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type

from irad.backend import vector_math
from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.custom.pickled_rules import comes_with_library
from irad.frontend.disk import dependencies
from irad.frontend.disk.dependencies import BUILTIN, Read, names_in, reads_of
from irad.frontend.frozen.inherited_options import DEFAULT, Inheritance, comparable, inherited_options
from irad.frontend.frozen.values import is_of_library, token
from irad.frontend.numba import internals, mpi
from irad.frontend.numba.target import target_context
from irad.options import Options
from irad.records import dataclass

# What all compiled code depends on: versions, the sources of irad, the processor, settings.

_FORMAT: Final = 4  # part of every key: raise it when the content of stored files changes
_PACKAGES: Final = ("irad", "numba", "llvmlite", "numpy")
_OTHER_PACKAGES: Final = ("scipy", "numba_mpi")
_SETTINGS: Final = (
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "USING_SVML",
    "ENABLE_AVX",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
    "THREADING_LAYER",
    "DEBUG_NRT",
    "NRT_STATS",
)


def surroundings() -> tuple[str, ...]:
    """Texts that are equal where the same function is compiled to the same code."""
    settings = (f"{name}={getattr(config, name, None)}" for name in _SETTINGS)
    variables = (f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith("IRAD_"))
    mine = (each for each in variables if not each.startswith(("IRAD_CACHE=", "IRAD_CACHE_WAIT=", "IRAD_ERRORS=")))
    codegen: Any = target_context().codegen()
    vectors = f"vector_math={vector_math.is_loaded()}"
    return (*_versions(), *map(str, codegen.magic_tuple()), vectors, mpi.constants(), *settings, *mine)


def digest_of(words: Iterable[str]) -> str:
    """A digest of a list of texts."""
    return hashlib.sha256("\0".join(f"{len(word)}:{word}" for word in words).encode()).hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    packages = (f"{name} {sys.modules[name].__version__}" for name in _PACKAGES)
    others = (f"{name} {_stamp_of(name)}" for name in _OTHER_PACKAGES)
    return (str(_FORMAT), sys.version, *packages, *others, _stamp_of_irad())


def _stamp_of(package: str) -> str:
    """By the file that says its version: to import SciPy would take a quarter of a second, to ask its metadata 3 ms."""
    try:
        found = find_spec(package)
    except ValueError:  # a module that stands in for it, from no file
        found = None
    if found is None or found.origin is None:
        return "none"
    home = Path(found.origin)
    status = next(each for each in (home.with_name("version.py"), home) if each.exists()).stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _stamp_of_irad() -> str:
    """Names, sizes and times of irad's files: a changed pass or rule changes it, whatever the version says."""
    found = hashlib.sha256()
    folders = [str(Path(__file__).parents[2])]
    for folder in folders:  # grows
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith((".py", ".ll")):
                    status = entry.stat()
                    found.update(f"{entry.name} {status.st_size} {status.st_mtime_ns};".encode())
    return found.hexdigest()


_SIMPLE_TYPES: Final = (
    types.Number,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.Record,
    types.StringLiteral,
    types.Bytes,
    types.CharSeq,
    types.UnicodeCharSeq,
    types.NPDatetime,
    types.NPTimedelta,
    types.SliceType,
    types.NumPyRandomGeneratorType,
)


class CannotStore(Exception):
    """Compiled code that depends on what cannot be compared with a later process; the text says on what."""


@dataclass(frozen=True)
class Fingerprint:
    """Identity of a program.

    Attributes:
        digest: equal where compilation has the same result.
        functions: the Python functions that were followed.
        dispatchers: the same as Numba compiles them.
        reads: the names that they read.
        options: of functions, those that are passed on to what they call.
    """

    digest: str
    functions: frozenset[Any]
    dispatchers: tuple[Dispatcher, ...]
    reads: tuple[Read, ...]
    options: Inheritance


def fingerprint_of(dispatcher: Any, identity: object, argument_types: tuple[Type, ...]) -> Fingerprint:
    """The fingerprint of a specialisation.

    Args:
        dispatcher: the compiled function.
        identity: the identity of its source, if its code is not enough.
        argument_types: argument types of the specialisation.

    Raises:
        CannotStore: it depends on something without a digest.
    """
    ambient = inherited_options()
    walk = _Walk(ambient if identity is None else DEFAULT)
    walk.add(surroundings())
    walk.add(comparable(ambient))
    walk.add(identity)
    if identity is None:
        walk.add(dispatcher)
    walk.functions[dispatcher.py_func] = None
    for each in argument_types:
        walk.add(each)
    walk.add_rules_of_libraries()
    return Fingerprint(
        walk.hash.hexdigest(),
        frozenset(walk.functions),
        tuple(walk.dispatchers),
        tuple(walk.reads),
        walk.options,
    )


class _Walk:
    """One walk through everything that is reached."""

    def __init__(self, ambient: Mapping[str, object]) -> None:
        self.options = Inheritance(ambient)
        self._current: Any = None
        self.hash = hashlib.sha256()
        self.functions: dict[Any, None] = {}
        self.dispatchers: list[Dispatcher] = []
        self.reads: list[Read] = []
        self._seen: dict[int, tuple[int, object]] = {}

    def note(self, *words: object) -> None:
        """Adds words to the digest, so that no two lists of words have the same."""
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:" % len(data))
            self.hash.update(data)

    def add(self, value: Any) -> None:
        """Adds a value and everything reachable from it."""
        if isinstance(value, Dispatcher | FunctionType) and not hasattr(value, "_irad_rebuild"):
            self.options.note_call(self._current, getattr(value, "py_func", value))
        known = self._seen.get(id(value))
        if known is not None:
            self.note("again", known[0])
            return
        if not isinstance(value, bool | int | float | complex | str | bytes | None | enum.Enum):
            self._seen[id(value)] = len(self._seen), value  # kept, so that no other object gets its number
        self._add(value)

    @singledispatchmethod
    def _add(self, value: Any) -> None:
        made_by = getattr(type(value), "__module__", None)
        if dataclasses.is_dataclass(value) and is_of_library(made_by):
            self.note("data", type(value).__qualname__)
            for each in dataclasses.fields(value):
                self.note(each.name)
                self.add(getattr(value, each.name))
        elif (place := place_in_library(value)) is not None:
            self.note("library", place)
        elif (defined := internals.intrinsic_function(value)) is not None and is_of_library(defined.__module__):
            self.note("intrinsic", defined.__module__, defined.__qualname__)
        else:
            raise CannotStore(f"it uses {value!r}, and what that stands for in another process is not known")

    @_add.register(type(None))
    @_add.register(bool)
    @_add.register(int)
    @_add.register(float)
    @_add.register(complex)
    @_add.register(str)
    @_add.register(bytes)
    def _(self, value: object) -> None:
        if isinstance(value, enum.Enum):
            self._add_member(value)
        else:
            self.note(type(value).__qualname__, repr(value))

    @_add.register
    def _add_member(self, value: enum.Enum) -> None:
        # Members of libraries are known by name: the operators of numba_mpi are addresses, of this process.
        content = "" if is_of_library(type(value).__module__) else repr(value.value)
        self.note("enum", value.name, content)
        self.add(type(value))

    @_add.register
    def _(self, value: tuple) -> None:  # type: ignore[type-arg]
        self.note("tuple", len(value))
        self.add(type(value))
        for each in value:
            self.add(each)

    @_add.register
    def _(self, value: frozenset) -> None:  # type: ignore[type-arg]
        self.note("set", *sorted(map(repr, value)))
        if not all(isinstance(each, int | str) for each in value):
            raise CannotStore(f"it uses the set {value!r}")

    @_add.register
    def _(self, value: np.ndarray) -> None:
        if value.dtype.hasobject or token(value, content=True)[1] is None:  # type: ignore[index]
            raise CannotStore("it reads a large or non-contiguous global array, of which compiled code has the address")
        self.note("array", value.dtype.str, repr(value.dtype), value.shape, value.strides, value.tobytes())

    @_add.register
    def _(self, value: np.generic) -> None:
        self.note("scalar", repr(value.dtype), value.tobytes())

    @_add.register
    def _(self, value: np.dtype) -> None:
        self.note("dtype", repr(value))

    @_add.register
    def _(self, value: Options) -> None:
        self.note("options", dataclasses.replace(value, cache=False))

    @_add.register
    def _(self, value: partial) -> None:  # type: ignore[type-arg]
        self.note("partial")
        self.add(value.func)
        self.add(value.args)
        self.add(tuple(sorted(value.keywords.items())))

    @_add.register
    def _(self, value: ModuleType) -> None:
        self.note("module", value.__name__)

    @_add.register
    def _(self, value: BuiltinFunctionType) -> None:
        if (value.__module__ or "").partition(".")[0] not in BUILTIN and not is_of_library(value.__module__):
            raise CannotStore(f"it calls {value.__module__}.{value.__qualname__}, which has no code to compare")
        self.note("builtin", value.__module__, value.__qualname__)

    @_add.register
    def _(self, value: type) -> None:
        self.note("class", value.__module__, value.__qualname__)
        if value.__module__ in BUILTIN or is_of_library(value.__module__):
            return
        home: Any = sys.modules.get(value.__module__)
        for name in value.__qualname__.split("."):
            home = getattr(home, name, None)
        if home is not value or value.__module__ == "__main__":
            raise CannotStore(f"another process has no class {value.__qualname__} that could be found by its name")
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            self.note(*value._fields)
        elif issubclass(value, enum.Enum):
            self.note(*(f"{each.name}={each.value!r}" for each in value))
        elif not issubclass(value, BaseException):
            raise CannotStore(f"it uses the class {value.__qualname__}, whose methods are not followed")

    @_add.register
    def _(self, value: FunctionType) -> None:
        self.functions[value] = None
        if is_of_library(value.__module__):
            self.note("library", value.__module__, value.__qualname__)
            # A closure of a library may hold functions of users, unless it is made when the library is imported.
            if value.__closure__ is None or place_in_library(value) is not None:
                return
        code = value.__code__
        self.note("function", value.__module__, value.__qualname__, _content(code, code.co_filename))
        caller, self._current = self._current, value
        self.add(value.__defaults__ or ())
        self.add(tuple((value.__kwdefaults__ or {}).items()))
        for read in reads_of(value):
            self.note(read.kind, read.name)
            self.reads.append(read)
            self.add(read.value)
        self._add_rules(value)
        self._add_implementations(value)
        self._current = caller

    def _add_implementations(self, function: FunctionType) -> None:
        if dependencies.is_low_level(function):
            raise CannotStore(f"{function.__qualname__} is implemented by Numba's low-level interface")
        names = tuple(name for each in names_in(function.__code__) for name in each)
        for found, options in (*dependencies.of_function(function), *dependencies.of_names(names)):
            self.note("implementation")
            self._add_options(found, options)
            self.add(found)

    def _add_options(self, function: Any, options: Mapping[str, Any]) -> None:
        self.options.note_options(function, options)
        for name, option in sorted(options.items()):
            self.note(name)
            self.add(option if not isinstance(option, set | dict) else tuple(sorted(map(str, option))))

    @_add.register
    def _(self, value: Dispatcher) -> None:
        identity = getattr(value, "_irad_rebuild", None)
        if identity is not None:
            self.note("derivative")
            self.functions[value.py_func] = None
            caller, self._current = self._current, None  # derivatives do not pass options on
            self.add(identity)
            self._add_rules(value)
            self._current = caller
            return
        self.dispatchers.append(value)
        takes_new_types = internals.takes_new_types(value)
        self.note("dispatcher", takes_new_types)
        if not takes_new_types:  # it has signatures in its declaration, of which the first that fits is called
            self.note(*(each.signature for each in value.overloads.values()))
        self.add(internals.compiler_of(value).pipeline_class)
        self._add_options(value.py_func, value.targetoptions)
        self.add(tuple(sorted(value.locals.items())))
        self.add(value.py_func)
        self._add_rules(value)

    @_add.register
    def _(self, value: Type) -> None:
        self.note("type", type(value).__qualname__)
        match value:
            case types.NamedTuple() | types.NamedUniTuple():
                self.add(value.instance_class)
                self._add_types(value.types)
            case types.BaseTuple():
                self._add_types(value.types)
            case types.Array():
                self.note(value.ndim, value.layout, value.mutable, value.aligned)
                self.add(value.dtype)
            case types.List() | types.ListType():
                self.note(str(value) if isinstance(value, types.List) and value.reflected else "")
                self.add(value.dtype)
            case types.DictType():
                self._add_types((value.key_type, value.value_type))
            case types.Optional():
                self.add(value.type)
            case types.Omitted():
                self.add(value.value)
            case types.Literal():
                self.add(value.literal_value)
            case _ if isinstance(value, _SIMPLE_TYPES):
                self.note(str(value))
            case _:
                raise CannotStore(f"an argument is of type {value}, which may be another one in another process")

    def _add_types(self, found: Any) -> None:
        self.note(len(tuple(found)))
        for each in found:
            self.add(each)

    def _add_rules(self, target: object) -> None:
        for rule in catalogue.entries_of(target):
            self._add_rule(rule)

    def _add_rule(self, rule: CustomRule) -> None:
        if rule.is_imported:
            raise CannotStore(f"the rule for {rule.name} is Python code, which compiled code knows by a number")
        self.note("rule", rule.name, str(rule.pattern))
        for each in dataclasses.fields(rule):
            if each.name in ("target", "pattern", "version"):
                continue
            found = getattr(rule, each.name)
            self.note(each.name)
            self.add(tuple(sorted(found.items())) if isinstance(found, dict) else found)

    def add_rules_of_libraries(self) -> None:
        """Adds what users declared for functions of libraries and for symbols, whether these are called or not."""
        for rule in catalogue.rules():
            target = getattr(rule.target, "py_func", rule.target)
            is_followed = isinstance(target, FunctionType) and not is_of_library(target.__module__)
            # the versions and files of libraries are part of all fingerprints; which are loaded makes no difference
            if not (comes_with_library(rule) or is_followed):
                self._add_rule(rule)


def place_in_library(value: Any) -> str | None:
    """Name under which a library has a value, as ``numpy.dot``; None where it is not there."""
    name = getattr(value, "__name__", None)
    for module in (getattr(value, "__module__", None), "numpy", "numpy.random"):
        if module and is_of_library(module) and name and getattr(sys.modules.get(module), name, None) is value:
            return f"{module}.{name}"
    return None


@lru_cache(maxsize=4096)
def _content(code: CodeType, _file: str) -> bytes:
    """Code as bytes, with its file and lines, which messages name; code is equal whatever its file."""
    return hashlib.sha256(marshal.dumps(code, 0)).digest()  # format 0: no references, which vary from run to run


def module_and_name(function: Callable[..., Any]) -> str:
    """Module and name of a function as Numba's symbols have them."""
    found = inspect.unwrap(function)
    module = found.__module__ if found.__module__ in sys.modules else "<dynamic>"
    return f"{module}.{found.__qualname__}"
