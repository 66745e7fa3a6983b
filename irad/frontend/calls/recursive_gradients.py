"""The gradient of a recursive function that is differentiated again: the order of the modes is exchanged.

Reverse mode of a recursive function keeps frames that point to the frames of deeper calls, which no analysis of the
next derivative can follow. Forward mode keeps nothing. So the gradient becomes a function with a rule, whose
derivatives are gradients of what forward mode makes of the function:

    g(x, k) = ∂f/∂x      tangent in the direction (ẋ, k̇):   ∂/∂x     [Df(x, k) · (ẋ, k̇)]
                         pullback of w, and of c for f:     ∂/∂(x, k) [Df(x, k) · (w, 0) + c f(x, k)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from llvmlite.ir import Value
from numba import njit
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.extending import overload

from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.custom import catalogue
from irad.frontend.custom.rules_from_partials import kept_value, zero_tangent
from irad.frontend.custom.rules_from_pure_functions import cotangent_functions, tangent_functions
from irad.frontend.derivation import Derivation
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import location_of
from irad.frontend.numba.target import typing_context
from irad.frontend.values import layouts
from irad.passes.mode import FORWARD_MODE
from irad.records import dataclass

_FILE: Final = "irad.grad"
_PROBLEM, _REMEDY, _REASON = (
    "a recursive function writes to its arguments, and its gradient is differentiated",
    "write to a copy that is made inside the function",
    "irad differentiates gradients of recursive functions in another order, which needs unchanged arguments",
)


def check_exchange(primal: Dispatcher, derivation: Derivation) -> None:
    """Checks that a derivative of a recursive function can be differentiated.

    Raises:
        UnsupportedError: it cannot.
    """
    task, arguments = derivation.task, derivation.arguments
    is_gradient = task.seed is Seed.ONE and not task.has_aux and all(role is Role.GRADIENT for _, role in task.roles)
    is_simple = len(arguments) == len(derivation.argument_types) and all(map(_is_simple, derivation.argument_types))
    # Only of such gradients can the derivatives be taken in the other order, at the same arguments.
    if is_gradient and is_simple and derivation.repeats:
        return
    name = primal.py_func.__qualname__
    raise UnsupportedError(
        f"a derivative of {name} is differentiated, and {name} is recursive",
        f"(a) irad.grad or irad.value_and_grad of {name}, with numbers and arrays as arguments, or "
        "(b) write it as a loop or (c) give it a rule, in irad.rules",
        "irad cannot follow what nested calls of a recursive function save; derivatives of gradients are computed in "
        "another order, which does not need it",
        location_of(primal.py_func),
    )


def _is_simple(kind: Any) -> bool:
    return isinstance(kind.dtype if isinstance(kind, types.Array) else kind, types.Number | types.Boolean)


def _holds_floats(kind: Any) -> bool:
    number = kind.dtype if isinstance(kind, types.Array) else kind
    return number in layouts.FLOATS or number in layouts.COMPLEX


class Exchanged:
    """The gradient of a recursive function, as a function with a rule.

    Args:
        primal: the recursive function.
        derivation: derivation of its gradient.
        make_call: an intrinsic that calls a derivative of a function, from that, the task, the names of its parameters,
            and whether tangents are passed.
    """

    def __init__(self, primal: Dispatcher, derivation: Derivation, make_call: Callable[..., Definition]) -> None:
        self._primal, self._make_call, self._kinds = primal, make_call, derivation.argument_types
        self._task = replace(derivation.task, is_primal=False)
        self._called: list[Definition] = []  # nothing else holds them
        self._names = [f"x{i}" for i in range(len(self._kinds))]
        self._inner = [position for position, _ in self._task.roles]
        self._floats = [i for i, kind in enumerate(self._kinds) if _holds_floats(kind)]
        first = self._call(primal, self._task, self._names)
        self._gradient = self._first_gradient(first, self._written(derivation))
        self._along = self._derivative_along()
        parts = tangent_functions(self._tangent_rule(), len(self._kinds), (), _FILE)
        parts |= cotangent_functions(*self._cotangent_rule(), len(self._kinds), (), _FILE)
        catalogue.declare_new(self._gradient, parts, repeats=True)

    def lower(self, emit: Emit, values: Sequence[Value]) -> Value:
        """Emits a call."""
        context = emit.context
        function = types.Dispatcher(self._gradient)
        signature = typing_context().resolve_function_type(function, self._kinds, {})
        implementation: Any = context.get_function(function, signature)
        for library in getattr(implementation, "libs", ()):
            context.active_code_library.add_linking_library(library)
        return implementation(emit.builder, values)

    def _written(self, derivation: Derivation) -> list[str]:
        """The arrays that the function may write to, as far as is known of a recursive one."""
        arrays = [(a.position, leaf) for a in derivation.arguments for leaf in a.leaves if leaf.is_array]
        return [self._names[i] for i, leaf in arrays if leaf.data_index in derivation.compiled.written]

    def _first_gradient(self, call: Any, written: Sequence[str]) -> Any:
        """The gradient, with a check that the function does not write to its arguments."""
        before = _items(f"{name}.copy()" for name in written)
        now = _items(written)
        scope = {"call": call, "checked": checked}
        if not written:
            return self._compiled("gradient", self._names, "call(x)", scope)
        inner = self._compiled("gradient", ["before", *self._names], f"checked(call(x), before, ({now}))", scope)
        return self._compiled("gradient", self._names, f"inner(({before}), {', '.join(self._names)})", {"inner": inner})

    def _compiled(self, name: str, parameters: Sequence[str], returned: str, scope: dict[str, Any]) -> Any:
        """A function that returns an expression, in which ``(x)`` are the arguments of the recursive function."""
        returned = returned.replace("(x)", f"({', '.join(self._names)})")
        source = f"def {name}({', '.join(parameters)}):\n    return {returned}\n"
        made = function_from(name, source, _FILE, {**scope, "zero_tangent": zero_tangent, "kept_value": kept_value})
        made.__qualname__ = self._primal.py_func.__qualname__
        return njit(error_model="numpy")(made)

    def _call(self, function: Any, task: Task, names: Sequence[str], *, has_tangents: bool = False) -> Any:
        called = self._make_call(function, task, names, has_targets=has_tangents, has_seed=False)
        self._called.append(called)
        return called.intrinsic

    def _derivative_along(self) -> Any:
        """The derivative of the function in a direction: tangents come before the arguments."""
        roles = tuple((i, Role.TANGENT) for i in self._floats)
        task = Task(roles, Seed.NONE, Returns.GRADIENT, options=self._task.options, mode=FORWARD_MODE)
        push = self._call(self._primal, task, self._names, has_tangents=True)
        given = [f"t{i}" for i in self._floats]
        copies = _items(f"kept_value({each})" for each in given)
        call = f"push({', '.join([*self._names, f'({copies})'])})"
        return self._compiled("along", [*given, *self._names], call, {"push": push})

    def _gradient_of(self, function: Any, leading: Sequence[str], positions: Sequence[int]) -> Any:
        """The gradient of a function of something and of the arguments, with respect to some of those."""
        roles = tuple((len(leading) + position, Role.GRADIENT) for position in positions)
        return self._call(function, Task(roles, options=self._task.options), [*leading, *self._names])

    def _tangent_rule(self) -> Any:
        """`(primals, tangents) -> (found, its tangent)`."""
        directions = [f"tangents[{i}]" for i in self._floats]
        given = ", ".join([*directions, *(f"primals[{i}]" for i in range(len(self._kinds)))])
        change = f"change({given})"
        change = f"{change}[0]" if self._task.single else change
        parts = {Returns.GRADIENT: change, Returns.VALUE_AND_GRADIENT: f"(along({given}), {change})"}
        parts[Returns.GRADIENT_AND_VALUE] = f"({change}, along({given}))"
        scope = {
            "gradient": self._gradient,
            "along": self._along,
            "change": self._gradient_of(self._along, [f"t{i}" for i in self._floats], self._inner),
        }
        returned = f"gradient(*primals), {parts[self._task.returns]}"
        return self._compiled("rule", ["primals", "tangents"], returned, scope)

    def _cotangent_rule(self) -> tuple[Any, Any]:
        """`(*primals) -> (found, kept)`, and `(kept, cotangent) -> cotangents`."""
        weights = [f"w{i}" for i in self._inner]
        tangents = [f"w{i}" if i in self._inner else f"zero_tangent(x{i})" for i in self._floats]
        along = f"along({', '.join([*tangents, *self._names])})"
        at, scope = _PLACES[self._task.returns], {"along": self._along, "primal": self._primal}
        leading = weights if at.value is None else ["c", *weights]
        total = along if at.value is None else f"{along} + c * primal(x)"
        pulled = self._compiled("pulled", [*leading, *self._names], total, scope)
        back = self._gradient_of(pulled, leading, self._floats)
        by = [at.gradient if self._task.single else f"{at.gradient}[{i}]" for i in range(len(self._inner))]
        given = [*([] if at.value is None else [at.value]), *by, *(f"kept[{i}]" for i in range(len(self._kinds)))]
        source = f"back({', '.join(given)})"
        numbers = iter(range(len(self._floats)))
        items = _items(f"found[{next(numbers)}]" if i in self._floats else "None" for i in range(len(self._kinds)))
        aligned = self._compiled("aligned", ["found"], f"({items})", {})
        forward = self._compiled(
            "rule", self._names, f"gradient(x), ({_items(self._names)})", {"gradient": self._gradient}
        )
        return forward, self._compiled(
            "rule", ["kept", "cotangent"], f"aligned({source})", {"aligned": aligned, "back": back}
        )


def checked(found: object, before: object, now: object) -> Any:
    """The result, if arrays are as they were before."""
    raise NotImplementedError("called in compiled code only")


@overload(checked)
def _checked_typed(found, before, now):  # type: ignore[no-untyped-def]
    checks = "".join(f"    check(before[{i}], now[{i}])\n" for i in range(len(now)))
    return function_from("checked", f"def checked(found, before, now):\n{checks}    return found\n", _FILE, _CHECK)


@njit
def _check(before, now):  # type: ignore[no-untyped-def]
    for index in np.ndindex(now.shape):
        # A NaN that is still there is not a change.
        if before[index] != now[index] and (before[index] == before[index] or now[index] == now[index]):
            raise SignatureError(_PROBLEM, _REMEDY, _REASON)


_CHECK: Final = {"check": _check}


@dataclass(frozen=True, slots=True)
class _Place:
    """Places of the parts of a result in its cotangent."""

    gradient: str
    value: str | None


_PLACES: Final = {
    Returns.GRADIENT: _Place("cotangent", None),
    Returns.VALUE_AND_GRADIENT: _Place("cotangent[1]", "cotangent[0]"),
    Returns.GRADIENT_AND_VALUE: _Place("cotangent[0]", "cotangent[1]"),
}


def _items(texts: Iterable[str]) -> str:
    """The items of a tuple as code, without parentheses."""
    return "".join(f"{text}, " for text in texts)
