"""Methods of instances of a jitclass, bound to their instance: ``irad.grad(model.energy)(x)``.

What is differentiated is the class's function, which takes the instance as its first argument. The instance is kept
alive, as by Python's bound methods, and is constant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from numba.core import types

from irad.api.functions import check_positions


@dataclass(frozen=True)
class BoundMethod:
    """A method and its instance.

    Attributes:
        method: as Python has it.
        function: the dispatcher of the class's function.
        instance: what it is bound to.
    """

    method: Any
    function: Any
    instance: Any

    def positions(self, argnums: int | Sequence[int]) -> int | tuple[int, ...]:
        """The positions in the class's function of arguments that are counted without the instance.

        Raises:
            SignatureError: the method has no such arguments.
        """
        found = tuple(p + 1 for p in check_positions(SimpleNamespace(py_func=self.method), argnums))
        return found if isinstance(argnums, Sequence) else found[0]


def bound_method(f: Any) -> BoundMethod | None:
    """The method of a jitclass instance behind what a user wants to differentiate; None for anything else."""
    if not inspect.ismethod(f):
        return None
    kind = getattr(type(f.__self__), "_numba_type_", None) or getattr(f.__self__, "_numba_type_", None)
    if not isinstance(kind, types.ClassInstanceType):
        return None
    function = kind.class_type.jit_methods.get(f.__name__)
    return None if function is None else BoundMethod(f, function, f.__self__)


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
