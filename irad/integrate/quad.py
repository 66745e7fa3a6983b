"""`quad`: the integral of a function over an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, passed_along, zero_cotangents
from irad.api.functions import primal_of, remembered
from irad.api.nopython import function_behind, literal
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.integrate.integrands import Integrand, batched, pointwise
from irad.integrate.outcome import all_of, check_derivative, first_two, told
from irad.integrate.panels import adaptive, edges_of, kind_of, point_of
from irad.integrate.slots import add, inner, largest, move, room, taken
from irad.integrate.weights import check_weight, parameter, parameter_of, weighted

# The quadrature of one function, with its rule.
#
# By a limit the derivative is the integrand there. By a break point it is the jump of the integrand, so a break point
# that moves with a discontinuity has the derivative that the integrand's own cannot have. By the arguments of the
# integrand it is the integral of the integrand's derivative, which a quadrature of its own finds, to tolerances
# relative to the cotangent or tangent: what was precise enough for the value need not be for its derivative.


def quadrature_of(f: Integrand) -> Any:
    """The compiled quadrature of an integrand.

    Returns:
        ``(a, b, args, points, settings) -> (value, error, count, is_precise)`` with an array of break points; the
        settings are the absolute and the relative tolerance, the most intervals, and the shape of the value at a point
        if it is one of a batch.
    """
    solve, at, scratch = adaptive(f.values), f.at, f.scratch

    @inner_njit
    def quadrature(a, b, args, points, settings):  # type: ignore[no-untyped-def]
        absolute, relative, limit, shape = settings
        like = at(_inside(a, b, points), args, shape)
        given = absolute, relative, limit, (scratch(like, shape), args)
        whole, error, count, is_precise = solve(a, b, points, like, *given)
        return taken(whole, 0, like), error, count, is_precise

    augmented, back = _reverse_of(quadrature, f)
    return attach(quadrature, augmented_primal=augmented, reverse=back, forward=_forward_of(quadrature, f))


@inner_jitable
def _inside(a, b, points):  # type: ignore[no-untyped-def]
    """A node of the first panel."""
    if a == b:
        return a
    kind, origin = kind_of(a, b)
    edges = edges_of(kind, origin, a, b, points)
    return point_of(kind, origin, 0.5 * (edges[0] + edges[1]))[0]


@inner_jitable
def _sides(a, b, point):  # type: ignore[no-untyped-def]
    """The last number before a point and the first after it, on the way from one limit to the other."""
    return np.nextafter(point, a), np.nextafter(point, b)


def _reverse_of(quadrature: Any, f: Integrand) -> Any:
    solve, value_at, scratch = adaptive(f.cotangents), f.at, f.scratch

    @inner_jitable
    def gradient_in_args(config, cotangent, a, b, args, values, points, settings):  # type: ignore[no-untyped-def]
        absolute, relative, limit, shape = settings
        sums, size = zero_cotangents(args), largest(cotangent)
        if size == 0.0:
            return give_cotangents(args, sums)
        data = (scratch(cotangent, shape), config, args, values, cotangent, sums)
        whole, _, _, is_precise = solve(a, b, points, sums, absolute * size, relative, limit, data)
        check_derivative(is_precise)
        return give_cotangents(args, taken(whole, 0, sums))

    @inner_jitable
    def at(x, values, cotangent, shape):  # type: ignore[no-untyped-def]
        return 0.0 if np.isinf(x) else inner(cotangent, value_at(x, values, shape))

    def quadrature_augmented(config, a, b, args, points, settings):  # type: ignore[no-untyped-def]
        result = quadrature(a.value, b.value, args.value, points.value, settings.value)
        kept = points.value.copy() if config.overwritten[3] else points.value
        shadow = zero_shadow(result) if config.needs_shadow else None
        return AugmentedReturn(result, shadow, (kept_arguments(config, 2, args), kept))

    def quadrature_reverse(config, cotangent, tape, a, b, args, points, settings):  # type: ignore[no-untyped-def]
        values, breaks = tape
        shape = settings.value[3]
        d_a, d_b, d_args = 0.0, 0.0, None
        if is_active(cotangent, 0):
            if is_active(a):
                d_a = -at(a.value, values, cotangent[0], shape)
            if is_active(b):
                d_b = at(b.value, values, cotangent[0], shape)
            if is_active(points):
                for i in range(breaks.size):
                    if min(a.value, b.value) < breaks[i] < max(a.value, b.value):
                        before, behind = _sides(a.value, b.value, breaks[i])
                        jump = at(before, values, cotangent[0], shape) - at(behind, values, cotangent[0], shape)
                        points.shadow[i] += jump
            if is_active(args):
                d_args = gradient_in_args(config, cotangent[0], a.value, b.value, args, values, breaks, settings.value)
        elif is_active(args):
            d_args = give_cotangents(args, zero_cotangents(args))
        return d_a if is_active(a) else None, d_b if is_active(b) else None, d_args, None, None

    return quadrature_augmented, quadrature_reverse


def _forward_of(quadrature: Any, f: Integrand) -> Any:
    solve, value_at, scratch = adaptive(f.tangents), f.at, f.scratch

    @inner_jitable
    def add_at(kept, x, args, shape, weight):  # type: ignore[no-untyped-def]
        if weight != 0.0 and not np.isinf(x):
            add(kept, 0, weight, value_at(x, args, shape))

    def quadrature_forward(config, a, b, args, points, settings):  # type: ignore[no-untyped-def]
        result = quadrature(a.value, b.value, args.value, points.value, settings.value)
        absolute, relative, limit, shape = settings.value
        like = result[0]
        kept = room(like, 1)
        if is_active(args):
            size = largest(args.tangent)
            if size != 0.0:
                data = scratch(like, shape), config, args
                given = absolute * size, relative, limit, data
                whole, _, _, is_precise = solve(a.value, b.value, points.value, like, *given)
                check_derivative(is_precise)
                move(kept, 0, 1.0, whole, 0)
        if is_active(a):
            add_at(kept, a.value, args.value, shape, -a.tangent)
        if is_active(b):
            add_at(kept, b.value, args.value, shape, b.tangent)
        if is_active(points):
            for i in range(points.value.size):
                if min(a.value, b.value) < points.value[i] < max(a.value, b.value):
                    before, behind = _sides(a.value, b.value, points.value[i])
                    add_at(kept, before, args.value, shape, points.tangent[i])
                    add_at(kept, behind, args.value, shape, -points.tangent[i])
        return result, (taken(kept, 0, like), 0.0, None, None)

    return quadrature_forward


# the default of scipy.integrate.quad
_TOLERANCE = 1.49e-8


@public
def quad(
    f: Callable[..., Any],
    a: float,
    b: float,
    args: Any = (),
    full_output: bool = False,
    epsabs: float = _TOLERANCE,
    epsrel: float = _TOLERANCE,
    limit: int = 50,
    points: Any = (),
    batch: bool | int | tuple[int, ...] = False,
    weight: str | None = None,
    wvar: Any = None,
) -> tuple[Any, ...]:
    """The integral of a function over an interval, with derivatives with respect to limits and arguments.

    It can be called from Python and in compiled code. Intervals are halved, the one with the largest error first, until
    the sum of the errors is small enough; on each there are 21 points. Where the halving goes on and on at an
    end or a break point, as for ``x**-0.9`` from 0, the sums are extrapolated by the ε-algorithm.

    Args:
        f: takes a number, followed by ``args``, and returns a number, real or complex, an array, or a tuple of these.
        a: lower limit; may be infinite.
        b: upper limit; may be infinite, and less than ``a``.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        full_output: whether to return the number of points, too, and leave it to the caller to compare the error with
            the tolerances; a literal in compiled code.
        epsabs: absolute tolerance for the largest part of the value, 1.49e-8 by default as in SciPy. It depends on the
            units: any estimate of an integral of 1e-12 satisfies it; pass 0 for such integrals.
        epsrel: tolerance relative to the largest part of the value, 1.49e-8 by default; the greater of both applies.
        limit: the largest number of intervals.
        points: locations of kinks, jumps or poles of ``f``, in a tuple or an array. If they depend on differentiated
            arguments, the contribution of a jump to the derivative is included.
        batch: whether ``f`` takes many points at once: an array of points, an array for the values, which it fills, and
            ``args``; it returns nothing. True if a value is a number; the length or the shape of a value otherwise,
            which are the further axes of the second array. Nothing is allocated for a panel. Whether it is used is a
            literal in compiled code; the sizes need not be.
        weight: a factor of the integrand, by SciPy's names; a literal in compiled code. With one, ``f`` returns a
            number, and derivatives with respect to limits, as well as to the pole, differentiate ``f``.

            - "cos", "sin": the cosine or sine of ``wvar * x``. Between finite limits the number of points grows with
              that of periods; on an infinite range ``f`` falls to zero smoothly.
            - "alg": ``(x - a)**wvar[0] * (b - x)**wvar[1]`` with exponents greater than -1; "alg-loga" and "alg-logb"
              multiply by ``log(x - a)`` or ``log(b - x)`` too, "alg-log" by both. Limits are finite and ascend.
            - "cauchy": ``1 / (x - wvar)``; the result is Cauchy's principal value. ``f`` is smooth around the pole.
        wvar: the parameter of the weight: a number, or the pair of exponents.

    Returns:
        The integral and an estimate of its error, which has no derivative. It does not know of kinks, jumps and peaks
        between the points; singularities within the range are best named by ``points``.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or ``weight`` does not fit.
        ValueError: a limit is the pole, or an exponent is not greater than -1. In compiled code, and so in each
            derivative, and with a weight: the error is greater than the tolerances, because the limit has been reached
            or the integral diverges. From Python it is an `IntegrationWarning`; with ``full_output`` only the error
            estimate tells. That of a derivative raises in any case.

    When a derivative is made, `UnsupportedError` refuses a function that writes to ``args``.

    Source:
        Piessens et al.: QUADPACK, Springer 1983; Wynn: MTAC 10 (1956) 91-96.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.integrate import quad
        >>> from numba import njit
        >>> @njit
        ... def decay(t, rate):
        ...     return np.exp(-rate * t)
        >>> @njit
        ... def amount(rate):
        ...     value, error = quad(decay, 0.0, np.inf, (rate,))
        ...     return value
        >>> round(amount(2.0), 12), round(irad.grad(amount)(2.0), 12)
        (0.5, -0.25)
        >>> round(quad(decay, 0.0, np.inf, (2.0,), weight="cos", wvar=1.0)[0], 12)
        0.4
    """
    if weight is not None:
        check_weight(weight, wvar, full_output or batch is not False or len(points) > 0)
        given = passed_along(args), parameter(weight, wvar), float(epsabs), float(epsrel), int(limit)
        found: tuple[Any, ...] = _weighted(primal_of(f), weight)(float(a), float(b), *given)
        return found
    at = np.array(points, dtype=np.float64).reshape(-1)
    shape = None if batch is False else () if batch is True else tuple(map(int, np.atleast_1d(batch)))
    settings = float(epsabs), float(epsrel), int(limit), shape
    result = _quadrature(primal_of(f), batch is not False)(float(a), float(b), passed_along(args), at, settings)
    return told(result, full_output)


def _quadrature(f: Any, is_batched: bool) -> Any:
    make = batched if is_batched else pointwise
    return remembered(f, (quad, is_batched), lambda: quadrature_of(make(f)))


def _weighted(f: Any, weight: str) -> Any:
    return remembered(f, (quad, weight), lambda: weighted(f, weight, quad))


def as_points(points: Any) -> Any:
    """Break points as an array with one axis, in compiled code: of an array, a list, a tuple, a number."""
    raise NotImplementedError


@inner_overload(as_points, strict=False)
def _as_points_typed(points: Any) -> Any:
    if isinstance(points, types.Array):
        return lambda points: points.astype(np.float64).reshape(points.size)
    if isinstance(points, types.Integer | types.Float):
        return lambda points: np.full(1, np.float64(points))
    if isinstance(points, types.List | types.ListType):
        return lambda points: np.array([np.float64(x) for x in points])
    if not isinstance(points, types.BaseTuple):
        raise SignatureError(
            f"points or times are {described(points)}",
            "pass an array, a list or a tuple of numbers",
            "they must form a one-dimensional array",
            SourceLocation.here(),
        )
    lines = [f"    found[{i}] = points[{i}]\n" for i in range(len(points))]
    source = f"def as_points(points):\n    found = empty({len(lines)})\n{''.join(lines)}    return found\n"
    return function_from("as_points", source, "irad.integrate", {"empty": np.empty})


def _batch_typed(batch: Any) -> tuple[bool, Any]:
    """True if the integrand is one of batches, and a function that makes the shape of its value of the argument."""
    if isinstance(batch, types.BaseTuple):
        lines = "".join(f"int64(batch[{i}]), " for i in range(len(batch)))
    elif isinstance(batch, types.Integer):
        lines = "int64(batch),"
    elif literal(batch, "batch"):
        lines = ""
    else:
        return False, inner_jitable(lambda batch: None)
    source = f"def shape_of(batch):\n    return ({lines})\n"
    return True, inner_jitable(function_from("shape_of", source, "irad.integrate", {"int64": np.int64}))


@inner_overload(quad, prefer_literal=True, strict=False)
def _quad_typed(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = False,
    epsabs: Any = _TOLERANCE,
    epsrel: Any = _TOLERANCE,
    limit: Any = 50,
    points: Any = (),
    batch: Any = False,
    weight: Any = None,
    wvar: Any = None,
) -> Any:
    found = _weighted_typed(f, weight, wvar, full_output, points, batch)
    if found is None:
        found = _plain_typed(f, full_output, batch)

    def quad(  # type: ignore[no-untyped-def]
        f,
        a,
        b,
        args=(),
        full_output=False,
        epsabs=_TOLERANCE,
        epsrel=_TOLERANCE,
        limit=50,
        points=(),
        batch=False,
        weight=None,
        wvar=None,
    ):
        tolerances = float(epsabs), float(epsrel), limit
        return found(np.float64(a), np.float64(b), passed_along(args), tolerances, points, batch, wvar)

    return quad


def _plain_typed(f: Any, full_output: Any, batch: Any) -> Any:
    is_batched, shape_of = _batch_typed(batch)
    found = _quadrature(function_behind(f), is_batched)
    chosen = all_of if literal(full_output, "full_output") else first_two

    def call(a, b, args, tolerances, points, batch, wvar):  # type: ignore[no-untyped-def]
        return chosen(found(a, b, args, as_points(points), (*tolerances, shape_of(batch))))

    return inner_jitable(call)


def _weighted_typed(f: Any, weight: Any, wvar: Any, full_output: Any, points: Any, batch: Any) -> Any:
    named = literal(weight, "weight")
    if named is None:
        return None
    breaks = points.value if isinstance(points, types.Omitted) else points
    has_points = not (breaks == () or (isinstance(breaks, types.BaseTuple) and len(breaks) == 0))
    is_missing = wvar in (None, types.none) or isinstance(wvar, types.Omitted)
    others = bool(literal(full_output, "full_output")) or has_points or _batch_typed(batch)[0]
    check_weight(named, None if is_missing else wvar, others)
    found, of_weight = _weighted(function_behind(f), named), parameter_of(named, wvar)

    def call(a, b, args, tolerances, points, batch, wvar):  # type: ignore[no-untyped-def]
        return found(a, b, args, of_weight(wvar), *tolerances)

    return inner_jitable(call)
