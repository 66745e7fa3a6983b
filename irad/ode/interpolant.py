"""`evaluate`: the solution of a differential equation as a function of time, on the polynomials of its steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import packed
from irad.integrate.quad import as_points
from irad.ode.dense import Dense, just_after, put_between


@register_jitable
def kept_steps(course, t0, t1, end, most):  # type: ignore[no-untyped-def]
    """The solution of an integration that kept all pieces."""
    (pieces, slope), steps = course.dense, course.counts[2]
    times, lengths = np.empty(steps + 1), np.empty(steps)
    begin, place, event = t0, 0.0, 0
    for i in range(steps):
        following = course.places[i + 1] if course.places.size > 0 else (i + 1) / most
        times[i], lengths[i] = begin + place * (t1 - begin), (following - place) * (t1 - begin)
        times[i + 1], place = begin + following * (t1 - begin), following
        while event < course.applied.size and course.event_steps[event] == i:
            if course.applied[event] == 1:  # the integration goes on from there
                begin, place = course.times[event], 0.0
                times[i + 1] = begin
            event += 1
    return Dense(times, lengths, pieces, slope, end, ())


@public
def evaluate(solution: Any, t: Any) -> Any:
    """The state at times within a solution of `irad.ode.solve`, with derivatives with respect to all that is a float.

    It can be called from Python and in compiled code. The state is the same as at times that ``t_eval`` names, on the
    polynomial of the step: of the order of the method for "dopri5", "tsit5", "bosh3" and "dop853".

    Args:
        solution: the result of `solve` with ``dense_output=True``.
        t: a time, or an array or a tuple of times in any order.

    Returns:
        The state, in the structure of the initial one; for several times each part has time as its first axis.

    Raises:
        SignatureError: the solution was made without ``dense_output=True``.
        ValueError: a time is outside the interval from the initial time to the end of the solution.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.ode import evaluate, solve
        >>> from numba import njit
        >>> @njit
        ... def decay(t, y, rate):
        ...     return -rate * y
        >>> @njit
        ... def left(rate, t):
        ...     found = solve(decay, np.array([1.0]), (0.0, 1.0), (rate,), rtol=1e-9, dense_output=True)
        ...     return evaluate(found, t)[0]
        >>> round(left(2.0, 0.5), 6)  # exp(-1)
        0.367879
        >>> np.round(irad.grad(left, argnums=(0, 1))(2.0, 0.5), 5)  # -exp(-1)/2, -2 exp(-1)
        array([-0.18394, -0.73576])
    """
    times = packed(np.array(t, np.float64) if isinstance(t, tuple | list) else t)
    return _evaluated(_Given(packed(solution.dense)), times)


class _Given(NamedTuple):
    dense: Any


@njit
def _evaluated(solution, t):  # type: ignore[no-untyped-def]
    return evaluate(solution, t)


@overload(evaluate, strict=False)
def _evaluate_typed(solution: Any, t: Any) -> Any:
    is_named = isinstance(solution, types.BaseNamedTuple) and "dense" in solution.fields
    dense = solution.types[solution.fields.index("dense")] if is_named else types.none
    if not isinstance(dense, types.BaseNamedTuple):
        raise SignatureError(
            f"irad.ode.evaluate is called with {described(solution)}",
            "pass the result of irad.ode.solve with dense_output=True",
            "other solutions do not keep what is known of their steps",
            SourceLocation.here(),
        )
    rows_like, state_like = _shaping(dense.types[5])
    if not isinstance(t, types.Integer | types.Float):
        return _at_times(rows_like)

    def at_time(solution, t):  # type: ignore[no-untyped-def]
        state = np.empty(solution.dense.pieces.shape[2])
        _put_at(state, solution.dense, t)
        return state_like(state, solution.dense.like)

    return at_time


def _at_times(rows_like: Any) -> Any:
    def at_times(solution, t):  # type: ignore[no-untyped-def]
        times = as_points(t)
        rows = np.empty((times.size, solution.dense.pieces.shape[2]))
        for i in range(times.size):
            _put_at(rows[i], solution.dense, times[i])
        return rows_like(rows, solution.dense.like)

    return at_times


def _shaping(like: Any) -> Any:
    """Functions that give rows and a vector the structure of states."""
    if like == types.Tuple(()):
        return _same, _same
    from irad.ode.states import from_vector, rows_like  # it loads the solvers of `irad.implicit`

    return rows_like, from_vector


@register_jitable
def _same(found, like):  # type: ignore[no-untyped-def]
    return found


@register_jitable
def _put_at(out, dense, t):  # type: ignore[no-untyped-def]
    i = _piece_at(dense.times, dense.end, t)
    piece, begin = dense.pieces[i], dense.times[i]
    h = dense.lengths[i]
    if h != 0.0:
        put_between(out, piece[0], piece[1], piece[2:], (t - begin) / h)
    else:  # over no time: only the slope tells how the state changes with it
        for j in range(out.size):
            out[j] = piece[0, j] + (t - begin) * dense.slope[j]


@inactive_in_irad
@njit
def _piece_at(times, end, t):  # type: ignore[no-untyped-def]
    """The number of the step that a time is in: the first one at a time between two."""
    sign = 1.0 if times[-1] >= times[0] else -1.0
    if not (sign * times[0] <= sign * t <= sign * end):
        raise ValueError("a time is outside the solution of a differential equation")
    low, high = 0, times.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if sign * just_after(times[middle], times[0], times[-1]) < sign * t:
            low = middle
        else:
            high = middle
    return low
