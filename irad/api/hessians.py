"""Second derivatives: `hessian`, its products with vectors, and the forms that write to arrays of the caller.

There is no machinery here: a Hessian is the Jacobian of a gradient, a product its pushforward: forward mode over
reverse mode. What is written to an array of the caller is the tangent of the array that `irad.value_and_grad_into`
writes the gradient to, so nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from numba.core import types
from numba.core.types import Type

from irad.api.functions import remembered
from irad.api.jacobians.jacobian import matrix
from irad.api.jacobians.task import call_of
from irad.api.jit import CompiledFunction, P
from irad.api.makers import MakerCall, derivative_by_code, directional, made, maker
from irad.api.selection import selected
from irad.api.specialised import Written, specialised
from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.definition import Definition, Returned
from irad.frontend.calls.dispatcher import INTERNAL, DerivativeDispatcher, parameter_names, speculating, tasks_of
from irad.frontend.generated import function_from
from irad.frontend.memory.arrays import shadow_like
from irad.frontend.numba.messages import described, location_of
from irad.frontend.values import tree
from irad.frontend.values.tree import content_of
from irad.options import Options


@maker
def hessian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk: int | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, Any]:
    """All second derivatives of a function that returns a float.

    The result takes the arguments of ``f``. For an array ``argnums`` it is an array of the shape ``(*argument.shape,
    *argument.shape)``, for a number a number. For several arguments it is a tuple with a row of blocks for each, which
    holds the mixed derivatives. It is the Jacobian of the gradient, of which ``chunk`` columns are computed at a time.
    If a few products with vectors are enough, `irad.hvp` is much cheaper.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated; the result is ``(hessian, aux)``.
        chunk: number of columns that each run computes; 8 by default.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable, for Python and compiled code, that returns the Hessian in new memory.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position; in a call: the
            argument has no derivative, or ``f`` does not return a float.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> irad.hessian(product)(np.array([3.0, 5.0]))
        array([[ 0., 10.],
               [10.,  6.]])
    """
    return made("hessian", f, argnums, argnames, has_aux, options, _matrix_of_gradient, chunk)


@maker
def hvp(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[..., Any]:
    """The product of the Hessian of a function that returns a float and a vector.

    The result takes the arguments of ``f``, with the vector after the last of those that are differentiated: ``(x,
    vector, *rest)``, the order in which ``scipy.optimize.minimize`` calls ``hessp``; ``(x, y, (v, w), *rest)`` for
    ``argnums=(0, 1)``. The vector has the structure of the argument ``argnums``, as in `irad.pushforward`; so has the
    product. For several arguments, both are tuples with an entry for each, and the product includes mixed derivatives.
    It costs a few gradients, whatever the size of the Hessian.

    If ``f`` writes to an array among ``argnums``, that array is overwritten, as by ``f``; the vector never is.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated; the result is ``(product, aux)``.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(x, vector, *rest) -> product``, for Python and compiled code; the product is in new memory.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position; in a call: the
            vector does not have the structure of the argument.

    Source:
        Pearlmutter: Fast exact multiplication by the Hessian, Neural Computation 6 (1994) 147-160.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> irad.hvp(product)(np.array([3.0, 5.0]), np.array([1.0, 0.0]))
        array([ 0., 10.])
    """
    return made("hvp", f, argnums, argnames, has_aux, options)


@maker
def hvp_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[..., Any]:
    """The product of the Hessian and a vector, as `irad.hvp` computes it, together with the gradient.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; the result is ``(product, gradient, aux)``.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(x, vector, *rest) -> (product, gradient)``, for Python and compiled code; both are in new memory.

    Raises:
        SignatureError: as in `irad.hvp`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def cube(x):
        ...     return x**3
        >>> irad.hvp_and_grad(cube)(2.0, 1.0)
        (12.0, 12.0)
    """
    return made("hvp_and_grad", f, argnums, argnames, has_aux, options)


def _matrix_of_gradient(call: MakerCall, chunk: int | None) -> Any:
    """The transform of Hessians: the Jacobian of the gradient."""

    def make(gradient: Any, options: Options, *tellers: Any) -> Any:
        wanted = selected(gradient, call.wanted.argnums)
        of_gradient = replace(call, f=gradient, wanted=wanted, options=options, transform=matrix)
        return matrix(of_gradient, "forward", chunk, None, None, False, *tellers)

    return call.of_gradient(make)


# Second derivatives that are written to arrays of the caller.


@maker
def hessian_into(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk: int | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The gradient of a function that returns a float; its Hessian is written to arrays that are passed in.

    The result is called as ``(out, *args)``. ``out`` has the structure of the Hessian, with an array of one element in
    place of a number. Its arrays must not share memory with the arguments or with each other; their previous contents
    do not matter.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        chunk: number of columns that each run computes; 8 by default.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(out, *args) -> gradient``, for Python and compiled code; with ``has_aux`` it returns
        ``(gradient, aux)``.

    Raises:
        SignatureError: as in `irad.hessian`; in a call: ``out`` does not have the structure of the Hessian.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> matrix = np.empty((2, 2))
        >>> irad.hessian_into(product)(matrix, np.array([3.0, 5.0]))
        array([25., 30.])
        >>> matrix
        array([[ 0., 10.],
               [10.,  6.]])
    """
    return made("hessian_into", f, argnums, argnames, has_aux, options, _matrix_of_gradient, chunk)


