"""Values that a compilation by Numba froze: globals, closure cells, attributes of modules.

Input   the type annotation that Numba keeps with a compiled function: its IR, with the values that names stood for.
Output  `names_in`: these values by place; `Snapshot`: the same without references to them, to be compared later;
        `Frozen`: the values under which the same function is lowered again.
Limit   Numba keeps no values of attributes of modules, and copies the content of arrays without keeping it. Of a
        `Snapshot` that has either, `loose`, only the machine code tells what was frozen (`numba_compare`). Code from
        the disk has no IR at all.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType
from typing import Any, Final, TypeAlias

import numpy as np
from numba.core import ir, types
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type
from numba.parfors.parfor import Parfor
from numba.stencils.stencil import StencilFunc

from irad.records import dataclass

GLOBAL: Final = "the global"
FREE: Final = "the variable of the enclosing function"
INNER: Final = "a name that is read by"
ATTRIBUTE: Final = "the attribute"

_FROZEN_BYTES: Final = 10**6
"""Of larger arrays Numba takes the address, as of those that are not contiguous."""
_FIXED_MODULES: Final = ("math", "cmath", "numpy")
_LIBRARIES: Final = ("numba", "numpy", "scipy", "irad", "numba_mpi")
_PLAIN: Final = bool | int | float | complex | str | bytes | None


@dataclass(frozen=True, slots=True)
class Place:
    """A place at which a function reads a name: ``kind`` is one of the constants above."""

    kind: str
    name: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Read:
    """A name that a function reads.

    Attributes:
        place: where.
        value: the object it referred to; for data in a module, its current value.
        is_recorded: Numba kept the value.
    """

    place: Place
    value: Any
    is_recorded: bool


def names_in(annotation: Any) -> Iterator[Read]:
    """The names that a compiled function reads; none of what was loaded from disk, whose annotation is text."""
    for statement in _statements(getattr(annotation, "blocks", {}).values()):
        if isinstance(statement, ir.Assign) and _is_inner_function(annotation, statement.value):
            yield Read(Place(INNER, statement.value.name, statement.loc.filename, statement.loc.line), object(), False)
        elif isinstance(statement, ir.Assign):
            yield from _read(statement, annotation.typemap)


def _is_inner_function(annotation: Any, value: Any) -> bool:
    """True if Numba made a dispatcher or stencil of a function within this one: another with each compilation."""
    made = value.value if isinstance(value, ir.Global) else None
    if isinstance(made, StencilFunc):  # Numba calls it by the name that `numba.stencil` had
        code = made.kernel_ir.func_id.code
        inner = (each for each in annotation.func_id.code.co_consts if isinstance(each, CodeType))
        return any((each.co_name, each.co_firstlineno) == (code.co_name, code.co_firstlineno) for each in inner)
    return isinstance(made, Dispatcher) and made.py_func.__code__ in annotation.func_id.code.co_consts


def _statements(blocks: Iterable[ir.Block]) -> Iterator[ir.Stmt]:
    """The statements of blocks, those in parallel loops included."""
    for block in blocks:
        for statement in block.body:
            yield statement
            if isinstance(statement, Parfor):
                yield from _statements((statement.init_block, *statement.loop_body.values()))


def has_names(annotation: object) -> bool:
    """True if an annotation still is what Numba made, and not the text that it writes to disk."""
    return hasattr(annotation, "blocks")


def _read(statement: ir.Assign, typemap: Mapping[str, Type]) -> Iterator[Read]:
    value, place, found = statement.value, statement.loc, typemap.get(statement.target.name)
    if isinstance(value, ir.Global | ir.FreeVar):
        kind = GLOBAL if isinstance(value, ir.Global) else FREE
        frozen = value.value
        if frozen is ir.UNDEFINED and isinstance(found, types.RecursiveCall):
            frozen = _dispatcher_of(found.dispatcher_type)  # by a signature it is compiled before it has the name
        yield Read(Place(kind, value.name, place.filename, place.line), frozen, True)
    elif isinstance(value, ir.Expr) and value.op == "getattr":
        owner = typemap.get(value.value.name)
        if isinstance(owner, types.Module):
            name = f"{owner.pymod.__name__}.{value.attr}"
            where = Place(ATTRIBUTE, name, place.filename, place.line)
            if isinstance(found, types.Dispatcher):
                yield Read(where, _dispatcher_of(found), True)
            elif _is_data(found) and owner.pymod.__name__ not in _FIXED_MODULES:
                yield Read(where, getattr(owner.pymod, value.attr, None), False)


def _dispatcher_of(numba_type: types.Dispatcher) -> object:
    try:
        return numba_type.dispatcher
    except ReferenceError:  # it is gone, so it is none that a name can stand for now
        return object()


def _is_data(numba_type: Type | None) -> bool:
    data = types.Number | types.Boolean | types.Array | types.BaseTuple | types.Record | types.UnicodeType
    return isinstance(types.unliteral(numba_type), data) if numba_type is not None else False


class Frozen:
    """The values that a compiled function froze, for lowering it again.

    Args:
        annotation: annotation of the compiled function.
    """

    def __init__(self, annotation: object) -> None:
        self._reads: dict[tuple[str, str], list[Read]] = {}
        for read in names_in(annotation):
            self._reads.setdefault((read.place.kind, read.place.name), []).append(read)

    def find(self, kind: str, name: str, code: CodeType) -> tuple[object] | None:
        """The value of a name that code reads, in a tuple; None where it is not known."""
        first, last = code.co_firstlineno, max((line for *_, line in code.co_lines() if line), default=0)
        values = [
            read.value
            for read in self._reads.get((kind, name), ())
            if read.place.file == code.co_filename and first <= read.place.line <= last
        ]
        if not values or any(token(value) != token(values[0]) for value in values):
            return None  # code of another function on the same lines was put in line
        return (values[0],)


def is_of_library(module: str | None) -> bool:
    """True if code belongs to what does not change while a program runs."""
    return (module or "").partition(".")[0] in _LIBRARIES


def is_data(value: object) -> bool:
    """True if it matters which value a name had: a number, an array, a function; no module or type."""
    return isinstance(value, _PLAIN | np.generic | np.ndarray | tuple | Dispatcher)


class _Identity:
    """Identity of an object, which it does not keep alive where that can be avoided."""

    __slots__ = ("_hash", "it")

    def __init__(self, value: object) -> None:
        self._hash = id(value)
        self.it: Callable[[], Any]
        try:
            self.it = weakref.ref(value)
        except TypeError:
            self.it = lambda: value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return NotImplemented
        mine = self.it()
        return mine is not None and mine is other.it()

    def __hash__(self) -> int:
        return self._hash


def token(value: object, *, content: bool = False) -> object:
    """A token that is equal for values that compile to the same constant; ``content`` compares that of arrays, too."""
    match value:
        case tuple():
            return type(value), tuple(token(item, content=content) for item in value)
        case np.ndarray():
            return _Identity(value), _digest(value) if content else None
        case Dispatcher() if is_of_library(value.py_func.__module__):
            return _library_token(value)
        case np.generic():
            return type(value), value.dtype.str, value.tobytes() if content or not isinstance(value, np.void) else None
        case _ if isinstance(value, _PLAIN):
            return type(value), repr(value)
        case _:
            return _Identity(value)


def _library_token(dispatcher: Dispatcher, around: tuple[object, ...] = ()) -> object:
    """A token that equals that of other dispatchers of the same library function: Numba makes some per compilation."""
    function = dispatcher.py_func
    if function.__code__ in around:  # it calls itself, as Numba's sorts do
        return function.__code__, function.__module__
    contents = [cell.cell_contents for cell in function.__closure__ or ()]
    around = (*around, function.__code__)
    cells = tuple(
        _library_token(each, around)
        if isinstance(each, Dispatcher) and is_of_library(each.py_func.__module__)
        else token(each)
        for each in contents
    )
    return (
        type(dispatcher),
        function.__code__,
        function.__module__,
        cells,
        repr(sorted(dispatcher.targetoptions.items())),
    )


def _digest(array: Any) -> object:
    if (
        array.nbytes > _FROZEN_BYTES
        or not (array.flags.c_contiguous or array.flags.f_contiguous)
        or array.dtype.hasobject
    ):
        return None  # read when the program runs
    return array.dtype.str, array.shape, array.strides, hashlib.sha256(array.tobytes()).digest()


def _is_loose(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_loose, value))
    return isinstance(value, np.void) or (isinstance(value, np.ndarray) and _digest(value) is not None)


class Snapshot:
    """Values that one compilation froze, without references to it.

    Attributes:
        loose: names whose frozen value Numba does not keep.
        tokens: tokens for the values, by place.
        recorded: the same for the values that Numba keeps, whatever arrays hold.

    Args:
        annotation: of the compilation, taken right after it.
    """

    def __init__(self, annotation: object) -> None:
        reads = list(names_in(annotation))
        self.tokens: dict[Place, frozenset[object]] = {}
        for read in reads:
            found = self.tokens.get(read.place, frozenset())
            self.tokens[read.place] = found | {token(read.value, content=True)}
        self.recorded = _recorded(reads)
        self.loose = sorted({str(read.place) for read in reads if not read.is_recorded or _is_loose(read.value)})

    def differs_from(self, other: Snapshot) -> bool:
        """True if two compilations of one function froze different values."""
        return any(self.tokens[place] != other.tokens[place] for place in self.tokens.keys() & other.tokens.keys())

    def changed_since(self, annotation: object) -> list[Place]:
        """Names for which an earlier compilation kept another value."""
        earlier = _recorded(list(names_in(annotation)))
        common = self.recorded.keys() & earlier.keys()
        return sorted((p for p in common if self.recorded[p] != earlier[p]), key=lambda p: (p.line, p.name))


def _recorded(reads: list[Read]) -> dict[Place, frozenset[object]]:
    found: dict[Place, frozenset[Any]] = {}
    for read in reads:
        if read.is_recorded:
            found[read.place] = found.get(read.place, frozenset()) | {token(read.value)}
    return found


# Lowering a function again under the values that Numba froze when it compiled it.

Reads: TypeAlias = set[tuple[str, str, CodeType]]
"""Names that are read: of which kind, in which code."""

_here = threading.local()


class _Reading:
    """One compilation: what it follows, and which names it reads."""

    def __init__(self, frozen: Frozen | None, code: CodeType | None) -> None:
        self.frozen = frozen
        self.reads: Reads = set()
        self._inner: set[CodeType] = set() if code is None else set(_inner_functions(code))

    def note(self, kind: str, name: str, code: CodeType, value: object) -> None:
        """Notes that data was read; not what functions inside the function read of its own variables."""
        self._inner.update(_inner_functions(code))
        if is_data(value) and (kind != FREE or code not in self._inner):
            self.reads.add((kind, name, code))


def _inner_functions(code: CodeType) -> Iterator[CodeType]:
    """The code of functions and comprehensions within a function, at any depth."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inner_functions(each)


