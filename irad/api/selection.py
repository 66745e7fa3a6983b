"""Selection of the function and arguments of a derivative: a function or method, argnums or argnames.

Methods are those of instances of a jitclass, bound to their instance: ``irad.grad(model.energy)(x)``. What is
differentiated is the class's function, which takes the instance as its first argument. The instance is kept alive, as
by Python's bound methods, and is constant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from types import SimpleNamespace
from typing import Any, TypeVar

from numba.core import types
from numba.core.registry import CPUDispatcher

from irad.api.functions import primal_of
from irad.errors import SignatureError
from irad.frontend.numba.messages import location_of

# Positions of arguments, or names of parameters.


def check_positions(primal: Any, argnums: int | Sequence[int]) -> tuple[int, ...]:
    """The positions that ``argnums`` names, counted from 0.

    Raises:
        SignatureError: a position that the function does not have, or has twice.
    """
    given = tuple(argnums) if isinstance(argnums, Sequence) and not isinstance(argnums, str) else (argnums,)
    if not given:
        raise SignatureError(
            "argnums is empty",
            "name at least one position, for instance argnums=0",
            "a gradient is taken with respect to at least one argument",
            location_of(primal.py_func),
        )
    _refuse_values(primal, argnums, given)
    found = tuple(_position(primal, number) for number in given)
    if len(set(found)) < len(found):
        raise SignatureError(
            f"argnums={argnums} names an argument twice",
            "name each argument once; negative positions count from the end",
            "the result has one gradient for each argument named",
            location_of(primal.py_func),
        )
    return found


_Argnums = TypeVar("_Argnums", bound="int | Sequence[int] | None")


def chosen(
    f: Any, argnums: _Argnums, argnames: str | Sequence[str] | None, default: object = 0
) -> _Argnums | int | tuple[int, ...]:
    """Positions that are differentiated: ``argnums``, or the positions that ``argnames`` names.

    Args:
        f: the function, which may be a bound method.
        argnums: as the user gave it.
        argnames: a name or several; None where there are no names.
        default: ``argnums`` where the user gave none.

    Raises:
        SignatureError: the function has no such parameters, or both are given.
    """
    if argnames is None:
        return argnums
    function = f if inspect.ismethod(f) else primal_of(f).py_func
    if not isinstance(argnames, str | Sequence):
        raise SignatureError(
            f"argnames={argnames!r} is neither a name nor a tuple of names",
            f"use {', '.join(map(repr, inspect.signature(function).parameters))}; argnums takes positions",
            "the results come in the order of the names",
            location_of(function),
        )
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    parameters = inspect.signature(function).parameters
    known = [name for name, each in parameters.items() if each.kind is not each.VAR_POSITIONAL]
    unknown = [name for name in names if name not in known]
    if argnums == default and not unknown and len(set(names)) == len(names) > 0:
        positions = tuple(map(known.index, names))
        return positions[0] if isinstance(argnames, str) else positions
    listed = ", ".join(known) or "none"
    if argnums != default:
        problem, remedy = f"argnums={argnums} and argnames={argnames!r} are both given", "give one of them"
    elif unknown:
        problem = f"argnames names {unknown[0]!r}, but {function.__qualname__} has no such parameter"
        remedy = f"use its names: {listed}" + (", and argnums for star arguments" if unknown[0] in parameters else "")
    else:
        problem, remedy = f"argnames={argnames!r} is empty or names a parameter twice", f"name some of {listed}, once"
    reason = "argnames says by name what argnums says by position: with respect to what is differentiated"
    raise SignatureError(problem, remedy, reason, location_of(function))


def _refuse_values(primal: Any, argnums: Any, given: tuple[object, ...]) -> None:
    """Refuses names, and values that cannot be meant as argnums."""
    function = primal.py_func
    if all(isinstance(each, str) for each in given):
        unknown = [name for name in given if name not in inspect.signature(function).parameters]
        names = repr(argnums) if isinstance(argnums, str) else repr(tuple(argnums))
        by_name = f"argnames={names}" if not unknown else f"argnames with the names of {function.__qualname__}"
        raise SignatureError(
            f"argnums={argnums!r} is a name" if isinstance(argnums, str) else f"argnums={argnums!r} holds names",
            f"(a) use {by_name} or (b) {_positions_of(primal)}",
            "argnums gives the positions of arguments in the call, argnames their names",
            location_of(function),
        )
    if not all(isinstance(each, int | str) or hasattr(each, "__index__") for each in given) or _is_array(argnums):
        name, shown = function.__name__, ", ".join(inspect.signature(function).parameters)
        name = "f" if name == "<lambda>" else name
        what = " ".join(repr(argnums).split())
        what = what if len(what) <= 40 else f"a value of type {type(argnums).__name__}"
        raise SignatureError(
            f"argnums is {what}, which is neither an int nor a tuple of ints",
            f"(a) if it is an argument of {name}, call the derivative with it: irad.grad({name})({shown}), and so for "
            f"irad's other functions, or (b) {_positions_of(primal)}",
            "irad.grad(f) returns the derivative, a function; argnums gives the positions of arguments in its calls",
            location_of(function),
        )


def _is_array(value: Any) -> bool:
    return not isinstance(value, int | str | Sequence) and getattr(value, "shape", ()) != ()


def _position(primal: CPUDispatcher, number: Any) -> int:
    name = primal.py_func.__qualname__
    try:
        position = index(_not_bool(number))
    except TypeError:
        raise SignatureError(
            f"argnums={number!r} is neither an int nor a tuple of ints",
            _positions_of(primal),
            "argnums gives the positions of arguments in the call",
            location_of(primal.py_func),
        ) from None
    parameters = list(inspect.signature(primal.py_func).parameters.values())
    has_star = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = len(parameters)
    in_range = (has_star and position >= 0) or -count <= position < count
    if not in_range or (has_star and position < 0):
        raise SignatureError(
            f"argnums names argument {number}, but {name} has {count} parameter{'s' * (count != 1)}",
            _positions_of(primal),
            "positions count from 0"
            + (
                ", and cannot count from the end because the last parameter takes any number of arguments"
                if has_star
                else ""
            ),
            location_of(primal.py_func),
        )
    return position % count if position < 0 else position


def _not_bool(number: Any) -> Any:
    if isinstance(number, bool):
        raise TypeError
    return number


def _positions_of(primal: CPUDispatcher) -> str:
    names = enumerate(inspect.signature(primal.py_func).parameters)
    listed = ", ".join(f"{position} for {name}" for position, name in names)
    return f"use {listed}" if listed else "give the function a parameter"


# A function, or a method with its instance.


@dataclass(frozen=True)
class BoundDerivative:
    """A derivative of a method, called without the instance.

    Attributes:
        derivative: that of the class's function.
        instance: the object that the method is bound to.
        leading: number of arguments before those of the method.
    """

    derivative: Callable[..., Any]
    instance: Any
    leading: int = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at these arguments of the method."""
        return self.derivative(*args[: self.leading], self.instance, *args[self.leading :], **kwargs)

    def __repr__(self) -> str:
        return f"{self.derivative!r} of a {type(self.instance).__name__}"


