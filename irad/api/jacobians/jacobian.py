"""`jacobian` and `value_and_jacobian`.

A Jacobian is a Numba dispatcher, as gradients are. Its code is Python code written for the types of a call, which calls
a pushforward (`columns`) or a pullback (`rows`); these are compiled lazily, where Python calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.functions import remembered
from irad.api.jacobians.task import JacobianTask, Mode, returning
from irad.api.jit import CompiledFunction, P
from irad.api.makers import MAKERS, MakerCall, derivative_by_code, made, maker
from irad.api.selection import selected
from irad.api.specialised import Written, specialised
from irad.errors import SignatureError
from irad.frontend.calls.definition import Returned
from irad.frontend.calls.dispatcher import DerivativeDispatcher, parameter_names, part_at, python_type, speculating
from irad.frontend.calls.task import Returns
from irad.frontend.numba.messages import location_of
from irad.options import Options

if TYPE_CHECKING:
    from irad.api.jacobians.call import Call


@maker
def jacobian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    mode: Mode | None = None,
    chunk: int | None = None,
    outputs: int | Sequence[int] | None = None,
    holomorphic: bool | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, Any]:
    """All partial derivatives of what a function returns.

    The result takes the arguments of ``f``. For an array that ``f`` returns, and an array ``argnums``, it is an array
    of the shape ``(*value.shape, *argument.shape)``; numbers have the shape ``()``. Tuples have a Jacobian for each
    entry, first those of the value, then those of the arguments; None stands for what has no derivative. dtypes are
    those of NumPy's arithmetic for value and argument.

    Columns are computed by forward mode, with a run of the function for each ``chunk`` of the numbers that are
    differentiated; rows by reverse mode, with one run, and a reverse sweep for each ``chunk`` of the numbers that are
    returned.

    Complex numbers: the derivative of a complex number with respect to a real one is complex; that of a real number
    with respect to a complex one is d/dRe + i·d/dIm, as that of `irad.grad`. For complex functions of complex numbers a
    convention has to be chosen: ``holomorphic=True`` gives df/dz; it is up to you that ``f`` is complex differentiable.
    ``holomorphic=False`` gives a pair: the derivatives with respect to z and to its conjugate.

    Args:
        f: the function, as in `irad.grad`; it may return numbers, arrays and tuples of these.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated; the result is ``(jacobian, aux)``.
            With ``outputs``, ``aux`` is what ``f`` returns.
        mode: "forward" or "reverse"; None: forward, unless there are fewer numbers in the value than in the arguments,
            or the function has side effects: it draws random numbers, changes lists or objects.
        chunk: how many columns forward mode computes in each run of the function, 8 unless given; how many rows reverse
            mode computes in each reverse sweep, 1 unless given.
        outputs: the position, or positions, of arrays that ``f`` writes its results to: it is their final content that
            is differentiated, and not what ``f`` returns.
        holomorphic: as above.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable; for a tuple of ``argnums`` it returns a tuple of Jacobians in place of each.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def polar(p):
        ...     return np.array([p[0] * np.cos(p[1]), p[0] * np.sin(p[1])])
        >>> irad.jacobian(polar)(np.array([2.0, 0.0]))
        array([[1., 0.],
               [0., 2.]])
        >>> @njit
        ... def differences(out, x):
        ...     for i in range(out.size):
        ...         out[i] = x[i + 1] - x[i]
        >>> irad.jacobian(differences, argnums=1, outputs=0)(np.empty(2), np.ones(3))
        array([[-1.,  1.,  0.],
               [ 0., -1.,  1.]])
    """
    given = mode, chunk, outputs, holomorphic
    return made("jacobian", f, argnums, argnames, has_aux, options, matrix, *given)


@maker
def value_and_jacobian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    mode: Mode | None = None,
    chunk: int | None = None,
    outputs: int | Sequence[int] | None = None,
    holomorphic: bool | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CompiledFunction[P, Any]:
    """The value of a function and its Jacobian, in one run.

    Args:
        f: the function, as in `irad.jacobian`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        mode: "forward", "reverse" or None, as in `irad.jacobian`.
        chunk: number of columns or rows that are computed at a time, as in `irad.jacobian`.
        outputs: positions of arrays that ``f`` writes its results to, as in `irad.jacobian`.
        holomorphic: the convention for complex functions of complex numbers, as in `irad.jacobian`.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that returns ``(value, jacobian)``, or ``((value, aux), jacobian)`` with ``has_aux``; the Jacobian is
        that of `irad.jacobian`.

    Raises:
        SignatureError: as in `irad.jacobian`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x):
        ...     return x * x
        >>> irad.value_and_jacobian(squares)(np.array([1.0, 3.0]))
        (array([1., 9.]), array([[2., 0.],
               [0., 6.]]))
    """
    given = mode, chunk, outputs, holomorphic
    return made("value_and_jacobian", f, argnums, argnames, has_aux, options, matrix, *given)


@maker
def value_and_jacobian_into(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    mode: Mode | None = None,
    chunk: int | None = None,
    outputs: int | Sequence[int] | None = None,
    holomorphic: bool | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function; its Jacobian is written to arrays that are passed in.

    The result is called as ``(out, *args)``. ``out`` has the structure of the Jacobian, with an array of one element in
    place of a number. Its arrays must not share memory with the arguments or with each other; their previous contents
    do not matter.

    Args:
        f: the function, as in `irad.jacobian`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated.
        mode: "forward", "reverse" or None, as in `irad.jacobian`.
        chunk: number of columns or rows that are computed at a time, as in `irad.jacobian`.
        outputs: positions of arrays that ``f`` writes its results to, as in `irad.jacobian`.
        holomorphic: the convention for complex functions of complex numbers, as in `irad.jacobian`.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable ``(out, *args) -> value``; with ``has_aux`` it returns ``(value, aux)``.

    Raises:
        SignatureError: as in `irad.jacobian`; in a call: ``out`` does not have the structure of the Jacobian.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x):
        ...     return x * x
        >>> jacobian = np.empty((2, 2))
        >>> irad.value_and_jacobian_into(squares)(jacobian, np.array([1.0, 3.0]))
        array([1., 9.])
        >>> jacobian
        array([[2., 0.],
               [0., 6.]])
    """
    given = mode, chunk, outputs, holomorphic
    return made("value_and_jacobian_into", f, argnums, argnames, has_aux, options, matrix, *given)


