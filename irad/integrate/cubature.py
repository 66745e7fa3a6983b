"""`cubature`: the integral of a function over a box, with its rule.

By a limit the derivative is the integral over the face there, of one dimension less. By the arguments of the integrand
it is the integral of the integrand's derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload, register_jitable

from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, push, zero_cotangents
from irad.api.custom.passed_along import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.nopython import function_behind, literal
from irad.frontend.calls.raising import public
from irad.frontend.custom.annotated import AugmentedReturn, is_active
from irad.frontend.custom.contract import zero_shadow
from irad.integrate.outcome import all_of, check_derivative, first_two, told
from irad.integrate.quad import as_points
from irad.integrate.regions import adaptive_boxes, box_of
from irad.integrate.slots import cleared, inner, largest, move, room, taken

_TOLERANCE = 1.49e-8
_LIMIT = 1000


@public
def cubature(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: bool = False,
    epsabs: float = _TOLERANCE,
    epsrel: float = _TOLERANCE,
    limit: int = _LIMIT,
) -> tuple[Any, ...]:
    """The integral of a function over a box, with derivatives with respect to limits and arguments.

    It can be called from Python and in compiled code. Boxes are halved, the one with the largest error first, until the
    sum of the errors is small enough; on each there are 1 + 2n + 2n² + 2ⁿ points in n dimensions.

    Args:
        f: takes a point, an array, and ``args`` after it, and returns a number, real or complex, an array, or a tuple
            of these. It must not keep the point.
        a: where to begin on each axis: an array, or a tuple of numbers. All are finite.
        b: where to end on each axis; may be less than ``a``.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        full_output: returns the number of points as well, and leaves it to the caller to compare the error with the
            tolerances; a literal in compiled code.
        epsabs: the error that is tolerated, of the largest part of the value; it depends on the units, as in `quad`.
        epsrel: the same relative to the largest part of the value; the greater of both counts.
        limit: the most boxes.

    Returns:
        The integral and an estimate of its error, which has no derivative.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles.
        ValueError: ``a`` and ``b`` differ in length, or a limit is not finite; in compiled code, and so in each
            derivative: the error is greater than the tolerances, because the limit has been reached. From Python it is
            an `IntegrationWarning`; with ``full_output`` only the error estimate tells. That of a derivative raises in
            any case.

    When a derivative is made, `UnsupportedError` refuses a function that writes to ``args``.

    Source:
        Genz, Malik: J. Comput. Appl. Math. 6 (1980) 295-302.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.integrate import cubature
        >>> from numba import njit
        >>> @njit
        ... def product(x, power):
        ...     return (x[0] * x[1]) ** power
        >>> @njit
        ... def mass(width, power):
        ...     return cubature(product, (0.0, 0.0), (width, 1.0), (power,))[0]
        >>> round(mass(2.0, 1.0), 9), round(irad.grad(mass)(2.0, 1.0), 9)  # width²/4
        (1.0, 1.0)
    """
    low, high = (np.array(limits, dtype=np.float64).reshape(-1) for limits in (a, b))
    result = _cubature(primal_of(f))(low, high, passed_along(args), float(epsabs), float(epsrel), int(limit))
    return told(result, full_output)


def _cubature(f: Any) -> Any:
    return remembered(f, (cubature,), lambda: cubature_of(f))


@overload(cubature, prefer_literal=True, strict=False)
def _cubature_typed(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = False,
    epsabs: Any = _TOLERANCE,
    epsrel: Any = _TOLERANCE,
    limit: Any = _LIMIT,
) -> Any:
    found = _cubature(function_behind(f))
    chosen = all_of if literal(full_output, "full_output") else first_two

    def cubature(  # type: ignore[no-untyped-def]
        f, a, b, args=(), full_output=False, epsabs=_TOLERANCE, epsrel=_TOLERANCE, limit=_LIMIT
    ):
        low, high = as_points(a), as_points(b)
        return chosen(found(low, high, passed_along(args), float(epsabs), float(epsrel), limit))

    return cubature


def cubature_of(f: Any) -> Any:
    """The compiled cubature of a function.

    Returns:
        ``(a, b, args, absolute, relative, limit) -> (value, error, count, is_precise)``.
    """

    @register_jitable
    def value_at(x, args):  # type: ignore[no-untyped-def]
        return f(x, *args)

    solve = adaptive_boxes(box_of(value_at))

    @njit
    def integrate(a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        if a.size != b.size:
            raise ValueError("the limits of a cubature differ in length")
        for i in range(a.size):
            if not (np.isfinite(a[i]) and np.isfinite(b[i])):
                raise ValueError("a limit of a cubature is not finite")
        like = f(0.5 * (a + b), *args)
        whole, error, count, is_precise = solve(a, b, np.arange(a.size), like, absolute, relative, limit, args)
        return taken(whole, 0, like), error, count, is_precise

    @njit
    def face(a, b, axis, place, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        """The integral over a face: one axis has one place."""
        low, high = a.copy(), b.copy()
        low[axis] = high[axis] = place
        axes = np.arange(a.size)
        like = f(0.5 * (low + high), *args)
        whole, _, _, is_precise = solve(low, high, axes[axes != axis], like, absolute, relative, limit, args)
        check_derivative(is_precise)
        return whole

    augmented, back = _reverse_of(integrate, face, f)
    return attach(integrate, augmented_primal=augmented, reverse=back, forward=_forward_of(integrate, face, f))


def _reverse_of(integrate: Any, face: Any, f: Any) -> Any:
    @register_jitable
    def gradient_at(x, data):  # type: ignore[no-untyped-def]
        config, args, values, cotangent, sums = data
        return pull(config, f, (x,), (None,), args, values, cotangent, cleared(sums))

    solve = adaptive_boxes(box_of(gradient_at))

    @register_jitable
    def by_arguments(config, cotangent, a, b, args, values, absolute, relative, limit):  # type: ignore[no-untyped-def]
        sums, size = zero_cotangents(args), largest(cotangent)
        if size == 0.0:
            return give_cotangents(args, sums)
        data = (config, args, values, cotangent, sums)
        whole, _, _, is_precise = solve(a, b, np.arange(a.size), sums, absolute * size, relative, limit, data)
        check_derivative(is_precise)
        return give_cotangents(args, taken(whole, 0, sums))

    @register_jitable
    def add_faces(shadow, sign, places, cotangent, like, given):  # type: ignore[no-untyped-def]
        for i in range(places.size):
            rows = face(given[0], given[1], i, places[i], *given[2:])
            shadow[i] += sign * inner(cotangent, taken(rows, 0, like))

    def integrate_augmented(config, a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        result = integrate(a.value, b.value, args.value, absolute.value, relative.value, limit.value)
        low, high = a.value.copy(), b.value.copy()
        shadow = zero_shadow(result) if config.needs_shadow else None
        return AugmentedReturn(result, shadow, (low, high, kept_arguments(config, 2, args)))

    def integrate_reverse(config, cotangent, tape, a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        low, high, values = tape
        by_args = None
        if is_active(cotangent, 0):
            given = low, high, values, absolute.value, relative.value, limit.value
            if is_active(a) or is_active(b):
                like = f(0.5 * (low + high), *values)
                if is_active(a):
                    add_faces(a.shadow, -1.0, low, cotangent[0], like, given)
                if is_active(b):
                    add_faces(b.shadow, 1.0, high, cotangent[0], like, given)
            if is_active(args):
                by_args = by_arguments(config, cotangent[0], low, high, args, *given[2:])
        elif is_active(args):
            by_args = give_cotangents(args, zero_cotangents(args))
        return None, None, by_args, None, None, None

    return integrate_augmented, integrate_reverse


def _forward_of(integrate: Any, face: Any, f: Any) -> Any:
    @register_jitable
    def tangent_at(x, data):  # type: ignore[no-untyped-def]
        config, args = data
        return push(config, f, (x,), (None,), args)[1]

    solve = adaptive_boxes(box_of(tangent_at))

    @register_jitable
    def add_faces(kept, tangent, sign, places, given):  # type: ignore[no-untyped-def]
        for i in range(places.size):
            if tangent[i] != 0.0:
                rows = face(given[0], given[1], i, places[i], *given[2:])
                move(kept, 0, sign * tangent[i], rows, 0)

    def integrate_forward(config, a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        given = a.value, b.value, args.value, absolute.value, relative.value, limit.value
        result = integrate(*given)
        kept = room(result[0], 1)
        if is_active(args):
            size = largest(args.tangent)
            if size != 0.0:
                axes = np.arange(a.value.size)
                data = config, args
                whole, _, _, is_precise = solve(
                    a.value, b.value, axes, result[0], absolute.value * size, relative.value, limit.value, data
                )
                check_derivative(is_precise)
                move(kept, 0, 1.0, whole, 0)
        if is_active(a):
            add_faces(kept, a.tangent, -1.0, a.value, given)
        if is_active(b):
            add_faces(kept, b.tangent, 1.0, b.value, given)
        return result, (taken(kept, 0, result[0]), 0.0, None, None)

    return integrate_forward
