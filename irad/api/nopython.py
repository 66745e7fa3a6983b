"""``irad.grad(f)`` written inside compiled code, where ``f`` is a function that Numba knows at compile time.

Numba types the call as the derivative's dispatcher; nothing is left of it at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types
from numba.extending import overload

from irad.api.checkpoint import checkpoint, checkpoint_loop, checkpoint_while
from irad.api.forward import directions, jvp, pushforward, written_with_direction
from irad.api.grad import grad, value_and_grad, value_and_grad_into
from irad.api.jacobians.jacobian import jacobian, value_and_jacobian, value_and_jacobian_into
from irad.api.positions import chosen
from irad.api.second.hessians import hessian, hvp, hvp_and_grad
from irad.api.second.into import hessian_into, hvp_and_grad_into, hvp_into
from irad.api.selection import selected
from irad.api.series.jet import jet
from irad.api.series.taylor import taylor
from irad.api.shadow import shadow_like
from irad.api.sparse.hessian import sparse_hessian
from irad.api.sparse.jacobian import sparse_jacobian
from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.offered import (
    PlainFunctionType,
    check_launched_by_irad,
    give_model,
    offer,
    original_of,
    refuse_in_compiled_code,
    refuse_on_device,
)


def literal(value: Any, name: str) -> Any:
    """The constant behind an argument of the call: Numba's type of a literal, or the default itself.

    Raises:
        SignatureError: it is not known when Numba compiles.
    """
    if isinstance(value, types.Omitted):
        return value.value
    if value == types.none:
        return None
    if isinstance(value, types.Literal):
        return value.literal_value
    if isinstance(value, types.BaseTuple):
        return tuple(literal(item, name) for item in value.types)
    if isinstance(value, types.Type):
        raise SignatureError(
            f"{name} of a derivative inside compiled code is {described(value)} whose value is known only at run time",
            f"(a) write {name} as a literal or (b) create a derivative for each value outside: df = irad.grad(f, …)",
            "the derivative is created when the function is compiled",
            SourceLocation.here(),
        )
    return value


def function_behind(f: Any) -> Any:
    """The Python object that the type of a function belongs to."""
    if isinstance(f, types.Dispatcher):
        check_launched_by_irad(f.dispatcher.py_func.__qualname__)
        give_model(type(f))
        return original_of(f.dispatcher)
    if isinstance(f, PlainFunctionType):
        return f.function
    raise SignatureError(
        f"compiled code asks for the derivative of {described(f)}",
        "pass a function decorated with irad.jit or numba.njit",
        "compiled code can only use compiled functions",
        SourceLocation.here(),
    )


def _chosen(derive: Callable[..., Any]) -> Callable[..., Any]:
    """How Numba types a call of `grad` and the like."""

    def typed(f: Any, argnums: Any = 0, has_aux: Any = False, argnames: Any = None) -> Callable[..., Any]:
        numbers, aux = literal(argnums, "argnums"), literal(has_aux, "has_aux")
        derivative = derive(function_behind(f), numbers, aux, argnames=literal(argnames, "argnames"))
        return lambda f, argnums=0, has_aux=False, argnames=None: derivative

    return typed


def _jacobian(derive: Callable[..., Any]) -> Callable[..., Any]:
    """How Numba types a call of `jacobian` and the like."""

    def typed(
        f: Any,
        argnums: Any = 0,
        has_aux: Any = False,
        mode: Any = None,
        chunk: Any = None,
        outputs: Any = None,
        holomorphic: Any = None,
        argnames: Any = None,
    ) -> Any:
        derivative = derive(
            function_behind(f),
            literal(argnums, "argnums"),
            literal(has_aux, "has_aux"),
            mode=literal(mode, "mode"),
            chunk=literal(chunk, "chunk"),
            outputs=literal(outputs, "outputs"),
            holomorphic=literal(holomorphic, "holomorphic"),
            argnames=literal(argnames, "argnames"),
        )

        def jacobian(  # type: ignore[no-untyped-def]
            f, argnums=0, has_aux=False, mode=None, chunk=None, outputs=None, holomorphic=None, argnames=None
        ):
            return derivative

        return jacobian

    return typed


def _hessian(derive: Callable[..., Any]) -> Callable[..., Any]:
    """How Numba types a call of `hessian` and `hessian_into`."""

    def typed(
        f: Any, argnums: Any = 0, has_aux: Any = False, chunk: Any = None, argnames: Any = None
    ) -> Callable[..., Any]:
        numbers, aux, size = literal(argnums, "argnums"), literal(has_aux, "has_aux"), literal(chunk, "chunk")
        found = derive(function_behind(f), numbers, aux, chunk=size, argnames=literal(argnames, "argnames"))
        return lambda f, argnums=0, has_aux=False, chunk=None, argnames=None: found

    return typed


def _checkpoint(f: Any) -> Callable[..., Any]:
    found = checkpoint(function_behind(f))
    return lambda f: found


def _checkpoint_loop(step: Any, n: Any, snapshots: Any) -> Callable[..., Any]:
    if isinstance(n, types.Integer) and not isinstance(n, types.Literal):
        raise SignatureError(
            "compiled code makes a checkpointed loop with a number of steps that is known only at run time",
            "pass the number to the loop: irad.checkpoint_loop(step, None, snapshots)(n, state, …)",
            "the loop is created when the function is compiled",
            SourceLocation.here(),
        )
    steps = None if n == types.none else literal(n, "n")
    found = checkpoint_loop(function_behind(step), steps, literal(snapshots, "snapshots"))
    return lambda step, n, snapshots: found


def _checkpoint_while(condition: Any, step: Any, snapshots: Any) -> Callable[..., Any]:
    found = checkpoint_while(function_behind(condition), function_behind(step), literal(snapshots, "snapshots"))
    return lambda condition, step, snapshots: found


def _jvp(
    f: Any, args: Any, tangents: Any, has_aux: Any = False, argnums: Any = None, argnames: Any = None
) -> Callable[..., Any]:
    """How Numba types a call of `jvp`: which tangents are None is known then."""
    function, aux = function_behind(f), literal(has_aux, "has_aux")
    where = chosen(function, literal(argnums, "argnums"), literal(argnames, "argnames"), None)
    if where is not None:
        return _pushed(function, where, aux, selected(function, where).positions, "tangents")
    for name, value in (("args", args), ("tangents", tangents)):
        if not isinstance(value, types.BaseTuple):
            raise SignatureError(
                f"{name} of irad.jvp inside compiled code is {described(value)}",
                "write a tuple: irad.jvp(f, (x,), (x_tangent,))",
                "which arguments have a tangent is decided when the function is compiled",
                SourceLocation.here(),
            )
    given = directions(function, len(args.types), [None if each == types.none else each for each in tangents.types])
    return _pushed(function, given, aux, given, f"({''.join(f'tangents[{i}], ' for i in given)})")


def _pushed(
    function: Any, argnums: int | Sequence[int], has_aux: bool, positions: Sequence[int], direction: str
) -> Callable[..., Any]:
    """What a call of `jvp` does."""
    parameters = "f, args, tangents, has_aux=False, argnums=None, argnames=None"
    call = written_with_direction("args", positions, direction)
    body = f"def jvp({parameters}):\n    return push({call})\n"
    return function_from("jvp", body, "irad.jvp", {"push": pushforward(function, argnums, has_aux)})


def _taylor(f: Any, order: Any, argnums: Any = 0, has_aux: Any = False, argnames: Any = None) -> Callable[..., Any]:
    numbers, names = literal(argnums, "argnums"), literal(argnames, "argnames")
    found = taylor(function_behind(f), literal(order, "order"), numbers, literal(has_aux, "has_aux"), argnames=names)
    return lambda f, order, argnums=0, has_aux=False, argnames=None: found


refuse_in_compiled_code(sparse_jacobian, "(a) irad.jacobian, which returns an array or (b) call it from Python")
refuse_in_compiled_code(sparse_hessian, "(a) irad.hessian, which returns an array or (b) call it from Python")
refuse_in_compiled_code(
    shadow_like,
    "(a) np.zeros_like(x), where x is contiguous or (b) create the shadow in Python and pass it as an argument",
)

refuse_in_compiled_code(jet, "irad.taylor(f, order)(series, …), with a coefficient for each order in each series")

for function in (
    grad,
    value_and_grad,
    value_and_grad_into,
    pushforward,
    hvp,
    hvp_and_grad,
    hvp_into,
    hvp_and_grad_into,
):
    offer(function, _chosen(function))
for each in (jacobian, value_and_jacobian, value_and_jacobian_into):
    offer(each, _jacobian(each))
for made in (hessian, hessian_into):
    offer(made, _hessian(made))
offer(jvp, _jvp)
offer(taylor, _taylor)
for memory_saving in (checkpoint, checkpoint_loop, checkpoint_while):
    refuse_on_device(memory_saving, "call the function itself: the tape of a thread is in registers and local memory")
overload(checkpoint, strict=False)(_checkpoint)
overload(checkpoint_loop, prefer_literal=True, strict=False)(_checkpoint_loop)
overload(checkpoint_while, prefer_literal=True, strict=False)(_checkpoint_while)
