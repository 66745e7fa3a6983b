"""`solve`: an initial value problem in Python and in compiled code, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import typeof
from numba.core import types
from numba.core.types import Type

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.nopython import function_behind, literal
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import packed
from irad.integrate.quad import as_points
from irad.ode.adjoints import continuous, discrete
from irad.ode.algebra import Needs, checked_mass, coloured, is_csr, is_pattern, with_needs
from irad.ode.events import effects_of, events_of, for_each, for_each_of, terminal_in_code, terminal_of, watching
from irad.ode.interpolant import kept_steps
from irad.ode.march import METHODS, Reads, Settings, has_equal_steps
from irad.ode.radau import radau

_RTOL, _ATOL, _STEPS, _MAX_STEPS, _SNAPSHOTS = 1e-6, 1e-9, 100, 100_000, 100
_NO_BOUND = float("inf")
_NOT_AS_MANY = "rtol or atol of a differential equation is an array that does not have the length of the state"


class Solution(NamedTuple):
    """The result of `irad.ode.solve`; counts and ``ended`` have no derivative.

    Attributes:
        t: the times of ``t_eval`` up to the end; without ``t_eval`` only the end, the second of ``t_span`` or a
            terminal event.
        y: the states at these times, in the structure of the initial state: each part has time as its first axis.
        t_events: the times of events.
        y_events: the states at events, in the same form.
        ended: whether an event ended the integration.
        steps: number of steps.
        rejected: number of further steps that were tried and rejected.
        calls: number of calls of the right-hand side, without those for its derivative; of "radau" the least number
            that its steps take.
        which: the number of the function of each event, from 0.
        dense: with ``dense_output=True`` the steps, for `irad.ode.evaluate`; otherwise an empty tuple.

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
    which: Any
    dense: Any


