"""`solve`: an initial value problem in Python and in compiled code, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.nopython import function_behind, literal
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.numba.messages import described
from irad.integrate.quad import as_points
from irad.ode.adjoints import continuous, discrete
from irad.ode.march import METHODS, Settings

_RTOL, _ATOL, _STEPS, _MAX_STEPS, _SNAPSHOTS = 1e-6, 1e-9, 100, 100_000, 100


class Solution(NamedTuple):
    """The result of `irad.ode.solve`; counts and ``ended`` have no derivative.

    Attributes:
        t: the times of ``t_eval`` up to the end; without ``t_eval`` only the end, the second of ``t_span`` or a
            terminal event.
        y: the states at these times, an array with a row for each.
        t_events: the times of events.
        y_events: the states at events, an array with a row for each.
        ended: whether an event ended the integration.
        steps: number of steps.
        rejected: number of further steps that were tried and rejected.
        calls: number of calls of the right-hand side, without those for its derivative.

    Examples:
        >>> import numpy as np
        >>> from irad.ode import Solution, solve
        >>> from numba import njit
        >>> @njit
        ... def fall(t, y):
        ...     return np.array([y[1], -9.81])
        >>> found = solve(fall, np.array([0.0, 1.0]), (0.0, 1.0), method="rk4", steps=2)
        >>> isinstance(found, Solution), found.y.round(3), found.calls
        (True, array([[-3.905, -8.81 ]]), 9)
    """

    t: Any
    y: Any
    t_events: Any
    y_events: Any
    ended: Any
    steps: Any
    rejected: Any
    calls: Any


@public
def solve(
    f: Callable[..., Any],
    y0: Any,
    t_span: Any,
    args: Any = (),
    t_eval: Any = None,
    method: str = "dopri5",
    rtol: float = _RTOL,
    atol: float = _ATOL,
    steps: int = _STEPS,
    max_steps: int = _MAX_STEPS,
    first_step: float = 0.0,
    event: Callable[..., Any] | None = None,
    direction: int = 0,
    terminal: int = 1,
    adjoint: str = "discrete",
    snapshots: int = _SNAPSHOTS,
) -> Solution:
    """Solves ``y' = f(t, y, *args)`` from the state at one time, with derivatives with respect to all that is a float.

    It can be called from Python and in compiled code. The derivative is that of the steps that were taken; their sizes
    count as constant shares of the time from the first to the second of ``t_span``. Reverse mode saves where steps end,
    8 bytes a step (nothing with "rk4"), and holds at most ``snapshots`` states.

    Args:
        f: takes the time, the state and ``args``, and returns the derivative of the state in a new array.
        y0: the initial state, an array of real numbers with one axis.
        t_span: initial and final time; the final time may be the smaller one.
        args: a tuple of further arguments of ``f`` and ``event``: numbers, arrays and structures of these.
        t_eval: times at which the state is returned, an array or a tuple, in the order in which they are reached.
        method: "dopri5", Dormand and Prince's of order 5; "rk4", the classical one of order 4 with equal steps; or
            "rodas", a Rosenbrock method of order 4 for stiff systems, which takes the derivative of ``f`` by forward
            mode. A literal in compiled code.
        rtol: tolerance of the error of a step, relative to the state; 1e-6 by default.
        atol: absolute tolerance, added to the relative one; 1e-9 by default.
        steps: number of steps of "rk4", 100 by default.
        max_steps: the largest number of steps that other methods try, 100000 by default.
        first_step: size of the first step that is tried; 0 for an automatic choice.
        event: takes the arguments of ``f`` and returns a float; each change of its sign is an event.
        direction: 1 for events where it rises, -1 where it falls, 0 for both.
        terminal: number of the event that ends the integration, from 1; 0 for none.
        adjoint: "discrete", or "continuous": reverse mode integrates the adjoint equation backwards, in memory that
            does not grow with the steps, and precise to the tolerances only. Not with events and "rodas". A literal.
        snapshots: the largest number of states that reverse mode holds, 100 by default; the others are recomputed. A
            literal.

    Returns:
        The solution; see `Solution`.

    Raises:
        SignatureError: ``f`` or ``event`` is not a function that Numba compiles; the state is not such an array; the
            method or adjoint is unknown, or they do not go together.
        ValueError: a tolerance or a number of steps is not positive; times are out of order.
        RuntimeError: it takes more than ``max_steps``, or steps become too small for the time to change.

    When a derivative is made, `UnsupportedError` refuses a function that writes to ``args``.

    Source:
        Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I and II, Springer.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.ode import solve
        >>> from numba import njit
        >>> @njit
        ... def decay(t, y, rate):
        ...     return -rate * y
        >>> @njit
        ... def left(rate):
        ...     return solve(decay, np.array([1.0]), (0.0, 1.0), (rate,), rtol=1e-9).y[-1, 0]
        >>> round(left(2.0), 6), round(irad.grad(left)(2.0), 6)  # exp(-2), -exp(-2)
        (0.135335, -0.135335)
    """
    watched = None if event is None else primal_of(event)
    state = _state_of(y0)
    solver = _solver(primal_of(f), watched, _Choice(method, adjoint, snapshots, t_eval is not None))
    times = np.array(() if t_eval is None else t_eval, dtype=np.float64).reshape(-1)
    most = steps if method == "rk4" else max_steps
    numbers = float(rtol), float(atol), float(first_step), int(most), int(direction), int(terminal)
    if np.shape(t_span) != (2,):
        raise _not_a_span(repr(t_span))
    return Solution(*solver(state, float(t_span[0]), float(t_span[1]), passed_along(args), times, *numbers))


def _state_of(y0: Any) -> Any:
    state = np.ascontiguousarray(y0)
    _check_state(state.ndim == 1 and state.dtype.kind in "iuf", f"an array of {state.dtype} with {state.ndim} axes")
    return state.astype(np.float64)


class _Choice(NamedTuple):
    """Choices known when a solver is compiled."""

    method: str
    adjoint: str
    snapshots: Any  # not checked yet
    has_times: bool


def _check_state(is_state: bool, found: str) -> None:
    if not is_state:
        raise SignatureError(
            f"the state of a differential equation is {found}",
            "pass an array of real numbers with one axis",
            "the methods are written for such states",
            SourceLocation.here(),
        )


def _not_a_span(found: str) -> SignatureError:
    return _refused(
        f"t_span of a differential equation is {found}", "pass two numbers: (begin, end)", "it has both ends"
    )


def _refused(problem: str, remedy: str, reason: str) -> SignatureError:
    return SignatureError(problem, remedy, reason, SourceLocation.here())


def _check(choice: _Choice, event: Any) -> None:
    if choice.method not in METHODS:
        raise _refused(
            f"method={choice.method!r} is not a method of irad.ode",
            f"pass one of {', '.join(map(repr, METHODS))}",
            "each is compiled into the solver",
        )
    if choice.adjoint not in ("discrete", "continuous"):
        raise _refused(
            f"adjoint={choice.adjoint!r} is not an adjoint of irad.ode",
            "(a) pass 'discrete' or (b) pass 'continuous'",
            "it says what reverse mode differentiates",
        )
    if choice.adjoint == "continuous" and (event is not None or choice.method == "rodas"):
        raise _refused(
            f"the continuous adjoint is asked for with {'an event' if event is not None else 'the method rodas'}",
            "leave out adjoint='continuous'",
            "the adjoint equation is integrated by an explicit method, between times that are known",
        )
    if isinstance(choice.snapshots, bool) or not isinstance(choice.snapshots, int) or choice.snapshots < 1:
        raise _refused(
            f"snapshots={choice.snapshots!r} is not a positive int",
            "pass how many states reverse mode may hold at the same time, the first among them",
            "the reverse sweep computes the other states again from these",
        )


def _solver(f: Any, event: Any, choice: _Choice) -> Any:
    _check(choice, event)
    return remembered(f, (solve, event, choice), lambda: _compiled(f, event, choice))


def _integration(f: Any, event: Any, choice: _Choice) -> Any:
    method = METHODS[choice.method]
    if choice.adjoint == "continuous":
        key: Any = (continuous, choice.method)
        return remembered(f, key, lambda: continuous(f, method))
    key = (discrete, event, choice.method, choice.snapshots)
    return remembered(f, key, lambda: discrete(f, event, method, choice.snapshots))


@inactive_in_irad
@njit
def _settings(t0, t1, wanted, rtol, atol, first, most, direction, terminal):  # type: ignore[no-untyped-def]
    """The numbers that have no derivative, after they were checked."""
    if not (rtol >= 0.0 and atol >= 0.0 and rtol + atol > 0.0):
        raise ValueError("rtol and atol of a differential equation are negative, or both are zero")
    if most < 1:
        raise ValueError("the number of steps of a differential equation is not positive")
    if not (np.isfinite(t0) and np.isfinite(t1)):
        raise ValueError("t_span of a differential equation is not finite")
    sign = 1.0 if t1 >= t0 else -1.0
    before = t0
    for t in wanted:
        if not (sign * before <= sign * t <= sign * t1):
            raise ValueError("t_eval of a differential equation is not in order within t_span")
        before = t
    return Settings(rtol, atol, first, most, direction, terminal)


def _compiled(f: Any, event: Any, choice: _Choice) -> Any:
    """The solver of a right-hand side."""
    march, has_times, calls = _integration(f, event, choice), choice.has_times, METHODS[choice.method].calls

    @njit
    def solver(y0, t0, t1, args, wanted, rtol, atol, first, most, direction, terminal):  # type: ignore[no-untyped-def]
        settings = _settings(t0, t1, wanted, rtol, atol, first, most, direction, terminal)
        course = march(y0, t0, t1, args, wanted, settings)
        row, events, steps, rejected, ended = course.counts
        counts = ended == 1, steps, rejected, 1 + calls * (steps + rejected)
        if has_times:
            return Solution(wanted[:row], course.rows[:row], course.times, course.states, *counts)
        t, y = np.empty(1), np.empty((1, y0.size))
        t[0] = course.times[events - 1] if ended == 1 else t1
        for j in range(y0.size):
            y[0, j] = course.states[events - 1, j] if ended == 1 else course.last[j]
        return Solution(t, y, course.times, course.states, *counts)

    return solver


def _ends(t_span: Any) -> tuple[float, float]:
    """Beginning and end of an integration, in compiled code."""
    raise NotImplementedError


@overload(_ends, strict=False)
def _ends_typed(t_span: Any) -> Any:
    if isinstance(t_span, types.BaseTuple) and len(t_span) == 2:
        return lambda t_span: (np.float64(t_span[0]), np.float64(t_span[1]))
    if not (isinstance(t_span, types.Array) and t_span.ndim == 1):
        raise _not_a_span(described(t_span))

    def ends(t_span):  # type: ignore[no-untyped-def]
        if t_span.size != 2:
            raise ValueError("t_span of a differential equation does not have two ends")
        return np.float64(t_span[0]), np.float64(t_span[1])

    return ends


@register_jitable
def _no_times(t_eval):  # type: ignore[no-untyped-def]
    return np.zeros(0)


@overload(solve, prefer_literal=True, strict=False)
def _solve_typed(
    f: Any,
    y0: Any,
    t_span: Any,
    args: Any = (),
    t_eval: Any = None,
    method: Any = "dopri5",
    rtol: Any = _RTOL,
    atol: Any = _ATOL,
    steps: Any = _STEPS,
    max_steps: Any = _MAX_STEPS,
    first_step: Any = 0.0,
    event: Any = None,
    direction: Any = 0,
    terminal: Any = 1,
    adjoint: Any = "discrete",
    snapshots: Any = _SNAPSHOTS,
) -> Any:
    is_state = isinstance(y0, types.Array) and y0.ndim == 1 and isinstance(y0.dtype, types.Integer | types.Float)
    _check_state(is_state, described(y0))
    absent = types.none, types.Omitted(None), None
    has_times, watched = t_eval not in absent, None if event in absent else function_behind(event)
    chosen = literal(method, "method"), literal(adjoint, "adjoint"), literal(snapshots, "snapshots")
    solver = _solver(function_behind(f), watched, _Choice(*chosen, has_times))
    is_fixed, times_of = chosen[0] == "rk4", as_points if has_times else _no_times

    def solve(  # type: ignore[no-untyped-def]
        f,
        y0,
        t_span,
        args=(),
        t_eval=None,
        method="dopri5",
        rtol=_RTOL,
        atol=_ATOL,
        steps=_STEPS,
        max_steps=_MAX_STEPS,
        first_step=0.0,
        event=None,
        direction=0,
        terminal=1,
        adjoint="discrete",
        snapshots=_SNAPSHOTS,
    ):
        most = steps if is_fixed else max_steps
        begin, end = _ends(t_span)
        return solver(
            y0.astype(np.float64),
            begin,
            end,
            passed_along(args),
            times_of(t_eval),
            float(rtol),
            float(atol),
            float(first_step),
            int(most),
            int(direction),
            int(terminal),
        )

    return solve
