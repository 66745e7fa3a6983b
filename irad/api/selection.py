"""What a derivative is taken of, and with respect to what, as users give it: a function or method, argnums or argnames.

Methods are those of instances of a jitclass, bound to their instance: ``irad.grad(model.energy)(x)``. What is
differentiated is the class's function, which takes the instance as its first argument. The instance is kept alive, as
by Python's bound methods, and is constant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from numba.core import types

from irad.api.functions import primal_of
from irad.api.positions import check_positions, chosen


@dataclass(frozen=True)
class BoundDerivative:
    """A derivative of a method, called without the instance.

    Attributes:
        derivative: that of the class's function.
        instance: what the method is bound to.
        leading: how many arguments precede those of the method.
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
    """The dispatcher of what a user wants to differentiate, and what precedes its arguments: the instance of a method.

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
    """A function, and with respect to what it is differentiated.

    Attributes:
        primal: its dispatcher.
        positions: of the arguments; those of a method count the instance.
        single: whether one is named by itself, and not in a tuple.
        leading: the instance of a method, in a tuple; () for a function.
    """

    primal: Any
    positions: tuple[int, ...]
    single: bool
    leading: tuple[Any, ...]

    @property
    def argnums(self) -> int | tuple[int, ...]:
        """The same as the ``argnums`` of `primal`."""
        return self.positions[0] if self.single else self.positions

    @property
    def own_positions(self) -> tuple[int, ...]:
        """`positions` without the instance of a method."""
        return tuple(position - len(self.leading) for position in self.positions)

    def bound(self, derivative: Any, *, leading: int = 0) -> Any:
        """A derivative of `primal` as one of what the user gave.

        Args:
            derivative: as above.
            leading: how many arguments precede those of the function.
        """
        return BoundDerivative(derivative, self.leading[0], leading) if self.leading else derivative


def selected(f: Any, argnums: int | Sequence[int], argnames: str | Sequence[str] | None = None) -> Selection:
    """What a user wants to be differentiated.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no such arguments.
    """
    primal, leading = callee_of(f)
    wanted = chosen(f, argnums, argnames)
    counted = SimpleNamespace(py_func=f) if leading else primal  # a method's own arguments, without the instance
    positions = tuple(position + len(leading) for position in check_positions(counted, wanted))
    return Selection(primal, positions, not isinstance(wanted, Sequence), leading)
