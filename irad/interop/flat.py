"""Functions of arrays and numbers alone, and their derivatives as such functions: what bridges compile and call.

A tool that compiles programs wants a function as it wants its own operations: a list of arrays in, a list of arrays
out. Tuples of the user's function are taken apart and put together in compiled code, and constants are part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

import numba
import numpy as np
from numba.core.errors import NumbaError

import irad
from irad.errors import SignatureError
from irad.frontend.generated import function_from
from irad.message import with_article

LEAF: Final = ...  # a constant, since graphs hold structures
"""Marks the place of an array in a structure."""
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
                "Numba has single and double precision, complex numbers of both, and integers",
            )
        return cls(dtype, axes)


def mapped(structure: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of tuples, lists and dictionaries with its parts changed; of lists, which Numba has not, tuples."""
    if isinstance(structure, dict):
        return {key: mapped(each, change) for key, each in structure.items()}
    if isinstance(structure, tuple | list):
        items = [mapped(each, change) for each in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return change(structure)


def split(value: Any, leaves: list[Any], kinds: tuple[type, ...]) -> Any:
    """Appends the parts of a value that are arrays, of some classes, and returns the structure with `LEAF` for each."""

    def taken(part: Any) -> Any:
        if isinstance(part, kinds):
            leaves.append(part)
            return LEAF
        return part

    return mapped(value, taken)


def filled(structure: Any, values: Iterator[Any]) -> Any:
    """A structure with a value for each `LEAF`."""
    return mapped(structure, lambda part: next(values) if part is LEAF else part)


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
        SignatureError: a parameter is taken by keyword alone.
    """
    if not keywords:
        return args
    bound = inspect.signature(f.py_func).bind(*args, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise SignatureError(
            f"{f.py_func.__qualname__} takes {', '.join(bound.kwargs)} by keyword alone",
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
    """A key that differs for different constants: also for 1 and True, and for numbers of NumPy and of Python."""
    if isinstance(structure, dict):
        return tuple((key, identity(each)) for key, each in structure.items())
    if isinstance(structure, tuple):
        return type(structure), tuple(map(identity, structure))
    return type(structure), repr(structure)


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
    f: Any, structure: tuple[Any, ...], inputs: tuple[Kind, ...], wanted: Callable[[Kind], Kind] = lambda kind: kind
) -> Flattened:
    """A function of the arrays in its arguments alone.

    Args:
        f: of Numba.
        structure: of its arguments; what is no `LEAF` and no tuple is a constant.
        inputs: kinds of the arrays.
        wanted: of the kind of a result, the one that it is converted to.

    Raises:
        SignatureError: it returns something else than arrays, numbers and tuples of these.
    """
    scope: dict[str, Any] = {"f": f, "np": np}
    names = iter(f"x{i}" for i in range(len(inputs)))
    given = ", ".join(_expression(each, names, scope) for each in structure)
    listed = ", ".join(f"x{i}" for i in range(len(inputs)))
    inner = numba.njit(function_from("inner", f"def inner({listed}): return f({given})", "irad.interop", scope))
    types = tuple(each.numba_type for each in inputs)
    inner.compile(types)
    outputs: list[tuple[str, Kind]] = []
    returned = _returned(inner.overloads[types].signature.return_type, "r", outputs)
    kinds = [wanted(kind) for _, kind in outputs]
    casts = [
        path if kind == given_kind else kind.converted(path)
        for (path, given_kind), kind in zip(outputs, kinds, strict=True)
    ]
    source = f"def flat({listed}):\n    r = f({given})\n    return ({''.join(f'{each}, ' for each in casts)})\n"
    return Flattened(numba.njit(function_from("flat", source, "irad.interop", scope)), tuple(kinds), returned)


def _expression(structure: Any, names: Iterator[str], scope: dict[str, Any]) -> str:
    """An argument as text; a constant becomes a global name of the function."""
    if structure is LEAF:
        return next(names)
    if isinstance(structure, tuple):
        items = "".join(f"{_expression(each, names, scope)}, " for each in structure)
        if not hasattr(structure, "_fields"):
            return f"({items})"
        structure, call = type(structure), f"({items})"
    elif isinstance(structure, dict):
        raise SignatureError(
            "an argument holds a dictionary",
            "pass a named tuple: collections.namedtuple, typing.NamedTuple",
            "compiled code has no dictionaries of values of different types",
        )
    else:
        call = ""
        _check_constant(structure)
    name = f"c{len(scope)}"
    scope[name] = structure
    return name + call


def _check_constant(value: Any) -> None:
    try:
        numba.typeof(value)
    except (NumbaError, ValueError):
        raise SignatureError(
            f"an argument is {with_article(type(value).__name__)}, which is neither an array nor a constant",
            "pass arrays, numbers, strings, functions of Numba, and tuples of these",
            "what is passed to compiled code has a type of Numba",
        ) from None


def _returned(type_: Any, path: str, outputs: list[tuple[str, Kind]]) -> Any:
    """Appends the arrays and numbers of a result, as expressions, and returns its structure."""
    if isinstance(type_, numba.types.BaseTuple):
        items = [_returned(each, f"{path}[{i}]", outputs) for i, each in enumerate(type_)]
        return (
            type_.instance_class(*items)
            if isinstance(type_, numba.types.NamedTuple | numba.types.NamedUniTuple)
            else tuple(items)
        )
    if isinstance(type_, numba.types.NoneType):
        return None
    number = type_.dtype if isinstance(type_, numba.types.Array) else numba.types.unliteral(type_)
    if isinstance(number, numba.types.Number | numba.types.Boolean):
        outputs.append((path, Kind(np.dtype(str(number)), getattr(type_, "ndim", 0))))
        return LEAF
    raise SignatureError(
        f"the function returns {type_}", "return arrays, numbers, and tuples of these", "a graph holds nothing else"
    )


Origin = Literal["function", "pullback", "pushforward"]


class Flat:
    """A compiled function of arrays and numbers that returns a tuple of these.

    Attributes:
        number: its index in `all`: programs of other tools hold numbers.
        name: for messages.
        function: of Numba.
        inputs: kinds of the arguments.
        outputs: kinds of the results.
        origin: what it is.
        base: the function that it is a derivative of.
        positions: of the arguments that the derivative is with respect to.
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
        origin: Origin = "function",
        base: Self | None = None,
        positions: tuple[int, ...] = (),
    ) -> None:
        self.name, self.function, self.inputs, self.outputs = name, function, inputs, outputs
        self.origin, self.base, self.positions = origin, base, positions
        self._derivatives: dict[Any, Self] = {}
        self.number = len(self.all)
        self.all.append(self)

    @property
    def floats(self) -> list[int]:
        """Positions of the results that have a derivative."""
        return [i for i, each in enumerate(self.outputs) if each.is_float]

    @cached_property
    def in_program(self) -> Any:
        """The function with arrays of no axes in place of numbers, one of which it returns itself, not in a tuple."""
        arguments = ", ".join(
            name if kind.axes else f"{name}[()]" for name, kind in zip(self._names, self.inputs, strict=True)
        )
        results = [f"r[{i}]" if each.axes else f"np.asarray(r[{i}])" for i, each in enumerate(self.outputs)]
        returned = results[0] if len(results) == 1 else _tuple(results)
        source = f"def flat({', '.join(self._names)}):\n    r = f({arguments})\n    return {returned}\n"
        return numba.njit(function_from("flat", source, "irad.interop", {"f": self.function, "np": np}))

    def pullback(self, positions: tuple[int, ...]) -> Self:
        """The function of the arguments and the cotangents of `floats` that returns those of some arguments."""
        cotangents = [
            self._conjugate(f"c{i}", kind) if kind.is_float else "None" for i, kind in enumerate(self.outputs)
        ]
        body = (
            f"    _, back = vjp(f, {', '.join(self._names)}, argnums={positions!r})\n"
            f"    r = back({_tuple(cotangents)})\n"
        )
        given = {f"c{i}": self.outputs[i] for i in self.floats}
        results = [
            (self._conjugate(_number(f"r[{i}]", self.inputs[position]), self.inputs[position]), self.inputs[position])
            for i, position in enumerate(positions)
        ]
        return self._derivative("pullback", positions, given, body, results)

    def pushforward(self, positions: tuple[int, ...]) -> Self:
        """The function of the arguments and tangents of some of them that returns those of `floats`."""
        last = positions[-1] + 1
        tangents = _tuple([f"t{i}" for i in positions])
        arguments = ", ".join([*self._names[:last], tangents, *self._names[last:]])
        body = f"    r = push(f, {positions!r})({arguments})[1]\n"
        given = {f"t{i}": self.inputs[i] for i in positions}
        results = [(_number(f"r[{i}]", self.outputs[i]), self.outputs[i]) for i in self.floats]
        return self._derivative("pushforward", positions, given, body, results)

    @property
    def _names(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.inputs))]

    def _conjugate(self, expression: str, kind: Kind) -> str:
        return f"np.conj({expression})" if self.conjugates and kind.dtype.kind == "c" else expression

    def _derivative(
        self,
        origin: Literal["pullback", "pushforward"],
        positions: tuple[int, ...],
        given: dict[str, Kind],
        body: str,
        results: Sequence[tuple[str, Kind]],
    ) -> Self:
        key = origin, positions
        if key not in self._derivatives:
            returned = _tuple([expression for expression, _ in results])
            source = f"def {origin}({', '.join([*self._names, *given])}):\n{body}    return {returned}\n"
            scope = {"f": self.function, "vjp": irad.vjp, "push": irad.pushforward, "np": np}
            function = numba.njit(function_from(origin, source, "irad.interop", scope))
            kinds = tuple(kind for _, kind in results)
            inputs = *self.inputs, *given.values()
            name = f"the {origin} of {self.name}"
            self._derivatives[key] = type(self)(name, function, inputs, kinds, origin, self, positions)
        return self._derivatives[key]


def _number(expression: str, kind: Kind) -> str:
    """A number in its precision: sums of numbers in single precision may be in double."""
    return expression if kind.axes else kind.converted(expression)


def _tuple(items: Sequence[str]) -> str:
    return f"({''.join(f'{each}, ' for each in items)})"
