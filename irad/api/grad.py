"""`grad`, `value_and_grad` and `value_and_grad_into`: gradients of functions that return a float.

The results are Numba dispatchers: they are compiled lazily for each combination of argument types, and can be called
from Python and from compiled code, where they are inlined. ``irad.grad(f)`` itself may be written in compiled code
(`irad.api.nopython`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, overload

from irad.api.jit import A, CompiledFunction, P, R
from irad.api.makers import made_as_usual, maker
from irad.options import Options


@overload
def grad(
    f: Callable[Concatenate[A, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    *,
    argnames: None = None,
    options: Options | None = None,
) -> CompiledFunction[Concatenate[A, P], A]: ...


@overload
def grad(
    f: Callable[P, tuple[Any, R]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, tuple[Any, R]]: ...


@overload
def grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, Any]: ...


@maker
def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The gradient of a function that returns a float.

    The result takes the arguments of ``f`` and returns the derivative with respect to the argument ``argnums``, with
    the structure and dtype of that argument: a number for a number, an array for an array, and in the same way for
    records, lists, dictionaries, tuples, named tuples and instances of jitclasses. With respect to a complex number it
    is d/dRe + i·d/dIm. Parts of a tuple without a derivative (an int, a string, None) become None.

    All other arguments are constants. Arrays, lists and instances among them may be workspace, in which ``f`` stores
    values and reads them back: these keep their derivatives.

    Args:
        f: a function compiled by ``numba.njit`` or `irad.jit`; a plain Python function, which is compiled in the same
            way; or a method of a jitclass instance, whose derivative keeps the instance and treats it as a constant.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated; the result is ``(gradient, aux)``.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable, for Python and compiled code. It returns the gradient in new memory; for a tuple of ``argnums`` or
        ``argnames``, a tuple of gradients.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position; in a call: the
            argument has no derivative, or ``f`` does not return a float.
        UnsupportedError: in the first call with such types: irad cannot differentiate something in ``f``.

    If arrays overlap and the function writes to one of them, their gradients overlap in the same way: each element of
    memory has one derivative. If nothing is written, each argument has its own partial derivative.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def area(width, height):
        ...     return width * height
        >>> irad.grad(area)(3.0, 4.0)
        4.0
        >>> irad.grad(area, argnums=(0, 1))(3.0, 4.0)
        (4.0, 3.0)
        >>> irad.grad(area, argnames="height")(3.0, 4.0)
        3.0
    """
    return made_as_usual("grad", f, argnums, argnames, has_aux, options)


@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    *,
    argnames: None = None,
    options: Options | None = None,
) -> CompiledFunction[Concatenate[A, P], tuple[R, A]]: ...


@overload
def value_and_grad(
    f: Callable[P, tuple[Any, R]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, tuple[tuple[Any, R], Any]]: ...


@overload
def value_and_grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, Any]: ...


@maker
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value and the gradient of a function that returns a float, in one run.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable, for Python and compiled code. It returns ``(value, gradient)``, or ``((value, aux), gradient)`` with
        ``has_aux``; the gradient is that of `irad.grad`.

    Raises:
        SignatureError: as in `irad.grad`.
        UnsupportedError: as in `irad.grad`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def area(width, height):
        ...     return width * height
        >>> irad.value_and_grad(area)(3.0, 4.0)
        (12.0, 4.0)
    """
    return made_as_usual("value_and_grad", f, argnums, argnames, has_aux, options)


@maker
def value_and_grad_into(
    f: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[Concatenate[Any, P], R]:
    """The value of a function that returns a float; its gradient is written to arrays that are passed in.

    The result is called as ``(out, *args)``. ``out`` has the structure of the gradient: an array of the same shape and
    dtype for an array, a tuple for a tuple, and for a list, dictionary or instance one that `irad.data.make_zero`
    makes; for a tuple of ``argnums``, a tuple of these. A float cannot be overwritten: pass an array with one element
    of its dtype instead. ``out`` must not share memory with the arguments; its previous contents do not matter.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable ``(out, *args) -> value``, for Python and compiled code; with ``has_aux`` it returns ``(value,
        aux)``.

    Raises:
        SignatureError: as in `irad.grad`; in a call: ``out`` does not have the structure of the gradient.
        UnsupportedError: as in `irad.grad`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def energy(x):
        ...     return np.sum(x * x)
        >>> gradient = np.empty(2)
        >>> irad.value_and_grad_into(energy)(gradient, np.array([1.0, 2.0]))
        5.0
        >>> gradient
        array([2., 4.])
    """
    found: Any = made_as_usual("value_and_grad_into", f, argnums, argnames, has_aux, options)
    compiled: CompiledFunction[Concatenate[Any, P], R] = found
    return compiled