def matrix(
    call: MakerCall,
    mode: Mode | None,
    chunk: int | None,
    outputs: int | Sequence[int] | None = None,
    holomorphic: bool | None = None,
    is_showing: bool = False,
    plain: Any = None,
    shows_zeros: Callable[[bool], JacobianDispatcher] | None = None,
) -> Any:
    """The transform of Jacobians, and of Hessians, which are the Jacobians of gradients.

    ``plain``, ``shows_zeros`` and ``is_showing`` are as `irad.api.makers.directional` takes them.
    """
    row, wanted, options = call.row, call.wanted, call.options
    primal = wanted.primal
    _check_mode(primal, mode, chunk)
    results = None if outputs is None else selected(call.f, outputs)
    arrays = () if results is None else results.positions
    task = JacobianTask(
        call.key, wanted.positions, wanted.single, chunk, holomorphic, call.has_aux, options, arrays, is_showing
    )
    written = None if results is None else results.argnums
    target = primal if written is None else returning(primal, written, call.has_aux)
    if not row.of and not is_showing:
        plain = target if options.speculates else None

        def showing(watched: bool) -> Any:
            shown = replace(options, debug=watched)
            return call.again(shown, mode, chunk, written, holomorphic, True)

        shows_zeros = showing
    rebuild = call.rebuild(mode, chunk, written, holomorphic)
    found = remembered(target, (task, mode), lambda: _build(target, task, mode, rebuild, plain, shows_zeros))
    found.names_primal = not row.of
    return found


