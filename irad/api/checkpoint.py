"""`checkpoint`, `checkpoint_loop` and `checkpoint_while`: less memory in the reverse sweep for running code again.

Each makes a function that does what the plain code does, and gives it a rule (`irad.api.checkpointing`). So it can be
called wherever compiled code is differentiated; elsewhere it is the plain code. Forward mode, which saves nothing,
differentiates the plain code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.extending import overload, register_jitable

from irad.api.checkpointing.loops import counted_sweep, growing_sweep, recovering
from irad.api.checkpointing.random_state import random_state
from irad.api.checkpointing.rules import advanced, finished, is_new, run_again, run_back, saved, started
from irad.api.checkpointing.values import FILE
from irad.api.functions import primal_of, remembered
from irad.api.jit import CompiledFunction, P, R
from irad.api.nopython import function_behind, literal
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.custom import catalogue
from irad.frontend.custom.rule_arguments import AugmentedReturn
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.generated import function_from
from irad.frontend.offered import refuse_on_device

_HELPERS = {
    "AugmentedReturn": AugmentedReturn,
    **{f.__name__: f for f in (finished, is_new, random_state, run_again, run_back, saved, started)},
    "zero_shadow": zero_shadow,
}
_RETURN = """\
    if config.needs_shadow:
        return AugmentedReturn(result, zero_shadow(result), tape)
    return AugmentedReturn(result, None, tape)