@contextmanager
def following(compiled: CompileResult | None, code: CodeType | None = None) -> Iterator[Reads]:
    """Names have the values that a specialisation froze; without one, those that they have now.

    Args:
        compiled: the specialisation, or None.
        code: of the function, whose own variables are not names from outside to the functions within it.

    Yields:
        The names of data that are read: of which kind, in which code.
    """
    earlier = getattr(_here, "reading", None)
    annotation = getattr(compiled, "type_annotation", None)
    _here.reading = _Reading(Frozen(annotation) if has_names(annotation) else None, code)
    try:
        yield _here.reading.reads
    finally:
        _here.reading = earlier


def global_value(original: Callable[..., Any], interpreter: Any, name: str) -> Any:
    """The value of a global, for Numba's interpreter of byte code."""
    return _read_marked(GLOBAL, name, interpreter, lambda: original(interpreter, name))


def closure_value(original: Callable[..., Any], interpreter: Any, index: int) -> Any:
    """The value of a variable of an enclosing function, for Numba's interpreter of byte code."""
    name = interpreter.func_id.code.co_freevars[index]
    return _read_marked(FREE, name, interpreter, lambda: original(interpreter, index))


def _read_marked(kind: str, name: str, interpreter: Any, now: Callable[[], Any]) -> Any:
    reading: _Reading | None = getattr(_here, "reading", None)
    if reading is None:
        return now()
    code = interpreter.func_id.code
    found = None if reading.frozen is None else reading.frozen.find(kind, name, code)
    value = now() if found is None else found[0]
    if not is_of_library(interpreter.func_id.modname):
        reading.note(kind, name, code, value)
    return value