@maker
def hvp_into(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function; the product of its Hessian and a vector is written to arrays that are passed in.

    The result is called as ``(out, x, vector, *rest)``, with the vector where `irad.hvp` takes it. ``out`` has the
    structure of the argument, as in `irad.value_and_grad_into`, and must not share memory with the vector or the
    arguments.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(out, x, vector, *rest) -> value``, for Python and compiled code; with ``has_aux`` it returns
        ``(value, aux)``.

    Raises:
        SignatureError: as in `irad.hvp`; in a call: ``out`` does not have the structure of the argument.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> out = np.empty(2)
        >>> irad.hvp_into(product)(out, np.array([3.0, 5.0]), np.array([1.0, 0.0]))
        75.0
        >>> out
        array([ 0., 10.])
    """
    return made("hvp_into", f, argnums, argnames, has_aux, options, _products)


@maker
def hvp_and_grad_into(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function; the product of its Hessian and a vector, and its gradient, are written to arrays.

    The result is called as ``(out, x, vector, *rest)``, with the vector where `irad.hvp` takes it. ``out`` is a pair of
    destinations, for the product and for the gradient, each as in `irad.value_and_grad_into`. Nothing is allocated for
    either.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``((product, gradient), x, vector, *rest) -> value``, for Python and compiled code; with ``has_aux``
        it returns ``(value, aux)``.

    Raises:
        SignatureError: as in `irad.hvp`; in a call: ``out`` is not such a pair.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> out = np.empty(2), np.empty(2)
        >>> irad.hvp_and_grad_into(product)(out, np.array([3.0, 5.0]), np.array([1.0, 0.0]))
        75.0
        >>> out
        (array([ 0., 10.]), array([25., 30.]))
    """
    return made("hvp_and_grad_into", f, argnums, argnames, has_aux, options, _products)


def _products(call: MakerCall) -> Any:
    """The transform of products that are written to the first argument."""

    def make(gradient: Any, options: Options, *tellers: Any) -> DerivativeDispatcher:
        push = _pushforward_of_gradient(gradient, call.wanted.positions, call.has_aux, options)
        return _products_into(replace(call, options=options), push, *tellers)

    asked = call.key, call.wanted.argnums, call.has_aux, call.options
    return remembered(call.wanted.primal, asked, lambda: call.of_gradient(make))


def _products_into(
    call: MakerCall,
    push: DerivativeDispatcher,
    plain: Any = None,
    shows_zeros: Callable[[bool], DerivativeDispatcher] | None = None,
) -> DerivativeDispatcher:
    """The callable that writes products to its first argument.

    Args:
        call: the call of the maker.
        push: the pushforward of the gradient.
        plain: as `directional` takes it.
        shows_zeros: as `DerivativeDispatcher` takes it.
    """
    key, wanted, options = call.key, call.wanted, call.options
    primal, certain = wanted.primal, None
    function = primal.py_func
    count = None if wanted.single else len(wanted.positions)
    parameters = [f"{INTERNAL}out", f"{INTERNAL}vector", *parameter_names(function)]

    def written(push: DerivativeDispatcher) -> Definition:
        def write(given: tuple[Type, ...]) -> Written:
            _check_destination(key, given[0], function)
            code = _code(key, given[0], count, call.has_aux, function)
            return code, {"irad_push": push, "irad_shadow_like": shadow_like}

        def on_device(given: tuple[Type, ...], _: Returned) -> Any:
            if key == "hvp_into":
                raise UnsupportedError(
                    f"device code calls irad.hvp_into of {function.__qualname__}",
                    "irad.hvp_and_grad_into(f)((product, gradient), x, vector)",
                    "the product is computed together with the gradient, for which device code cannot allocate memory",
                    location_of(function),
                )
            body, scope = write(given)
            return function_from(key, f"def {key}({', '.join(parameters)}):\n{body}", f"irad.{key}", scope)

        return specialised(key, parameters, write, on_device)

    called = written(push)
    if plain is not None:
        certain = partial(_products_into, call, push, None, shows_zeros)
        arithmetic = replace(options, zero_times_infinity="nan")
        pushed = _pushforward_of_gradient(plain, wanted.positions, call.has_aux, arithmetic)

        def repeats(given: tuple[Type, ...]) -> bool:
            from irad.frontend.derivation import derivation_of  # the engine: a product from disk does without

            out, _, *arguments = given
            gradient = out.types[1] if key == "hvp_and_grad_into" and isinstance(out, types.BaseTuple) else out
            assert pushed.task is not None
            found = derivation_of(plain, (gradient, *arguments), pushed.task)
            return found.may_have_zeros_that_are_not_strong

        called = speculating(parameters, written(pushed), called, repeats, None, into=0)
    return derivative_by_code(
        DerivativeDispatcher,
        call.row,
        primal,
        called,
        call.rebuild(),
        wanted.positions,
        options,
        certain=certain,
        shows_zeros=shows_zeros,
        variant=tasks_of(push),
    )


def _pushforward_of_gradient(
    gradient: Any, positions: tuple[int, ...], has_aux: bool, options: Options
) -> DerivativeDispatcher:
    """The pushforward of the function that writes the gradient to its first argument, whose tangent is the product.

    It takes tangents first, and leaves those of the arguments of the function as they are.
    """
    places = tuple(1 + position for position in positions)
    call = MakerCall("pushforward of a gradient", gradient, selected(gradient, (0, *places)), has_aux, options)
    return directional(call, (_pushforward_of_gradient, (gradient, positions, has_aux, options)), kept=places)


def _check_destination(kind: str, out: Any, function: Callable[..., Any]) -> None:
    """Checks that products can be written to ``out``.

    Raises:
        SignatureError: there is something in it that is not an array.
    """
    for leaf in tree.leaves(content_of(out)):
        if leaf.kind.is_reference or leaf.kind is tree.LeafKind.RECORD:
            raise SignatureError(
                f"irad.{kind} of {function.__qualname__} is to write to {described(leaf.type)}",
                "irad.hvp or irad.hvp_and_grad, which return the product",
                "the product is written as the tangent of the memory for the gradient, which must be an array",
                location_of(function),
            )


def _code(kind: str, out: Any, count: int | None, has_aux: bool, function: Callable[..., Any]) -> str:
    """The body; ``count`` is that of the vectors in a tuple."""
    product, gradient = "irad_out[0]", "irad_out[1]"
    if kind == "hvp_into":
        product, gradient = "irad_out", _like(out, "irad_out")
    vectors = "irad_vector, " if count is None else "".join(f"irad_vector[{i}], " for i in range(count))
    aux = ", irad_aux" * has_aux
    return (
        f"    irad_value, irad_slope{aux} = irad_push(({product}, {vectors}), {gradient}, {call_of(function)})\n"
        f"    return irad_value{aux}\n"
    )


def _like(out: Any, at: str) -> str:
    """Memory for the gradient, if only the product is wanted."""
    if isinstance(out, types.BaseTuple):
        return f"({''.join(_like(part, f'{at}[{i}]') + ', ' for i, part in enumerate(out.types))})"
    return f"irad_shadow_like({at})" if isinstance(out, types.Array) else at
