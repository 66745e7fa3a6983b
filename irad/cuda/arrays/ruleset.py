"""Rules for functions of array libraries, and their arguments.

A rule is written once for NumPy and CuPy: the library is `ArrayCall.xp`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from irad.errors import RuleError

# Arguments of functions: arrays in tuples, lists and dictionaries.


def mapped(value: Any, change: Callable[[Any], Any], concerns: Callable[[Any], bool]) -> Any:
    """A value with its arrays replaced, also within tuples, lists and dictionaries."""
    if concerns(value):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(each, change, concerns) for key, each in value.items()}
    if isinstance(value, list):
        return [mapped(each, change, concerns) for each in value]
    if isinstance(value, tuple):
        items = [mapped(each, change, concerns) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def gathered(value: Any, concerns: Callable[[Any], bool]) -> list[Any]:
    """The operands that matter, in order."""
    found: list[Any] = []

    def keep(each: Any) -> Any:
        found.append(each)
        return each

    mapped(value, keep, concerns)
    return found


_MISSING: Final = object()
_SPECIAL: Final = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Reverse of a function.

    Attributes:
        name: of the function, as NumPy calls it, with its submodule: ``add``, ``linalg.inv``. Methods that differ from
            the function of their name, and those that there is no function for, are ``ndarray.sort``.
        reverse: ``reverse(call, cotangent, *args, **kwargs)`` has those parameters of the function that it can
            handle, and gives the cotangents of the leading ones: a tuple, or one. For a list of arrays it gives a list.
        arrays: number of leading parameters that may be arrays with a derivative; None for all.
        changes: position of the argument that the function changes in place.
        is_whole: ``reverse(call, cotangent)`` gives cotangents for `ArrayCall.leaves` instead.
        is_real: whether it holds for real numbers only.
        check: says what it does not hold for, before the function runs.
        refused: positions of arguments with respect to which no derivative is known.
    """

    name: str
    reverse: Callable[..., Any]
    arrays: int | None = 1
    changes: int | None = None
    is_whole: bool = False
    is_real: bool = False
    check: Callable[..., str | None] | None = None
    refused: frozenset[int] = frozenset()

    def objection(self, args: Sequence[Any], kwargs: dict[str, Any], is_active: Callable[[Any], bool]) -> str | None:
        """Reason why the rule does not hold for a call, if there is one.

        Args:
            args: arguments of the call.
            kwargs: of the call, without ``out``.
            is_active: whether an array has a derivative.
        """
        if self.check is not None and (found := self.check(*args, **kwargs)):
            return found
        if self.is_whole:
            return None
        try:
            bound = inspect.signature(self.reverse).bind(None, None, *args, **kwargs)
        except TypeError:
            return self._unknown(len(args), kwargs)
        bound.apply_defaults()
        given = list(bound.arguments.items())[2:]
        for name, value in given[self.arrays :] if self.arrays is not None else ():
            if gathered(value, is_active):
                return f"{name} is an array with a derivative"
        for position in sorted(self.refused):
            if position < len(args) and gathered(args[position], is_active):
                return f"argument {position} is an array with a derivative"
        return None

    def _unknown(self, count: int, kwargs: dict[str, Any]) -> str:
        """The reason why a call does not fit the parameters of `reverse`."""
        known = list(inspect.signature(self.reverse).parameters)[2:]
        unknown = [name for name in kwargs if name not in known]
        which = " and ".join(repr(name) for name in unknown) or f"a call with {count} arguments"
        return f"its rule does not know {which}"


@dataclass(eq=False)
class ArrayCall:
    """A call that is reversed, with memory as it was before it.

    Attributes:
        xp: the array library, NumPy or CuPy.
        function: the called function; it is not recorded.
        args, kwargs: its arguments, without ``out``.
        leaves: the arrays among them that have a derivative.
        changes: position of the argument that it changes in place.
        known: the result, if it is still in memory.
    """

    xp: Any
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    changes: int | None = None
    known: Any = None
    _index: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._index = {id(leaf): i for i, leaf in enumerate(self.leaves)}

    @cached_property
    def result(self) -> Any:
        """Result of the function, recomputed if it was overwritten."""
        return self.known if self.known is not None else self.xp.asarray(self.function(*self.args, **self.kwargs))

    @property
    def special(self) -> Any:
        """The special functions that belong to the library."""
        return importlib.import_module(_SPECIAL[self.xp.__name__])

    def index(self, value: Any) -> int | None:
        """Position of a value among the leaves; None if it is none of them."""
        return self._index.get(id(value))

    def is_active(self, value: Any) -> bool:
        """True if a value is one of the leaves."""
        return id(value) in self._index

    def times(self, cotangent: Any, partial: Any) -> Any:
        """The cotangent through a partial derivative: zero times anything is zero."""
        return self.xp.where(cotangent == 0, 0, cotangent * self.xp.conj(partial))

    def like(self, cotangent: Any, value: Any) -> Any:
        """Sums a cotangent over the axes along which a value was broadcast."""
        shape = self.xp.shape(value)
        if cotangent.shape == shape:
            return cotangent
        cotangent = cotangent.sum(axis=tuple(range(cotangent.ndim - len(shape))))
        stretched = tuple(i for i, length in enumerate(shape) if length == 1 and cotangent.shape[i] != 1)
        return cotangent.sum(axis=stretched, keepdims=True) if stretched else cotangent


def contributions(rule: Rule, call: ArrayCall, cotangent: Any) -> list[Any]:
    """The cotangents of the leaves of a call; None where there is none."""
    if rule.is_whole:
        return list(rule.reverse(call, cotangent))
    given = rule.reverse(call, cotangent, *call.args, **call.kwargs)
    bound = inspect.signature(rule.reverse).bind(call, cotangent, *call.args, **call.kwargs)
    bound.apply_defaults()  # cotangents are given for all leading parameters, whether or not the call names them
    values: list[Any] = []
    for name, value in list(bound.arguments.items())[2:]:
        is_variadic = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        values.extend(value if is_variadic else [value])
    found: list[Any] = [_MISSING] * len(call.leaves)
    _pair(call, values, given if isinstance(given, tuple) else (given,), found)
    for leaf, each in zip(call.leaves, found, strict=True):
        if each is _MISSING or (each is not None and call.xp.shape(each) != leaf.shape):
            gives = "none" if each is _MISSING else f"one of shape {call.xp.shape(each)}"
            raise RuleError(
                f"the rule for {rule.name} gives {gives} for an argument of shape {leaf.shape}",
                "return a tuple with the cotangent of each argument, of its shape, or None where there is none",
                "the cotangent of an argument holds a number for each of its elements",
            )
    return found


def _pair(call: ArrayCall, values: Any, given: Any, found: list[Any]) -> None:
    for value, cotangent in zip(values, given, strict=False):
        if (index := call.index(value)) is not None:
            found[index] = cotangent
        elif isinstance(value, list | tuple):
            _pair(call, value, [None] * len(value) if cotangent is None else cotangent, found)
