"""Rules that are Python closures: a function ``rule(*arguments) -> (value, pullback)``, as ChainRules writes them.

Input   the closures of one imported rule, values that come out of compiled code.
Output  the value, a *handle* for the pullback, cotangents; all of the types that compiled code was compiled for.
Method  compiled code calls the methods of `Foreign` in object mode. A pullback lives as long as its handle: an array of
        one number, whose memory is an object that holds the pullback. Compiled code counts references to that memory
        and puts it on the tape, so the pullback goes when the tape goes, whatever happened in between.
        What closures raise waits until compiled code holds no references: it does not drop them when it is left.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from irad.data.structure import mapped
from irad.errors import RuleError
from irad.frontend.calls.exceptions import keep
from irad.frontend.custom.catalogue import location_of, name_of

_numbers = itertools.count(1)
_alive: Final[weakref.WeakValueDictionary[int, _Kept]] = weakref.WeakValueDictionary()


_rules: Final[dict[int, Foreign]] = {}  # compiled code names them by number: Numba would copy what it refers to
_waiting: Final[dict[int, Any]] = {}


class _Kept(bytearray):
    """The memory of a handle, and the pullback that lives as long."""

    __slots__ = ("__weakref__", "pullback")

    pullback: Any


def begin(rule: int, wanted: object, *arguments: object) -> int:
    """`Foreign.begin` of a rule."""
    return _rules[rule].begin(wanted, *arguments)


def call(function: int, wanted: object, *arguments: object) -> int:
    """`Foreign.call` of a function."""
    return _rules[function].call(wanted, *arguments)


def push(forward: int, wanted: object, *arguments: object) -> int:
    """`Foreign.push` of the form of a rule for forward mode."""
    return _rules[forward].push(wanted, *arguments)


def backward(
    rule: int, wanted: Sequence[object], number: int, cotangent: object, *shapes: tuple[int, ...]
) -> tuple[object, ...]:
    """`Foreign.backward` of a rule; ``shapes`` are those of the arrays in ``wanted``."""
    rest = iter(shapes)
    shaped = [like.of_shape(next(rest)) if isinstance(like, Elements) else like for like in wanted]
    return _rules[rule].backward(number, shaped, cotangent)


def finish(number: int) -> tuple[Any, Any]:
    """Result of `Foreign.begin`: the value, and a handle for the pullback."""
    value, pullback = _waiting.pop(number)
    kept = _Kept(8)
    kept.pullback = pullback
    _alive[number] = kept
    handle = np.frombuffer(kept, np.int64)
    handle[0] = number
    return value, handle


def value_of(number: int) -> object:
    """The value that `Foreign.call` computed."""
    return _waiting.pop(number)


def _wait(result: object) -> int:
    number = next(_numbers)
    _waiting[number] = result
    return number


class Foreign:
    """A rule in Python for one function.

    Args:
        target: the function, for messages.
        rule: of the function's arguments; returns the value and a pullback, which takes a cotangent of the value and
            returns a tuple with the cotangent of each argument, None where there is none. Or, for forward mode, of the
            arguments and their tangents, two tuples; returns the value and its tangent.
    """

    def __init__(self, target: object, rule: Callable[..., Any]) -> None:
        self.name, self.rule, self.number = name_of(target), rule, next(_numbers)
        _rules[self.number] = self

    def begin(self, wanted: object, *arguments: object) -> int:
        """Runs the rule; a number with which `finish` gives the value and a handle, 0 if it raised."""
        try:
            answer = self.rule(*mapped(_own, arguments))
            if not (isinstance(answer, tuple) and len(answer) == 2 and callable(answer[1])):
                raise self._misfit("value", "a pair (value, pullback)", _describe(answer))
            value, pullback = answer
            return _wait((self.conform(value, wanted, "value"), pullback))
        except BaseException as error:  # compiled code raises it
            keep(error)
            return 0

    def call(self, wanted: object, *arguments: object) -> int:
        """Calls the function, which has no rule; its value waits until compiled code asks for it."""
        try:
            return _wait(self.conform(self.rule(*mapped(_own, arguments)), wanted, "value"))
        except BaseException as error:
            keep(error)
            return 0

    def push(self, wanted: Any, *arguments: object) -> int:
        """Calls a rule of forward mode with arguments and tangents; value and tangent wait for compiled code."""
        try:
            given = mapped(_own, arguments)
            count = len(given) // 2
            answer = self.rule(given[:count], given[count:])
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                raise self._misfit("value", "a pair (value, tangent)", _describe(answer))
            value = self.conform(answer[0], wanted[0], "value")
            return _wait((value, self._tangent(answer[1], wanted[1], value, "tangent")))
        except BaseException as error:
            keep(error)
            return 0

    def _tangent(self, tangent: Any, wanted: Any, value: Any, what: str) -> object:
        """A tangent as compiled code expects it: of the shape of the value, zeros for None and for integers."""
        if isinstance(wanted, tuple):
            parts = [None] * len(wanted) if tangent is None else tangent
            if not isinstance(parts, tuple | list) or len(parts) != len(wanted):
                raise self._misfit(what, f"a tuple of {len(wanted)}", _describe(tangent))
            rows = enumerate(zip(parts, wanted, value, strict=True))
            return tuple(self._tangent(*each, f"{what}[{i}]") for i, each in rows)
        shaped = wanted.of_shape(value.shape) if isinstance(wanted, Elements) else wanted
        if tangent is None or wanted.dtype.kind not in "fc":
            return shaped.zero()
        return self.conform(tangent, shaped, what)

    def backward(self, number: int, wanted: Sequence[object], cotangent: object) -> tuple[object, ...]:
        """The cotangents of the arguments for which something is wanted, and whether the pullback raised."""
        try:
            return *self._pulled(number, wanted, cotangent), False
        except BaseException as error:
            keep(error)
            return *(mapped(_zero, like) for like in wanted if like is not None), True

    def _pulled(self, number: int, wanted: Sequence[object], cotangent: object) -> tuple[Any, ...]:
        found = _alive[number].pullback(mapped(_own, cotangent))
        if not isinstance(found, tuple | list) or len(found) != len(wanted):
            expected = f"a tuple of {len(wanted)} cotangents, one for each argument"
            raise self._misfit("pullback", expected, _describe(found))
        pairs = enumerate(zip(found, wanted, strict=True))
        return tuple(
            self.conform(mapped(_zero, like) if each is None else each, like, f"cotangent of argument {i}")
            for i, (each, like) in pairs
            if like is not None
        )

    def conform(self, value: object, wanted: Any, what: str) -> object:
        """A value as compiled code expects it: a number of a type, or a new array of a dtype and a shape.

        Args:
            value: the result of the Python code.
            wanted: a `Number` or `Elements`; a tuple of these for a tuple.
            what: names it in errors.
        """
        if isinstance(wanted, tuple):
            if not isinstance(value, tuple | list) or len(value) != len(wanted):
                raise self._misfit(what, f"a tuple of {len(wanted)}", _describe(value))
            return tuple(self.conform(v, w, f"{what}[{i}]") for i, (v, w) in enumerate(zip(value, wanted, strict=True)))
        try:
            array = np.asarray(value)
        except Exception as error:
            raise self._misfit(what, str(wanted), _describe(value)) from error
        if not wanted.fits(array):
            raise self._misfit(what, str(wanted), _describe(value))
        return wanted.convert(array)

    def _misfit(self, what: str, expected: str, got: str) -> RuleError:
        return RuleError(
            f"the imported rule for {self.name} gives the wrong {what}: expected {expected}, got {got}",
            f"return {expected}",
            "compiled code continues with the results of the rule, and was compiled for these types",
            location_of(self.rule),
        )


class Number:
    """A number of a dtype is expected."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def __str__(self) -> str:
        return f"a {self.dtype}"

    def fits(self, array: Any) -> bool:
        """True if there is one number, and nothing of it is lost."""
        return array.size == 1 and _converts(array.dtype, self.dtype)

    def convert(self, array: Any) -> Any:
        """The number."""
        return array.astype(self.dtype).reshape(())[()].item()

    def zero(self) -> Any:
        """The number zero."""
        return 0