def _check_mode(primal: CPUDispatcher, mode: Any, chunk: Any) -> None:
    if mode is not None and mode not in get_args(Mode):
        raise SignatureError(
            f"mode={mode!r} is not a mode of irad.jacobian",
            '(a) mode="forward" or (b) mode="reverse" or (c) leave it out',
            "forward mode computes columns of the Jacobian, reverse mode rows",
            location_of(primal.py_func),
        )
    if chunk is not None and (type(chunk) is not int or chunk < 1):
        raise SignatureError(
            f"chunk={chunk!r} is not a number of columns or rows",
            "pass a positive int, or leave it out",
            "forward mode computes as many columns in each run of the function, reverse mode rows in each sweep",
            location_of(primal.py_func),
        )


class JacobianDispatcher(DerivativeDispatcher):
    """A compiled Jacobian. Python calls rows only where they are the better choice; compiled code has both."""

    lazy: tuple[DerivativeDispatcher, DerivativeDispatcher] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The Jacobian at these arguments.

        Raises:
            SignatureError: the arguments do not fit the function's parameters.
        """
        if self.lazy is None:
            return super().__call__(*args, **kwargs)
        found, is_complete = self.lazy[0](*args, **kwargs)
        return found if is_complete else self.lazy[1](*args, **kwargs)


def _build(
    primal: CPUDispatcher,
    task: JacobianTask,
    mode: Mode | None,
    rebuild: tuple[Any, ...],
    plain: Any = None,
    shows_zeros: Callable[[bool], JacobianDispatcher] | None = None,
) -> JacobianDispatcher:
    names = parameter_names(primal.py_func)
    parameters = [*task.leading, *names]
    arithmetic = replace(task, options=replace(task.options, zero_times_infinity="nan"))
    in_it = [] if task.returns is Returns.GRADIENT else [1]  # where the Jacobian is in what the code returns

    def call_for(function: CPUDispatcher, task: JacobianTask, given: tuple[Type, ...]) -> Call:
        from irad.api.jacobians.call import Call  # the engine: a Jacobian from disk does without

        return Call(function, task, given)

    def on_device(given: tuple[Type, ...], returned: Returned) -> Callable[..., Any]:
        from irad.api.jacobians.call import device_code  # the engine, as above

        return device_code(primal, task, given, returned)

    def make(write: Callable[[Call], Written], part: int | None = None) -> JacobianDispatcher:
        def of(whole: JacobianDispatcher) -> DerivativeDispatcher:
            return whole if part is None or whole.lazy is None else whole.lazy[part]

        call = specialised(task.key, parameters, lambda given: write(call_for(primal, task, given)), on_device)
        certain = None
        if plain is not None:
            quick = specialised(task.key, parameters, lambda given: write(call_for(plain, arithmetic, given)))
            where = part_at(*([0] if part == 0 else []), *in_it, *([0] if task.has_aux and not in_it else []))
            into = 0 if task.returns is Returns.VALUE else None
            call = speculating(
                parameters,
                quick,
                call,
                lambda given: call_for(plain, arithmetic, given).may_have_zeros_that_are_not_strong(
                    "reverse" if part == 1 else mode
                ),
                where if into is None else None,
                into,
                part_at(1) if part == 0 else None,
            )
            certain = lambda: of(_build(primal, task, mode, rebuild, None, shows_zeros))  # noqa: E731
        boxed_as = python_type(task.returns, has_aux=task.has_aux)

        def flagged(result: Any) -> Any:
            return types.Tuple((boxed_as(result.types[0]), result.types[1]))

        return derivative_by_code(
            JacobianDispatcher,
            MAKERS[task.key],
            primal,
            call,
            rebuild,
            task.argnums,
            task.options,
            boxed_as=boxed_as if part != 0 else flagged,
            certain=certain,
            shows_zeros=None if shows_zeros is None else lambda watched: of(shows_zeros(watched)),
            variant=(task.shows_zeros, part),
        )

    if mode == "forward":
        return make(lambda call: call.columns())
    if mode == "reverse":
        return make(lambda call: call.rows())
    first, rows = make(lambda call: call.first(), 0), make(lambda call: call.rows(), 1)
    whole = make(lambda call: call.either(first, rows))
    whole.lazy = first, rows
    return whole
