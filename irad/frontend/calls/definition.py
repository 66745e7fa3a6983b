"""Numba intrinsics that can be freed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core.base import BaseContext
from numba.core.errors import ForceLiteralArg
from numba.core.types import Type
from numba.core.typing import Signature
from numba.extending import intrinsic

from irad.frontend.calls.task import Task
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.records import dataclass

Returned = Callable[[Any, tuple[Any, ...]], Any]
"""From a function and the types of its arguments to the type of its result, for the target that is compiled for."""
Written = Callable[[tuple[Any, ...], Returned], Callable[..., Any]]
"""From the types of the arguments to code that Numba compiles."""


class Definition:
    """An intrinsic of fixed parameters, and its typing and lowering.

    Numba keeps every intrinsic forever, with the functions that type and lower it. Those refer to this object weakly,
    and the dispatcher of the wrapper that calls the intrinsic holds it: derivatives end with the user's function.

    Attributes:
        define: as below.
        intrinsic: for the globals of the wrapper. It works as long as this object lives.
        names: as below.
        meaning: meaning of a call, for compilers other than that of the CPU: a `DerivativeCall` or a `Written`; None
            where only the CPU can do it.

    Args:
        names: names of the parameters.
        define: from the tuple of their types the signature, and what lowers a call: ``lower(emit, signature, values)``.
        meaning: as above.
    """

    def __init__(
        self,
        names: Sequence[str],
        define: Callable[[tuple[Any, ...]], tuple[Any, Callable[..., Any]]],
        meaning: Any = None,
    ) -> None:
        self.names, self.define, self.meaning = tuple(names), define, meaning
        self.lowerings: list[Callable[..., Value]] = []
        self.renewed()

    def renewed(self) -> Callable[..., object]:
        """A new intrinsic that does the same, since Numba remembers the types of the old one."""
        listing = ", ".join(self.names)
        values = f"({listing},)" if listing else "()"
        source = f"def irad_call(irad_context, {listing}):\n    return irad_type()({values})\n"
        scope = {"irad_type": weakref.WeakMethod(self._type)}
        self.intrinsic: Callable[..., Any] = intrinsic(function_from("irad_call", source, "irad", scope))
        return self.intrinsic

    def _type(self, argument_types: tuple[Type, ...]) -> tuple[Signature, Callable[..., Value]]:
        try:
            signature, lower = self.define(argument_types)
        except ForceLiteralArg as request:  # of the function, whose arguments come first
            raise request.bind_fold_arguments(lambda args, kws: args) from None
        number = len(self.lowerings)
        self.lowerings.append(lower)
        myself = weakref.ref(self)

        def lower_weakly(context: BaseContext, builder: IRBuilder, signature: Signature, values: list[Value]) -> Value:
            definition = myself()
            assert definition is not None  # the dispatcher that is compiling holds it
            return definition.lowerings[number](Emit(context, builder), signature, values)

        return signature, lower_weakly


@dataclass(frozen=True, slots=True)
class DerivativeCall:
    """Specification of a call of an intrinsic of `dispatcher.intrinsic_call`.

    Attributes:
        primal: the dispatcher of the function.
        task: description of the call.
        count: the number of the function's parameters.
        has_targets: whether destinations are passed.
        has_seed: whether a seed is passed.
    """

    primal: Any
    task: Task
    count: int
    has_targets: bool
    has_seed: bool