def callee_of(f: Any) -> tuple[Any, tuple[Any, ...]]:
    """The dispatcher of a user's function, and the arguments in front of the user's: the instance of a method.

    Raises:
        SignatureError: it is not a function that Numba compiles.
    """
    if inspect.ismethod(f):
        kind = getattr(type(f.__self__), "_numba_type_", None) or getattr(f.__self__, "_numba_type_", None)
        if isinstance(kind, types.ClassInstanceType) and f.__name__ in kind.class_type.jit_methods:
            return kind.class_type.jit_methods[f.__name__], (f.__self__,)
    return primal_of(f), ()


@dataclass(frozen=True)
class Selection:
    """A function, and the arguments with respect to which it is differentiated.

    Attributes:
        primal: its dispatcher.
        positions: of the arguments; those of a method count the instance.
        single: whether one is named by itself, and not in a tuple.
        leading: the instance of a method, in a tuple; () for a function.
    """

    primal: CPUDispatcher
    positions: tuple[int, ...]
    single: bool
    leading: tuple[Any, ...]

    @property
    def argnums(self) -> int | tuple[int, ...]:
        """The selected positions as ``argnums`` of `primal`: a number, or a tuple of several."""
        return self.positions[0] if self.single else self.positions

    @property
    def own_positions(self) -> tuple[int, ...]:
        """`positions` without the instance of a method."""
        return tuple(position - len(self.leading) for position in self.positions)

    def bound(self, derivative: Any, *, leading: int = 0) -> Any:
        """A derivative of `primal` as one of the user's function, which may be a method.

        Args:
            derivative: as above.
            leading: number of arguments before those of the function.
        """
        return BoundDerivative(derivative, self.leading[0], leading) if self.leading else derivative


def selected_if_any(
    f: Any, argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None
) -> Selection | None:
    """Like `selected`, but None if the user gave neither argnums nor argnames and means all that have a derivative."""
    wanted = chosen(f, argnums, argnames, None)
    return None if wanted is None else selected(f, wanted)


def selected(f: Any, argnums: int | Sequence[int], argnames: str | Sequence[str] | None = None) -> Selection:
    """The arguments that a user selects for differentiation.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no such arguments.
    """
    primal, leading = callee_of(f)
    wanted = chosen(f, argnums, argnames)
    counted = SimpleNamespace(py_func=f) if leading else primal  # a method's own arguments, without the instance
    positions = tuple(position + len(leading) for position in check_positions(counted, wanted))
    return Selection(primal, positions, not isinstance(wanted, Sequence), leading)