class Elements:
    """An array of a dtype is expected, of a number of dimensions or of a shape."""

    def __init__(self, dtype: Any, ndim: int, shape: tuple[int, ...] | None = None) -> None:
        self.dtype, self.ndim, self.shape = np.dtype(dtype), ndim, shape

    def __str__(self) -> str:
        size = f"{self.ndim} dimensions" if self.shape is None else f"shape {self.shape}"
        return f"an array of {self.dtype} with {size}"

    def of_shape(self, shape: tuple[int, ...]) -> Elements:
        """This expectation, limited to a shape."""
        return Elements(self.dtype, self.ndim, shape)

    def fits(self, array: Any) -> bool:
        """True if an array has these dimensions, and nothing of its elements is lost."""
        has_shape = array.ndim == self.ndim if self.shape is None else array.shape == self.shape
        return has_shape and _converts(array.dtype, self.dtype)

    def convert(self, array: object) -> Any:
        """A new array."""
        return np.array(array, self.dtype, order="C", copy=True, ndmin=self.ndim)

    def zero(self) -> Any:
        """An array of zeros."""
        return np.zeros(self.shape or (0,) * self.ndim, self.dtype)


def _converts(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """True if numbers may be converted: to another precision, never from complex to real."""
    return bool(np.can_cast(found, wanted, "same_kind"))


def _zero(wanted: Any) -> Any:
    return wanted.zero()


def _own(value: object) -> Any:
    """A value that closures may keep: arrays of compiled code are copied, since they change and are freed."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def _describe(value: object) -> str:
    """Description of a returned value, in a few words."""
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"a {type(value).__name__} of {getattr(value, 'dtype', '?')} with shape {tuple(shape)}"
    return f"a {type(value).__name__}"
