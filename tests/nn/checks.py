"""What functions of irad.nn are checked for: values, forward against reverse, second derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

import irad
from irad.api.forward import with_direction


@njit
def _weighted_squares(weights, y):
    """The sum of weights · (y² + y), whose derivatives vanish neither at zeros of y nor in second order.

    A loop, since Numba takes 18 s to compile an expression of arrays with four axes.
    """
    each, flat = weights.ravel(), y.reshape(y.size)
    total = 0.0
    for i in range(flat.size):
        total += each[i] * (flat[i] * flat[i] + flat[i])
    flat[:] = np.nan
    return total


@functools.cache  # what is compiled for one test serves others
def scalar_of(f: Any, argument_count: int) -> Any:
    """A compiled function of an array of weights and of the arguments of f: `_weighted_squares` of what f returns.

    The array that f returns is overwritten afterwards, so a rule that reads it again is found out.
    """
    names = ", ".join(f"a{i}" for i in range(argument_count))
    source = f"def loss(weights, {names}):\n    return weighted_squares(weights, f({names}))\n"
    scope: dict[str, Any] = {"f": f, "weighted_squares": _weighted_squares}
    exec(source, scope)
    return njit(scope["loss"])


@functools.cache
def gradient_of(f: Any, argument_count: int, active: tuple[int, ...]) -> Any:
    """What gives the sum of `scalar_of` and its derivatives with respect to some arguments of f."""
    return irad.value_and_grad(scalar_of(f, argument_count), argnums=tuple(1 + each for each in active))


@functools.cache
def product_of(f: Any, argument_count: int, active: tuple[int, ...]) -> Any:
    """What gives products with the matrix of second derivatives of that sum."""
    return irad.hvp(scalar_of(f, argument_count), argnums=tuple(1 + each for each in active))


def check(
    f: Any,
    *arguments: Any,
    active: tuple[int, ...] = (0,),
    reference: Callable[..., Any] | None = None,
    second: bool = True,
    forward: bool = True,
) -> None:
    """Checks value and derivatives of a compiled function with respect to some of its arguments.

    Args:
        f: it; returns an array of floats.
        arguments: in double precision.
        active: positions of those that are differentiated.
        reference: the same function, for NumPy.
        second: whether second derivatives are compared with differences of first ones.
        forward: whether forward mode is compared with reverse mode. Most of the time goes into compiling, so one of the
            functions that share a kernel has both.
    """
    random = np.random.default_rng(7)
    value = f(*arguments)
    if reference is not None:
        np.testing.assert_allclose(value, reference(*arguments), rtol=1e-12, atol=1e-13)
    weights = random.standard_normal(value.shape)
    directions = [random.standard_normal(arguments[each].shape) for each in active]

    def moved(step: float) -> tuple[Any, ...]:
        shift = dict(zip(active, directions, strict=True))
        return (weights, *(a + step * shift[i] if i in shift else a for i, a in enumerate(arguments)))

    gradient, step = gradient_of(f, len(arguments), active), 1e-5
    found = gradient(*moved(0.0))[1]
    (value_above, above), (value_below, below) = gradient(*moved(step)), gradient(*moved(-step))
    slope = sum((g * d).sum() for g, d in zip(found, directions, strict=True))
    np.testing.assert_allclose(slope, (value_above - value_below) / (2 * step), rtol=1e-6, atol=1e-8)
    if forward:
        tangents = tuple(
            directions[active.index(i - 1)] if i - 1 in active else None for i in range(1 + len(arguments))
        )
        np.testing.assert_allclose(
            irad.jvp(scalar_of(f, len(arguments)), moved(0.0), tangents)[1], slope, rtol=1e-11, atol=1e-12
        )
    if second:
        product = product_of(f, len(arguments), active)(
            *with_direction(moved(0.0), [1 + each for each in active], tuple(directions))
        )
        for p, a, b in zip(product, above, below, strict=True):
            np.testing.assert_allclose(p, (a - b) / (2 * step), rtol=1e-6, atol=1e-7)


def check_single(f: Any, *arguments: Any, active: tuple[int, ...] = (0,)) -> None:
    """Checks that in single precision value and gradient are those of double precision, and have that type."""
    single = tuple(a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype == float else a for a in arguments)
    value, wanted = f(*single), f(*arguments)
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-6)
    gradient = gradient_of(f, len(arguments), active)
    weights = np.ones(wanted.shape)
    for s, d in zip(gradient(np.float32(weights), *single)[1], gradient(weights, *arguments)[1], strict=True):
        assert s.dtype == np.float32
        np.testing.assert_allclose(s, d, rtol=2e-4, atol=2e-5)
