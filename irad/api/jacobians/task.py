"""The request for a Jacobian, free of types: all that a process needs that finds its code on disk."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from numba import njit
from numba.core.registry import CPUDispatcher

from irad.api.functions import remembered
from irad.api.jacobians.structure import OUT
from irad.api.makers import MAKERS
from irad.api.selection import check_positions
from irad.frontend.calls.dispatcher import parameter_names
from irad.frontend.calls.task import Returns
from irad.frontend.generated import function_from
from irad.options import Options

Mode: TypeAlias = Literal["forward", "reverse"]


def call_of(function: Callable[..., Any]) -> str:
    """The parameters of a function as they are passed on: `x, weight, *more`."""
    parameters = inspect.signature(function).parameters.values()
    return ", ".join(f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters)


def returning(primal: CPUDispatcher, outputs: int | Sequence[int], has_aux: bool = False) -> Any:
    """A function that does the same and returns some of its arguments; with ``has_aux``, its former result as well."""
    positions, single = check_positions(primal, outputs), not isinstance(outputs, Sequence)
    function = primal.py_func
    names = parameter_names(function)

    def build() -> Any:
        call = call_of(function)
        given = names[positions[0]] if single else f"({''.join(names[p] + ', ' for p in positions)})"
        given += ", irad_aux" * has_aux
        source = f"def {function.__name__}({call}):\n    irad_aux = irad_f({call})\n    return {given}\n"
        made: Any = function_from(
            function.__name__, source, f"irad.jacobian of {function.__qualname__}", {"irad_f": primal}
        )
        made.__qualname__, made.__defaults__, made.__wrapped__ = function.__qualname__, function.__defaults__, function
        made.__module__ = function.__module__
        return njit(nogil=bool(primal.targetoptions.get("nogil")))(made)

    return remembered(primal, ("returning", positions, single, has_aux), build)


@dataclass(frozen=True, slots=True)
class JacobianTask:
    """Function, arguments and form of a Jacobian, free of types and modes."""

    key: str
    argnums: tuple[int, ...]
    single: bool
    chunk: int | None
    holomorphic: bool | None
    has_aux: bool
    options: Options
    outputs: tuple[int, ...] = ()
    shows_zeros: bool = False

    @property
    def returns(self) -> Returns:
        """Parts of the result that are returned."""
        returns = MAKERS[self.key].returns
        assert returns is not None
        return returns

    @property
    def leading(self) -> list[str]:
        """Parameters of the code before those of the function: the array that the Jacobian is written to."""
        return [OUT] * MAKERS[self.key].leading