"""


@public
def checkpoint(f: Callable[P, R]) -> CompiledFunction[P, R]:
    """A compiled function of which differentiated code saves only the arguments; a decorator.

    In the reverse sweep it runs again, this time with a tape, which is released at once.

    Args:
        f: the function, as in `irad.grad`. It may overwrite arrays that it is passed, which are saved before; the
            arrays that it returns must be its own. Numbers drawn from `np.random` and `random` are drawn again; what it
            prints is printed again.

    Returns:
        The function, compiled, for Python and compiled code.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or takes any number of arguments.

    When a derivative is made, `irad.UnsupportedError` refuses a function that changes memory that is not copied, or may
    return an array that it was passed.

    Source:
        Griewank, Walther: Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 12.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @irad.checkpoint
        ... @njit
        ... def layer(x, weight):
        ...     return np.tanh(weight * x)
        >>> @njit
        ... def loss(x, weight):
        ...     for _ in range(3):
        ...         x = layer(x, weight)
        ...     return x.sum()
        >>> irad.grad(loss)(np.array([0.0, 0.0]), 2.0)
        array([8., 8.])
    """
    primal = primal_of(f)
    made: Any = remembered(primal, (checkpoint,), lambda: _checkpointed(primal))
    compiled: CompiledFunction[P, R] = made
    return compiled


@public
def checkpoint_loop(step: Callable[..., Any], n: int | None, snapshots: int) -> Any:
    """A loop ``for _ in range(n): state = step(state, …)`` of which differentiated code saves only some states.

    The reverse sweep recomputes the others from these, with as few steps as possible: binomial checkpointing. The
    gradient is that of the loop written out, with the same sums in the same order.

    Args:
        step: takes the state and further arguments, which stay the same, and returns the next state; or it changes the
            arrays of the state and returns nothing. The state is a number, an array of numbers or a tuple of these. A
            step may raise exceptions, call derivatives, and contain checkpointed functions and loops.
        n: number of steps; None if it is an argument of the loop.
        snapshots: the most states that are held at the same time, the initial state included; at least 1.

    Returns:
        A compiled function ``(state, …) -> state``, or ``(n, state, …) -> state`` if ``n`` is None, which returns new
        arrays and leaves those of the state unchanged. If the step returns nothing, neither does the loop, and it
        changes the arrays of the state.

    Raises:
        SignatureError: ``step`` is not a function that Numba compiles, takes no state or any number of arguments; ``n``
            or ``snapshots`` is out of range. When it is compiled: the result of a step does not fit the next one.

    When a derivative is made, `irad.UnsupportedError` refuses a step that writes to arrays that are not part of the
    state.

    Source:
        Griewank, Walther: Revolve, ACM TOMS 26 (2000) 19-45.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def step(x, rate):
        ...     return rate * x * (1.0 - x)
        >>> evolve = irad.checkpoint_loop(step, 1000, snapshots=10)
        >>> @njit
        ... def loss(x, rate):
        ...     return evolve(x, rate)
        >>> round(irad.grad(loss, argnums=1)(0.3, 2.5), 6)  # of the fixed point 1 - 1/rate
        0.16
    """
    primal = _checked_step(step, snapshots)
    if n is None:
        return remembered(primal, (checkpoint_loop, int(snapshots)), lambda: _counted(primal, int(snapshots)))
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise SignatureError(
            f"n={n!r} is not a number of steps",
            "(a) pass an int or (b) pass None, and the number as the first argument of each call of the loop",
            "a loop has a whole number of steps",
        )
    key = (checkpoint_loop, int(n), int(snapshots))
    return remembered(primal, key, lambda: _of_length(primal, int(n), checkpoint_loop(primal, None, snapshots)))


@public
def checkpoint_while(condition: Callable[..., Any], step: Callable[..., Any], snapshots: int) -> Any:
    """A loop ``while condition(state, …): state = step(state, …)`` of which differentiated code saves only some states.

    It is `irad.checkpoint_loop` for a number of steps that is not known in advance: the loop chooses its snapshots as
    it runs. Whatever the number turns out to be, no step is recomputed more than once more than if it had been known.

    Args:
        condition: takes the arguments of ``step``; true for another step. It has no derivative.
        step: the step, as in `irad.checkpoint_loop`.
        snapshots: the most states that are held at the same time, as in `irad.checkpoint_loop`.

    Returns:
        A compiled function ``(state, …) -> state``, as in `irad.checkpoint_loop`.

    Raises:
        SignatureError: as in `irad.checkpoint_loop`.

    Source:
        Wang, Moin, Iaccarino: Minimal repetition dynamic checkpointing, SIAM J. Sci. Comput. 31 (2009) 2549-2567.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def is_far(x, a):
        ...     return abs(x * x - a) > 1e-12
        >>> @njit
        ... def newton(x, a):
        ...     return 0.5 * (x + a / x)
        >>> root = irad.checkpoint_while(is_far, newton, snapshots=3)
        >>> round(irad.grad(root, argnums=1)(1.0, 4.0), 9)
        0.25
    """
    primal, holds, most = _checked_step(step, snapshots), primal_of(condition), int(snapshots)
    return remembered(primal, (checkpoint_while, holds, most), lambda: _conditional(primal, holds, most))


def _checked_step(step: Callable[..., Any], snapshots: Any) -> CPUDispatcher:
    """The dispatcher of a step; refuses values that are not steps, or not numbers of snapshots."""
    if isinstance(snapshots, bool) or not isinstance(snapshots, int | np.integer) or snapshots < 1:
        raise SignatureError(
            f"snapshots={snapshots!r} is not a positive int",
            "pass the number of states that may be held at the same time, including the initial state",
            "the reverse sweep recomputes the states from these snapshots",
        )
    primal: CPUDispatcher = primal_of(step)
    if not _names(primal):
        raise SignatureError(
            f"{primal.py_func.__qualname__} takes no state",
            "let it take the state as its first argument",
            "the step of a loop computes the next state from the last",
            SourceLocation.of(primal.py_func),
        )
    return primal


def _names(f: CPUDispatcher) -> list[str]:
    """The names of a function's parameters.

    Raises:
        SignatureError: one takes any number of arguments.
    """
    parameters = inspect.signature(f.py_func).parameters.values()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise SignatureError(
                f"{f.py_func.__qualname__}, which is to be checkpointed, takes any number of arguments",
                f"name each argument, or pass {parameter.name} as one tuple",
                "the arguments of a checkpointed function are saved one by one",
                SourceLocation.of(f.py_func),
            )
    return [parameter.name for parameter in parameters]


def _checkpointed(f: CPUDispatcher) -> CPUDispatcher:
    names = _names(f)
    given = [f"x{i}" for i in range(len(names))]
    # Before the call: the second run has to find the same arguments, and draw the same random numbers.
    sweep = (
        f"    values = ({''.join(f'{each}.value, ' for each in given)})\n"
        "    tape = saved(config, f, values, 0), random_state(f, values)\n"
        "    result = f(*values)\n"
        "    is_new(config, f, values, result)\n"
    )
    back = f"    return run_again(config, f, cotangent, tape, ({_items(given)}))\n"
    return _ruled(f, names, f"irad_called({', '.join(names)})", f, given, {"f": f}, sweep, back)


def _counted(step: CPUDispatcher, most: int) -> CPUDispatcher:
    """The loop whose first argument is the number of steps."""

    @register_jitable
    def loop(n, state, arguments):  # type: ignore[no-untyped-def]
        state = started(step, state, arguments)
        for _ in range(n):
            state = advanced(step, state, arguments)
        return finished(step, state, arguments)

    return _loop(
        step,
        loop,
        [_unused("n", _names(step))],
        most,
        "sweep(config, step, x0.value, begun, arguments, held)",
        {"sweep": counted_sweep(most)},
    )


def _conditional(step: CPUDispatcher, condition: CPUDispatcher, most: int) -> CPUDispatcher:
    """The loop that runs while a condition holds."""

    @register_jitable
    def loop(state, arguments):  # type: ignore[no-untyped-def]
        state = started(step, state, arguments)
        while condition(state, *arguments):
            state = advanced(step, state, arguments)
        return finished(step, state, arguments)

    scope = {"sweep": growing_sweep(most), "condition": condition}
    return _loop(step, loop, [], most, "sweep(config, step, condition, begun, arguments, held)", scope)


def _unused(name: str, names: Sequence[str]) -> str:
    return _unused(f"{name}_steps", names) if name in names else name


def _of_length(step: CPUDispatcher, n: int, loop: CPUDispatcher) -> CPUDispatcher:
    """A loop with a number of steps put in."""
    names = ", ".join(_names(step))
    return _like(step, names, f"irad_called(irad_n, {names})", {"irad_called": loop, "irad_n": n})


def _loop(
    step: CPUDispatcher, loop: Any, leading: list[str], most: int, first_sweep: str, scope: dict[str, Any]
) -> CPUDispatcher:
    """A loop and its rule.

    Args:
        step: its step.
        loop: the plain loop, which takes ``leading``, the state and a tuple of the arguments.
        leading: the names of what its user passes in front of the state.
        most: number of snapshots held.
        first_sweep: the expression of the final state and the snapshots.
        scope: objects that it refers to by name.
    """
    first, *rest = _names(step)
    plain = f"irad_called({_items([*leading, first])}({_items(rest)}))"
    given = [f"x{i}" for i in range(len(leading) + 1 + len(rest))]
    state, arguments = given[len(leading)], given[len(leading) + 1 :]
    sweep = (
        f"    arguments = ({''.join(f'{each}.value, ' for each in arguments)})\n"
        f"    begun = started(step, {state}.value, arguments)\n"
        f"    held = saved(config, step, arguments, {len(leading) + 1})\n"
        f"    state, kept = {first_sweep}\n"
        "    result = finished(step, state, arguments)\n"
        "    tape = (*kept, held)\n"
    )
    call = f"run_back(config, step, recovered, cotangent, tape, {state}, ({_items(arguments)}))"
    back = f"    return (None, *{call})\n" if leading else f"    return {call}\n"
    scope = {**scope, "step": step, "recovered": recovering(most)}
    return _ruled(step, [*leading, first, *rest], plain, loop, given, scope, sweep, back)


def _items(names: Sequence[str]) -> str:
    """The items of a tuple as code, without parentheses."""
    return "".join(f"{name}, " for name in names)


def _ruled(
    f: CPUDispatcher,
    names: Sequence[str],
    plain: str,
    called: Any,
    given: Sequence[str],
    scope: dict[str, Any],
    sweep: str,
    back: str,
) -> CPUDispatcher:
    """A function with a rule.

    Args:
        f: the function that it is made from.
        names: of its parameters.
        plain: the expression that it returns, with ``called`` as ``irad_called``.
        called: see there.
        given: the parameters of the functions of the rule, after those that all rules have.
        scope: objects that these refer to by name.
        sweep: the body of the augmented primal up to its result and its tape.
        back: the body of the reverse.
    """
    made = _like(f, ", ".join(names), plain, {"irad_called": called})
    scope, listing = _HELPERS | scope, ", ".join(given)
    parts = {
        "augmented_primal": f"def rule(config, {listing}):\n{sweep}{_RETURN}",
        "reverse": f"def rule(config, cotangent, tape, {listing}):\n{back}",
    }
    functions = {kind: function_from("rule", source, FILE, scope) for kind, source in parts.items()}
    catalogue.declare_new(made, functions, is_checkpoint=True)
    return made


def _like(f: CPUDispatcher, names: str, returned: str, scope: dict[str, Any]) -> CPUDispatcher:
    """A dispatcher of a function that takes the place of another."""
    function = function_from("plain", f"def plain({names}):\n    return {returned}\n", FILE, scope)
    function.__defaults__ = f.py_func.__defaults__
    function.__name__, function.__qualname__ = f.py_func.__name__, f.py_func.__qualname__
    function.__module__, function.__doc__ = f.py_func.__module__, f.py_func.__doc__
    return CPUDispatcher(function, targetoptions={"nopython": True})


def _checkpoint_typed(f: Any) -> Callable[..., Any]:
    found = checkpoint(function_behind(f))
    return lambda f: found


def _checkpoint_loop_typed(step: Any, n: Any, snapshots: Any) -> Callable[..., Any]:
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


def _checkpoint_while_typed(condition: Any, step: Any, snapshots: Any) -> Callable[..., Any]:
    found = checkpoint_while(function_behind(condition), function_behind(step), literal(snapshots, "snapshots"))
    return lambda condition, step, snapshots: found


for _memory_saving in (checkpoint, checkpoint_loop, checkpoint_while):
    refuse_on_device(_memory_saving, "call the function itself: the tape of a thread is in registers and local memory")
overload(checkpoint, strict=False)(_checkpoint_typed)
overload(checkpoint_loop, prefer_literal=True, strict=False)(_checkpoint_loop_typed)
overload(checkpoint_while, prefer_literal=True, strict=False)(_checkpoint_while_typed)
