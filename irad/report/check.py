"""`check`: whether a function can be differentiated, and everything that prevents it, without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irad.api.argument_types import bound, kinds_of, literal_where_asked
from irad.api.functions import kernel_of, launched_of, options_or_default, primal_of
from irad.api.selection import check_positions, chosen
from irad.errors import IradError
from irad.frontend.calls.problems import default_positions, problems_of
from irad.frontend.calls.raising import public
from irad.frontend.numba.messages import location_of
from irad.frontend.offered import OUTSIDE, refuse_in_compiled_code
from irad.options import Options
from irad.report.results import CheckReport


@public
def check(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CheckReport:
    """Reports everything that prevents a function from being differentiated, without running it.

    Args:
        f: the function, as in `irad.grad`; it may return anything that `irad.vjp` takes, or write to its arrays. Or a
            kernel of ``numba.cuda.jit``, also with the configuration of a launch: ``kernel[blocks, threads]``.
        args: arguments of one call, or Numba types in their place (``numba.float64[:]``).
        argnums: positions to differentiate with respect to; by default all arguments that hold floats.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative would be created; see `irad.Options`.

    Returns:
        An `irad.CheckReport`, which lists the problems; ``print`` shows it as text.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or does not take such arguments.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> irad.check(square, 3.0).supported
        True
    """
    launched = launched_of(f)
    kernel = kernel_of(f) if launched is None else launched.kernel
    if kernel is not None and not kernel.targetoptions.get("device"):
        from irad.cuda.kernels import launch_of  # imports numba.cuda
        from irad.report.kernels.check import check_kernel

        made = launched.options if launched is not None else getattr(f, "options", None)
        launch = None if launched is None else launch_of(launched.configuration)
        positions = chosen(kernel.py_func, argnums, argnames, None)
        return check_kernel(kernel, args, positions, options or made or options_or_default(None), launch)
    primal, options = primal_of(f), options_or_default(options)
    argnums = chosen(f, argnums, argnames, None)
    given = None if argnums is None else check_positions(primal, argnums)
    values = bound(primal, args)
    try:
        kinds = kinds_of(primal, values)
    except IradError as error:
        return _report(primal, {name: type(value).__name__ for name, value in values.items()}, (), (error,))

    def look(kinds: dict[str, Any]) -> CheckReport:
        argument_types = tuple(kinds.values())
        positions = default_positions(primal, argument_types) if given is None else given
        problems = problems_of(primal, argument_types, positions, options)
        return _report(primal, kinds, positions, problems)

    return literal_where_asked(primal, values, kinds, look)


def _report(
    primal: Any, kinds: dict[str, Any], positions: tuple[int, ...], problems: tuple[IradError, ...]
) -> CheckReport:
    function = primal.py_func
    listed = tuple((name, str(kind)) for name, kind in kinds.items())
    return CheckReport(function.__qualname__, location_of(function), listed, positions, problems)


refuse_in_compiled_code(check, OUTSIDE)
