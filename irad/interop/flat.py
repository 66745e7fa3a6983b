"""Functions of arrays and numbers alone, and their derivatives as such functions: what bridges compile and call.

A tool that compiles programs wants a function as it wants its own operations: a list of arrays in, a list of arrays
out. Tuples and dictionaries of the user's function are taken apart, and put together in compiled code. All else is part
of that code, or passed to it before the arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

import numba
import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

import irad
import irad.frontend.packing.dispatcher  # tells Numba how compiled code takes parts of dictionaries
from irad.errors import SignatureError
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.numba.target import typing_context
from irad.frontend.packing.packed import class_for
from irad.message import with_article

ArrayOrNumber: TypeAlias = NDArray[Any] | np.number[Any] | complex
"""Results that become one array of a partner; `complex` stands for all numbers of Python."""
LEAF: Final = ...  # a constant, since graphs hold structures
"""Marks the place of an array in a structure."""
HELD: Final = object()
"""Marks the place of a value that is passed as it is."""
_NUMBERS: Final = frozenset("?bBhHiIlLqQfdFD")  # the characters of NumPy's dtypes that Numba has as well


@dataclass(frozen=True, slots=True)
class Kind:
    """Dtype and number of axes of an array, which compiled code depends on; one of no axes is a number."""

    dtype: np.dtype[Any]
    axes: int

    @property
    def numba_type(self) -> Any:
        """The type of such an array, contiguous, or of the number."""
        number = numba.from_dtype(self.dtype)
        return numba.types.Array(number, self.axes, "C") if self.axes else number

    @property
    def is_float(self) -> bool:
        """True if it has a derivative."""
        return self.dtype.kind in "fc"

    def converted(self, expression: str) -> str:
        """Code for a value, as an array or number of this dtype."""
        name = "bool_" if self.dtype.kind == "b" else self.dtype.name
        return f"{expression}.astype(np.{name})" if self.axes else f"np.{name}({expression})"

    @classmethod
    def of(cls, dtype: Any, axes: int) -> Kind:
        """The kind of an array.

        Raises:
            SignatureError: Numba does not have its dtype.
        """
        dtype = np.dtype(dtype)
        if dtype.char not in _NUMBERS:
            raise SignatureError(
                f"an array has the dtype {dtype}",
                'convert it, as x.astype("float32") does',
                "Numba supports single and double precision, complex numbers of both, and integers",
            )
        return cls(dtype, axes)


_CONTAINERS: Final = (dict, tuple, list)


def mapped(structure: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of tuples, lists and dictionaries with its parts changed; of lists, which Numba has not, tuples."""
    if isinstance(structure, dict):
        return {key: mapped(each, change) for key, each in structure.items()}
    if isinstance(structure, _CONTAINERS):
        items = [mapped(each, change) for each in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return change(structure)


def split(value: Any, leaves: list[Any], kinds: tuple[type, ...], held: list[Any] | None = None) -> Any:
    """Appends the parts of a value that are arrays, of some classes, and returns the structure with `LEAF` for each.

    If a list is given for them, all other parts are appended to it, and are `HELD` in the structure.
    """

    def taken(part: Any) -> Any:
        if isinstance(part, kinds):
            leaves.append(part)
            return LEAF
        if held is None:
            return part
        held.append(part)
        return HELD

    return mapped(value, taken) if isinstance(value, _CONTAINERS) else taken(value)


def held_apart(structure: Any, is_held: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
    """A structure with `HELD` for some of its parts that are no `LEAF`, and a list of these."""
    held: list[Any] = []

    def taken(part: Any) -> Any:
        if part is LEAF or not is_held(part):
            return part
        held.append(part)
        return HELD

    return mapped(structure, taken), held


def filled(structure: Any, values: Iterator[Any]) -> Any:
    """A structure with a value for each `LEAF`."""
    return mapped(structure, lambda part: next(values) if part is LEAF else part)


def owners_of(structure: tuple[Any, ...]) -> tuple[int, ...]:
    """For each array in the structure of some arguments, the position of its argument."""
    owners: list[int] = []
    for position, each in enumerate(structure):
        parts: list[Any] = []
        mapped(each, parts.append)
        owners.extend([position] * sum(part is LEAF for part in parts))
    return tuple(owners)


def positions_of(f: Any, argnums: int | Sequence[int] | None) -> frozenset[int] | None:
    """The positions that ``argnums`` names of the parameters of a function of Numba; None for all.

    Raises:
        SignatureError: the function has no such parameter.
    """
    if argnums is None:
        return None
    count = len(inspect.signature(f.py_func).parameters)
    found: list[Any] = [argnums] if isinstance(argnums, int) else list(argnums)
    if not found or not all(isinstance(each, int) and -count <= each < count for each in found):
        raise SignatureError(
            f"argnums={argnums!r} of {f.py_func.__qualname__}, which has {count} parameters",
            "name positions, counted from 0; negative ones count from the end",
            "argnums says which arguments have a derivative",
        )
    return frozenset(each % count for each in found)


def positional(f: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """All arguments of a call of a function of Numba by position, defaults included where there are keywords.

    Raises:
        SignatureError: a parameter is taken by keyword only.
    """
    if not keywords:
        return args
    bound = inspect.signature(f.py_func).bind(*args, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise SignatureError(
            f"{f.py_func.__qualname__} takes {', '.join(bound.kwargs)} by keyword only",
            "make these parameters positional",
            "the compiled derivatives pass arguments by position",
        )
    return bound.args


def shapes_in(stated: Any) -> Iterator[tuple[Any, ...]]:
    """The shapes in what a user states of a result: one shape, or tuples of shapes."""
    if all(not isinstance(each, tuple | list) for each in stated):
        yield tuple(stated)
    else:
        for each in stated:
            yield from shapes_in(each)


def example(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """An array to run a function on for the shape of its result: ones, but zeros for integers, which may be indices."""
    return np.ones(shape, dtype) if np.dtype(dtype).kind in "fc" else np.zeros(shape, dtype)


def identity(structure: Any) -> Any:
    """A key that differs for different constants: also for 1 and True, and for numbers of NumPy and of Python.

    It holds the address of what has no value of its own; whoever keeps the key has to keep the structure.
    """
    if isinstance(structure, dict):
        return dict, tuple((key, identity(each)) for key, each in structure.items())
    if isinstance(structure, tuple):
        return type(structure), tuple(map(identity, structure))
    is_value = isinstance(structure, _VALUES) or structure is None
    return type(structure), repr(structure) if is_value else id(structure)


_VALUES: Final = (bool, int, float, complex, str, np.generic)


class Flattened(NamedTuple):
    """A function of arrays alone, made of one of structures.

    Attributes:
        function: returns a tuple of arrays and numbers.
        outputs: their kinds.
        returned: the structure of the result, with `LEAF` for each.
    """

    function: Any
    outputs: tuple[Kind, ...]
    returned: Any


def flattened(
    f: Any,
    structure: tuple[Any, ...],
    inputs: tuple[Kind, ...],
    held: Sequence[Any] = (),
    wanted: Callable[[Kind], Kind] = lambda kind: kind,
) -> Flattened:
    """A function of the arrays in the arguments of another, before them of the values that are `HELD`.

    Args:
        f: of Numba.
        structure: of its arguments; what is no `LEAF`, not `HELD`, no tuple and no dictionary is a constant.
        inputs: kinds of the arrays.
        held: Numba's types of the values.
        wanted: of the kind of a result, the one that it is converted to.

    Raises:
        SignatureError: it returns something else than arrays, numbers, tuples and dictionaries of these.
    """
    inspect.signature(f.py_func).bind(*structure)
    scope: dict[str, Any] = {"f": f, "np": np}
    arrays = [(f"x{i}", each.numba_type) for i, each in enumerate(inputs)]
    values = [(f"k{i}", each) for i, each in enumerate(held)]
    places = {id(LEAF): iter(arrays), id(HELD): iter(values)}
    given = [_argument(each, places, scope) for each in structure]
    found = typing_context().resolve_function_type(numba.types.Dispatcher(f), tuple(type_ for _, type_ in given), {})
    outputs: list[tuple[str, Kind]] = []
    returned = _returned(found.return_type, "r", outputs)
    kinds = tuple(wanted(kind) for _, kind in outputs)
    casts = [
        path if kind == given_kind else kind.converted(path)
        for (path, given_kind), kind in zip(outputs, kinds, strict=True)
    ]
    listed = ", ".join(name for name, _ in (*values, *arrays))
    passed = ", ".join(expression for expression, _ in given)
    source = f"def flat({listed}):\n    r = f({passed})\n    return {tuple_of(casts)}\n"
    return Flattened(numba.njit(function_from("flat", source, "irad.interop", scope)), kinds, returned)


def _argument(structure: Any, places: dict[int, Iterator[tuple[str, Any]]], scope: dict[str, Any]) -> tuple[str, Any]:
    """An argument as text, and its type; a constant becomes a global name of the function."""
    if id(structure) in places:
        return next(places[id(structure)])
    name = f"c{len(scope)}"
    if not isinstance(structure, tuple | dict):
        scope[name] = structure
        return name, _type_of_constant(structure)
    parts = structure.values() if isinstance(structure, dict) else structure
    items = [_argument(each, places, scope) for each in parts]
    written, types = tuple_of([text for text, _ in items]), tuple(type_ for _, type_ in items)
    class_: Any
    if isinstance(structure, dict):
        class_ = class_for(dict, tuple(structure))
    elif hasattr(structure, "_fields"):
        class_ = type(structure)
    else:
        return written, numba.types.BaseTuple.from_types(types)
    scope[name := f"c{len(scope)}"] = class_
    return f"{name}{written}", numba.types.BaseTuple.from_types(types, class_)


def _type_of_constant(value: Any) -> Any:
    type_ = type_of(value)
    if not isinstance(type_, _FROZEN):
        raise SignatureError(
            f"an argument is {with_article(type(value).__name__)}, which compiled code cannot hold as a constant",
            "pass arrays, numbers, strings, functions of Numba, and tuples and dictionaries of these",
            "values other than arrays are compiled in as constants",
        )
    return type_


_FROZEN: Final = (
    numba.types.Number,
    numba.types.Boolean,
    numba.types.UnicodeType,
    numba.types.NoneType,
    numba.types.Callable,
    numba.types.DType,
    numba.types.EnumMember,
    numba.types.Array,
)


def is_constant(value: Any) -> bool:
    """True if compiled code can hold a value as a part of itself."""
    return isinstance(type_of(value), _FROZEN)


def type_of(value: Any) -> Any:
    """Numba's type of a value.

    Raises:
        SignatureError: it has none.
    """
    try:
        return numba.typeof(value)
    except (NumbaError, ValueError):
        raise SignatureError(
            f"an argument is {with_article(type(value).__name__)}, which is neither an array nor a constant",
            "pass arrays, numbers, strings, functions of Numba, and tuples and dictionaries of these",
            "arguments of compiled code have Numba types",
        ) from None


def _returned(type_: Any, path: str, outputs: list[tuple[str, Kind]]) -> Any:
    """Appends the arrays and numbers of a result, as expressions, and returns its structure."""
    if isinstance(type_, numba.types.BaseTuple):
        items = [_returned(each, f"{path}[{i}]", outputs) for i, each in enumerate(type_)]
        return type_.instance_class(*items) if isinstance(type_, numba.types.BaseNamedTuple) else tuple(items)
    if isinstance(type_, numba.types.NoneType):
        return None
    is_array = isinstance(type_, numba.types.Array)
    number = type_.dtype if is_array else numba.types.unliteral(type_)
    if isinstance(number, numba.types.Number | numba.types.Boolean):
        axes = type_.ndim if is_array else 0
        outputs.append((path if axes or not is_array else f"{path}[()]", Kind(np.dtype(str(number)), axes)))
        return LEAF
    raise SignatureError(
        f"the function returns {described(type_)}",
        "return arrays, numbers, and tuples and dictionaries of these",
        "its results become arrays of the other library",
    )


Origin = Literal["function", "pullback", "pushforward"]


class Flat:
    """A compiled function of arrays and numbers that returns a tuple of these.

    Attributes:
        number: its index in `all`: programs of other tools hold numbers.
        name: for messages.
        function: of Numba; before the arrays it takes ``held`` further values.
        inputs: kinds of the arrays.
        outputs: kinds of the results.
        held: how many values it takes before the arrays.
        owners: for each array, the position of the argument that it is in.
        origin: what it is.
        base: the function that it is a derivative of.
        positions: of the arrays that the derivative is with respect to.
        rows: of how many cotangents, or tangents, it gives the derivatives, one after the other.
        conjugates: cotangents of complex numbers are the conjugates of those of `irad.vjp`.
    """

    all: ClassVar[list[Any]] = []
    conjugates: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        function: Any,
        inputs: tuple[Kind, ...],
        outputs: tuple[Kind, ...],
        held: int = 0,
        owners: tuple[int, ...] = (),
    ) -> None:
        self.name, self.function, self.inputs, self.outputs = name, function, inputs, outputs
        self.held, self.owners = held, owners
        self.origin: Origin = "function"
        self.base: Self | None = None
        self.positions: tuple[int, ...] = ()
        self.rows = 1
        self._derivatives: dict[Any, Self] = {}
        self.number = len(self.all)
        self.all.append(self)

    @cached_property
    def floats(self) -> list[int]:
        """Positions of the results that have a derivative."""
        return [i for i, each in enumerate(self.outputs) if each.is_float]

    # ---- the results

    def shapes(self, inputs: Sequence[Any], held: Sequence[Any] = ()) -> list[tuple[int, ...]]:
        """Shapes of the results, from arguments that have shapes; where these do not say, from a run on examples."""
        if self.base is None:
            arrays = [
                example(tuple(map(int, each.shape)), kind.dtype) for each, kind in zip(inputs, self.inputs, strict=True)
            ]
            given = [each if each.ndim else each[()] for each in arrays]
            return [np.shape(each) for each in self.checked(arrays, lambda: self.function(*held, *given))]
        if self.origin == "pullback":
            return [tuple(inputs[i].shape) for i in self.positions] * self.rows
        results = self.base.shapes(inputs[: len(self.base.inputs)], held)
        return [results[i] for i in self.base.floats] * self.rows

    def checked(self, arrays: Sequence[Any], run: Callable[[], Any]) -> Any:
        """The results of a call, which must leave the arrays as they are.

        Raises:
            SignatureError: it writes to one.
        """
        copies = [each.copy() for each in arrays]
        found = run()
        for array, copy, owner in zip(arrays, copies, self.owners, strict=True):
            if array.tobytes() != copy.tobytes():
                array[...] = copy
                raise SignatureError(
                    f"{self.name} writes to its argument {owner}",
                    "make it write to a copy",
                    "its caller does not notice that an array has changed, and would use old values of it",
                )
        return found

    # ---- derivatives

    def pullback(self, positions: tuple[int, ...], rows: int = 1) -> Self:
        """The function of the arguments and the cotangents of `floats` that returns those of some arguments."""
        names = [[f"c{i}_{row}" for i in range(len(self.outputs))] for row in range(rows)]
        passed = [
            tuple_of([self._conjugate(name, kind) if kind.is_float else "None" for name, kind in pairs])
            for pairs in (zip(each, self.outputs, strict=True) for each in names)
        ]
        at = tuple(self.held + i for i in positions)
        backs = tuple_of([f"back({each})" for each in passed])
        body = f"    _, back = vjp(f, {', '.join(self._names)}, argnums={at!r})\n    r = {backs}\n"
        given = {each[i]: self.outputs[i] for each in names for i in self.floats}
        results = [
            (
                self._conjugate(_number(f"r[{row}][{i}]", self.inputs[position]), self.inputs[position]),
                self.inputs[position],
            )
            for row in range(rows)
            for i, position in enumerate(positions)
        ]
        return self._derivative("pullback", positions, rows, given, body, results)

    def pushforward(self, positions: tuple[int, ...], rows: int = 1) -> Self:
        """The function of the arguments and tangents of some of them that returns those of `floats`."""
        names = [[f"t{i}_{row}" for i in positions] for row in range(rows)]
        if rows == 1:
            last = self.held + positions[-1] + 1
            at = tuple(self.held + i for i in positions)
            passed = ", ".join([*self._names[:last], tuple_of(names[0]), *self._names[last:]])
            body = f"    r = (push(f, {at!r})({passed})[1],)\n"
        else:
            tangents = {
                self._arrays[i]: tuple_of(each) for i, each in zip(positions, zip(*names, strict=True), strict=True)
            }
            passed = ", ".join(
                f"Batch({name}, {tangents[name]})" if name in tangents else f"Const({name})" for name in self._names
            )
            body = f"    r = autodiff(Forward, f, {passed})\n"
        given = {name: self.inputs[i] for each in names for name, i in zip(each, positions, strict=True)}
        results = [
            (_number(f"r[{row}][{i}]", self.outputs[i]), self.outputs[i]) for row in range(rows) for i in self.floats
        ]
        return self._derivative("pushforward", positions, rows, given, body, results)

    def of_rows(self, rows: int) -> Self:
        """This derivative for several cotangents, or tangents, which are its last arguments."""
        assert self.base is not None
        make = self.base.pullback if self.origin == "pullback" else self.base.pushforward
        return make(self.positions, rows)

    @property
    def _arrays(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.inputs))]

    @property
    def _names(self) -> list[str]:
        return [*(f"k{i}" for i in range(self.held)), *self._arrays]

    def _conjugate(self, expression: str, kind: Kind) -> str:
        return f"np.conj({expression})" if self.conjugates and kind.dtype.kind == "c" else expression

    def _derivative(
        self,
        origin: Literal["pullback", "pushforward"],
        positions: tuple[int, ...],
        rows: int,
        given: dict[str, Kind],
        body: str,
        results: Sequence[tuple[str, Kind]],
    ) -> Self:
        key = origin, positions, rows
        if key not in self._derivatives:
            returned = tuple_of([expression for expression, _ in results])
            source = f"def {origin}({', '.join([*self._names, *given])}):\n{body}    return {returned}\n"
            function = numba.njit(function_from(origin, source, "irad.interop", {**_offered(), "f": self.function}))
            inputs = *self.inputs, *given.values()
            name, outputs = f"the {origin} of {self.name}", tuple(kind for _, kind in results)
            owners = *self.owners, *[max(self.owners, default=0) + 1] * len(given)
            made = type(self)(name, function, inputs, outputs, self.held, owners)
            made.origin, made.base, made.positions, made.rows = origin, self, positions, rows
            self._derivatives[key] = made
        return self._derivatives[key]


def _offered() -> dict[str, Any]:
    """Names that the text of derivatives uses."""
    annotations = {"Forward": irad.Forward, "Batch": irad.BatchDuplicated, "Const": irad.Const}
    return {"np": np, "vjp": irad.vjp, "push": irad.pushforward, "autodiff": irad.autodiff, **annotations}


def _number(expression: str, kind: Kind) -> str:
    """A number in its precision: sums of numbers in single precision may be in double."""
    return expression if kind.axes else kind.converted(expression)


def tuple_of(items: Iterable[str]) -> str:
    """Code for a tuple."""
    return f"({''.join(f'{each}, ' for each in items)})"