@public
def solve(
    f: Callable[..., Any],
    y0: Any,
    t_span: Any,
    args: Any = (),
    t_eval: Any = None,
    method: str = "dopri5",
    rtol: Any = _RTOL,
    atol: Any = _ATOL,
    steps: int = _STEPS,
    max_steps: int = _MAX_STEPS,
    first_step: float = 0.0,
    event: Any = None,
    direction: Any = 0,
    terminal: Any = None,
    adjoint: str = "discrete",
    snapshots: int = _SNAPSHOTS,
    max_step: float = _NO_BOUND,
    jac: Any = None,
    mass: Any = None,
    jac_sparsity: Any = None,
    dense_output: bool = False,
    effect: Any = None,
) -> Solution:
    """Solves ``y' = f(t, y, *args)`` from the state at one time, with derivatives with respect to all that is a float.

    It can be called from Python and in compiled code. The derivative is that of the steps that were taken; their sizes
    count as constant shares of the time from the first to the second of ``t_span``. Reverse mode saves where steps end,
    8 bytes a step (nothing with steps of one size), and holds at most ``snapshots`` states.

    Args:
        f: takes the time, the state and ``args``, and returns the derivative of the state, in the structure of the
            state and in new arrays.
        y0: the initial state: a number, an array of any shape, or a tuple of these, which may be named or nested. Its
            numbers may be complex, or in single precision; steps are computed in double precision.
        t_span: initial and final time; the final time may be the smaller one.
        args: a tuple of further arguments of ``f`` and ``event``: numbers, arrays and structures of these.
        t_eval: times at which the state is returned, an array or a tuple, in the order in which they are reached.
        method: an explicit Runge–Kutta method with error control: "dopri5" (Dormand and Prince, order 5), "tsit5"
            (Tsitouras, order 5), "dop853" (Dormand and Prince, order 8) or "bosh3" (Bogacki and Shampine, order 3); one
            with equal steps: "rk4" (order 4), "heun", "midpoint" (order 2) or "euler"; or one for stiff systems, which
            takes the derivative of ``f`` by forward mode: "rodas", a Rosenbrock method of order 4 for small systems,
            or "radau" (Radau IIA, order 5), also with a mass matrix. A literal in compiled code.
        rtol: tolerance of the error of a step, relative to the state: a number, or numbers and arrays in the structure
            of the state; 1e-6 by default.
        atol: absolute tolerance, added to the relative one, in the same form; 1e-9 by default.
        steps: number of steps of methods with equal steps, 100 by default.
        max_steps: the largest number of steps that other methods try, and any method with effects; 100000 by default.
        first_step: size of the first step that is tried; 0 for an automatic choice.
        event: takes the arguments of ``f`` and returns a float; each change of its sign is an event. A tuple of such
            functions watches several.
        direction: 1 for events where it rises, -1 where it falls, 0 for both; a tuple for several functions.
        terminal: number of the event that ends the integration, from 1; 0 for none; a tuple for
            several functions. By default 1, but 0 for events with an effect.
        adjoint: "discrete", or "continuous": reverse mode integrates the adjoint equation backwards, in memory that
            does not grow with the steps, and precise to the tolerances only. Not with events, "rodas" and "radau". A
            literal.
        snapshots: the largest number of states that reverse mode holds, 100 by default; the others are recomputed. A
            literal.
        max_step: the longest step that methods with error control take; no bound by default.
        jac: takes the arguments of ``f`` and returns its derivative with respect to the state, for the steps of
            "radau": a matrix, or ``(data, indices, indptr)`` of a sparse one in CSR, as `irad.sparse_linalg` takes
            them. It may be an approximation, since derivatives of the solution do not use it but ``f``. None to derive
            it from ``f``.
        mass: a matrix M for "radau", to solve ``M y' = f(t, y, *args)``: an array with two axes, or with one for a
            diagonal matrix, or ``(data, indices, indptr)`` in CSR. It may be singular, for differential-algebraic
            equations of index 1, if ``y0`` satisfies the algebraic ones.
        jac_sparsity: where the derivative of ``f`` with respect to the state may have entries that are not zero, for
            "radau" without ``jac``: ``(indices, indptr)`` in CSR. Columns with no row in common are then derived
            together. A pattern that lacks entries makes an approximation. Called from Python, this and ``mass`` may be
            matrices of SciPy's.
        dense_output: True to keep all steps, so that `irad.ode.evaluate` gives the state at any time. Not with the
            continuous adjoint. A literal.
        effect: takes the arguments of ``event`` and returns the state with which the integration goes on from there.
            For several events a tuple of functions, or None for those that change nothing. Not with ``mass``.

    Returns:
        The solution; see `Solution`.

    Raises:
        SignatureError: ``f`` or ``event`` is not a function that Numba compiles; the state is not such an array; the
            method or adjoint is unknown, or they do not go together.
        ValueError: a tolerance, max_step or a number of steps is not positive, or there are not as many tolerances as
            parts of the state; times are out of order; jac, mass or jac_sparsity do not have the size of the state, or
            the matrix of a step is singular.
        RuntimeError: it takes more than ``max_steps``, steps become too small for the time to change, an effect makes
            the same event happen again in no time, or jac or jac_sparsity is too far from the derivative.

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
    events = events_of(event, primal_of)
    state = _state_of(y0)
    solver_of, tolerance_of = (_solver, _tolerance_of) if _is_vector(typeof(state)) else (_solver_of_states, _packed)
    matrix, pattern = _passed_mass(mass), _passed_pattern(jac_sparsity)
    effects = effects_of(effect, len(events), primal_of)
    choice = _Choice(
        method,
        adjoint,
        t_eval is not None,
        snapshots,
        None if jac is None else primal_of(jac),
        _has_mass(typeof(matrix)),
        _has_pattern(typeof(pattern)),
        dense_output,
        effects,
    )
    solver = solver_of(primal_of(f), events, choice)
    times = np.array(() if t_eval is None else t_eval, dtype=np.float64).reshape(-1)
    most = steps if has_equal_steps(method) else max_steps
    tolerances = tolerance_of(rtol, state), tolerance_of(atol, state)
    numbers = float(first_step), float(max_step), int(most), int(max_steps)
    each = (
        for_each(direction, len(events)),
        for_each(terminal_of(terminal, effects), len(events)),
        matrix,
        pattern,
    )
    if np.shape(t_span) != (2,):
        raise _not_a_span(repr(t_span))
    return Solution(
        *solver(state, float(t_span[0]), float(t_span[1]), passed_along(args), times, *tolerances, *numbers, *each)
    )


def _passed_mass(given: Any) -> Any:
    """A mass matrix as compiled code takes it."""
    if given is None:
        return ()
    if hasattr(given, "tocsr"):
        given = given.tocsr()
        return given.data, given.indices, given.indptr
    is_sparse = isinstance(given, tuple) and all(isinstance(each, np.ndarray) for each in given)
    return tuple(map(np.ascontiguousarray, given)) if is_sparse else np.ascontiguousarray(given)


def _passed_pattern(given: Any) -> Any:
    """A pattern as compiled code takes it."""
    if given is None:
        return ()
    if hasattr(given, "tocsr"):
        given = given.tocsr()
        return given.indices, given.indptr
    return tuple(map(np.ascontiguousarray, given)) if isinstance(given, tuple) else given


def _is_absent(given: Any) -> bool:
    """True for the type of an argument that is not given."""
    return given in (types.none, types.Omitted(None), None) or (isinstance(given, types.BaseTuple) and len(given) == 0)


def _has_mass(mass: Any) -> bool:
    """True if there is a mass matrix."""
    if _is_absent(mass):
        return False
    is_real = isinstance(mass, types.Array) and isinstance(mass.dtype, types.Integer | types.Float)
    if not (is_csr(mass) or (is_real and mass.ndim in (1, 2))):
        raise _refused(
            f"the mass matrix of a differential equation is {described(mass)}",
            "(a) pass an array of real numbers with two axes, (b) one with one axis for a diagonal matrix or "
            "(c) pass (data, indices, indptr) in CSR",
            "it multiplies the derivative of the state",
        )
    return True


def _has_pattern(pattern: Any) -> bool:
    """True if there is a pattern of the derivative of the right-hand side."""
    if _is_absent(pattern):
        return False
    if not (isinstance(pattern, types.BaseTuple) and is_pattern(pattern)):
        raise _refused(
            f"jac_sparsity of a differential equation is {described(pattern)}",
            "pass (indices, indptr) in CSR, two arrays of integers with one axis",
            "it tells which entries of the derivative of the right-hand side may be nonzero",
        )
    return True


def _state_of(y0: Any) -> Any:
    """The state as an array of doubles if it is an array of real numbers, or as compiled code takes it."""
    state = np.asarray(y0) if isinstance(y0, list) else packed(y0)
    is_converted = isinstance(state, np.ndarray) and state.dtype.kind in "iuf" and state.dtype != np.float32
    return np.ascontiguousarray(state, np.float64).reshape(state.shape) if is_converted else state


def _packed(given: Any, state: Any) -> Any:
    return packed(given)


def _tolerance_of(given: Any, state: Any) -> Any:
    if np.ndim(given) > 0 and np.shape(given) != state.shape:
        raise ValueError(_NOT_AS_MANY)
    return np.full(state.shape, given, np.float64)


class _Choice(NamedTuple):
    """Choices known when a solver is compiled."""

    method: str
    adjoint: str
    has_times: bool
    snapshots: Any = _SNAPSHOTS  # not checked yet
    jac: Any = None
    has_mass: bool = False
    has_pattern: bool = False
    has_dense: Any = False  # not checked yet
    effects: tuple[Any, ...] = ()


def _not_a_span(found: str) -> SignatureError:
    return _refused(
        f"t_span of a differential equation is {found}", "pass two numbers: (begin, end)", "it has both ends"
    )


def _refused(problem: str, remedy: str, reason: str) -> SignatureError:
    return SignatureError(problem, remedy, reason, SourceLocation.here())


def _check(choice: _Choice, events: tuple[Any, ...]) -> None:
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
    if choice.adjoint == "continuous" and (events or choice.method in ("rodas", "radau")):
        raise _refused(
            f"the continuous adjoint is asked for with {'an event' if events else f'the method {choice.method}'}",
            "leave out adjoint='continuous'",
            "the adjoint equation is integrated by an explicit method, between times that are known",
        )
    _check_matrices(choice)
    _check_dense(choice)
    if isinstance(choice.snapshots, bool) or not isinstance(choice.snapshots, int) or choice.snapshots < 1:
        raise _refused(
            f"snapshots={choice.snapshots!r} is not a positive int",
            "pass how many states reverse mode may hold at the same time, the first among them",
            "the reverse sweep computes the other states again from these",
        )


def _check_matrices(choice: _Choice) -> None:
    if choice.has_mass and choice.effects:
        raise _refused(
            "mass of a differential equation is passed with an effect of an event",
            "(a) leave out mass or (b) end at the event with terminal, and solve again from there",
            "what the algebraic equations say of the state after the effect is not known",
        )
    given = [("jac", choice.jac is not None), ("mass", choice.has_mass), ("jac_sparsity", choice.has_pattern)]
    for name, is_given in given:
        if is_given and choice.method != "radau":
            raise _refused(
                f"{name} of a differential equation is passed with the method {choice.method}",
                f"(a) pass method='radau' or (b) leave out {name}",
                "only its steps are made for it",
            )
    if choice.jac is not None and choice.has_pattern:
        raise _refused(
            "both jac and jac_sparsity are passed to irad.ode.solve",
            "(a) leave out jac_sparsity or (b) leave out jac",
            "a sparse matrix that jac returns has its own pattern",
        )


def _check_dense(choice: _Choice) -> None:
    if not isinstance(choice.has_dense, bool):
        raise _refused(
            f"dense_output={choice.has_dense!r} is not a bool", "pass True or False", "it says whether steps are kept"
        )
    if choice.adjoint == "continuous" and choice.has_dense:
        raise _refused(
            "the continuous adjoint is asked for with dense_output=True",
            "(a) leave out adjoint='continuous' or (b) name times with t_eval",
            "the adjoint equation is integrated between times that are known",
        )


def _solver(f: Any, events: tuple[Any, ...], choice: _Choice) -> Any:
    _check(choice, events)
    return remembered(f, (solve, events, choice), lambda: _compiled(f, events, choice))


def _is_vector(y0: Type) -> bool:
    """True if a state is integrated as it is: a vector of doubles, or of integers, which become these."""
    if not isinstance(y0, types.Array) or y0.ndim != 1:
        return False
    return y0.dtype == types.float64 or isinstance(y0.dtype, types.Integer)


def _solver_of_states(f: Any, events: tuple[Any, ...], choice: _Choice) -> Any:
    """The solver for states that are not vectors of doubles."""
    from irad.ode.states import solver_of_states  # it loads the solvers of `irad.implicit`

    _check(choice, events)
    if choice.jac is not None or choice.has_mass or choice.has_pattern:
        raise _refused(
            "jac, mass or jac_sparsity is passed to irad.ode.solve with a state that is not an array of doubles with "
            "one axis",
            "(a) make the state one or (b) leave them out",
            "they are about the entries of a vector",
        )

    def solver_of(f: Any, events: tuple[Any, ...], effects: tuple[Any, ...]) -> Any:
        return _solver(f, events, choice._replace(effects=effects))

    key = _solver_of_states, events, choice
    return remembered(f, key, lambda: solver_of_states(f, events, choice.effects, solver_of, Solution))


def _integration(f: Any, events: tuple[Any, ...], choice: _Choice) -> Any:
    method = METHODS[choice.method]
    if choice.adjoint == "continuous":
        key: Any = (continuous, choice.method)
        return remembered(f, key, lambda: continuous(f, method))
    key, effects = (discrete, events, choice), choice.effects
    if choice.method == "radau":
        jac = None if choice.jac is None else with_needs(choice.jac)
        method = method._replace(steps_of=partial(radau, jac=jac, has_pattern=choice.has_pattern))
        f, events = with_needs(f), tuple(map(with_needs, events))
        effects = tuple(None if effect is None else with_needs(effect) for effect in effects)
    reads = Reads(choice.has_times, choice.has_dense)
    return remembered(f, key, lambda: discrete(f, watching(events, effects), method, choice.snapshots, reads))


def _spread(tolerance: Any, y0: Any) -> Any:
    """A tolerance for each part of a state."""
    raise NotImplementedError


@inner_overload(_spread, strict=False)
def _spread_typed(tolerance: Any, y0: Any) -> Any:
    if not isinstance(tolerance, types.Array):
        return lambda tolerance, y0: np.full(y0.size, np.float64(tolerance))

    def spread(tolerance, y0):  # type: ignore[no-untyped-def]
        if tolerance.size != y0.size:
            raise ValueError(_NOT_AS_MANY)
        return tolerance.astype(np.float64).reshape(y0.size)

    return spread


@inactive_in_irad
@inner_njit
def _check_numbers(t0, t1, wanted, settings):  # type: ignore[no-untyped-def]
    """Refuses numbers that make no sense."""
    rtol, atol = settings.rtol, settings.atol
    for i in range(rtol.size):
        if not (rtol[i] >= 0.0 and atol[i] >= 0.0 and rtol[i] + atol[i] > 0.0):
            raise ValueError("rtol and atol of a differential equation are negative, or both are zero")
    if not settings.longest > 0.0:
        raise ValueError("max_step of a differential equation is not positive")
    if settings.steps < 1:
        raise ValueError("the number of steps of a differential equation is not positive")
    if not (np.isfinite(t0) and np.isfinite(t1)):
        raise ValueError("t_span of a differential equation is not finite")
    sign = 1.0 if t1 >= t0 else -1.0
    before = t0
    for t in wanted:
        if not (sign * before <= sign * t <= sign * t1):
            raise ValueError("t_eval of a differential equation is not in order within t_span")
        before = t


@inner_jitable
def _as_they_are(args, rtol, atol, mass, pattern):  # type: ignore[no-untyped-def]
    return args


@inner_jitable
def _with_needs(args, rtol, atol, mass, pattern):  # type: ignore[no-untyped-def]
    return (Needs(rtol, atol, checked_mass(rtol.size, mass), _coloured(rtol.size, pattern)), *args)


def _coloured(n: Any, pattern: Any) -> Any:
    """A pattern and colours; nothing if there is none."""
    raise NotImplementedError


@inner_overload(_coloured, strict=False)
def _coloured_typed(n: Any, pattern: Any) -> Any:
    if len(pattern) == 0:
        return lambda n, pattern: pattern
    return lambda n, pattern: coloured(n, pattern[0], pattern[1])


def _compiled(f: Any, events: tuple[Any, ...], choice: _Choice) -> Any:
    """The solver of a right-hand side."""
    march, has_times = _integration(f, events, choice), choice.has_times
    calls, further = METHODS[choice.method].calls, METHODS[choice.method].further
    passed = _with_needs if choice.method == "radau" else _as_they_are
    dense_of = kept_steps if choice.has_dense else _no_steps

    @inner_njit
    def solver(  # type: ignore[no-untyped-def]
        y0, t0, t1, args, wanted, rtol, atol, first, longest, most, limit, directions, terminal, mass, pattern
    ):
        settings = Settings(rtol, atol, first, longest, most, limit, directions, terminal)
        _check_numbers(t0, t1, wanted, settings)
        course = march(y0, t0, t1, passed(args, rtol, atol, mass, pattern), wanted, settings)
        row, count, steps, rejected, looked, ended = course.counts
        called = 1 + calls * (steps + rejected) + further * looked + course.applied.sum()
        end = course.times[count - 1] if ended == 1 else t1
        rest = ended == 1, steps, rejected, called, course.which, dense_of(course, t0, t1, end, most)
        if has_times:
            return Solution(wanted[:row], course.rows[:row], course.times, course.states, *rest)
        t, y = np.full(1, end), np.empty((1, y0.size))
        for j in range(y0.size):
            y[0, j] = course.states[count - 1, j] if ended == 1 else course.last[j]
        return Solution(t, y, course.times, course.states, *rest)

    return solver


def _ends(t_span: Any) -> tuple[float, float]:
    """Beginning and end of an integration, in compiled code."""
    raise NotImplementedError


@inner_overload(_ends, strict=False)
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


@inner_jitable
def _no_steps(course, t0, t1, end, most):  # type: ignore[no-untyped-def]
    return ()


@inner_jitable
def _doubles(y0):  # type: ignore[no-untyped-def]
    return y0.astype(np.float64)


@inner_jitable
def _same(given, *others):  # type: ignore[no-untyped-def]
    return given


@inner_jitable
def _no_times(t_eval):  # type: ignore[no-untyped-def]
    return np.zeros(0)


@inner_jitable
def _nothing(given):  # type: ignore[no-untyped-def]
    return ()


@inner_overload(solve, prefer_literal=True, strict=False)
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
    terminal: Any = None,
    adjoint: Any = "discrete",
    snapshots: Any = _SNAPSHOTS,
    max_step: Any = _NO_BOUND,
    jac: Any = None,
    mass: Any = None,
    jac_sparsity: Any = None,
    dense_output: Any = False,
    effect: Any = None,
) -> Any:
    is_vector = _is_vector(y0)
    solver_of, state_of, tolerance_of = (_solver, _doubles, _spread) if is_vector else (_solver_of_states, _same, _same)
    absent = types.none, types.Omitted(None), None
    has_times, events = t_eval not in absent, events_of(event, function_behind)
    has_mass, has_pattern = _has_mass(mass), _has_pattern(jac_sparsity)
    effects = effects_of(effect, len(events), function_behind)
    choice = _Choice(
        literal(method, "method"),
        literal(adjoint, "adjoint"),
        has_times,
        literal(snapshots, "snapshots"),
        None if jac in absent else function_behind(jac),
        has_mass,
        has_pattern,
        literal(dense_output, "dense_output"),
        effects,
    )
    solver = solver_of(function_behind(f), events, choice)
    mass_of, pattern_of = _same if has_mass else _nothing, _same if has_pattern else _nothing
    each, ends_of = for_each_of(len(events)), terminal_in_code(terminal, effects)
    is_fixed, times_of = has_equal_steps(choice.method), as_points if has_times else _no_times

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
        terminal=None,
        adjoint="discrete",
        snapshots=_SNAPSHOTS,
        max_step=_NO_BOUND,
        jac=None,
        mass=None,
        jac_sparsity=None,
        dense_output=False,
        effect=None,
    ):
        most = steps if is_fixed else max_steps
        begin, end = _ends(t_span)
        return solver(
            state_of(y0),
            begin,
            end,
            passed_along(args),
            times_of(t_eval),
            tolerance_of(rtol, y0),
            tolerance_of(atol, y0),
            float(first_step),
            float(max_step),
            int(most),
            int(max_steps),
            each(direction),
            each(ends_of(terminal)),
            mass_of(mass),
            pattern_of(jac_sparsity),
        )

    return solve
