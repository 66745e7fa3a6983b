"""`tape_report`: how much memory the tape of one call takes, measured by value and by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from irad.api.functions import check_options, is_kernel, launched_of, no_configuration, options_or_default, primal_of
from irad.api.grad import grad
from irad.api.selection import chosen
from irad.api.split import AugmentedSweep
from irad.api.vjp import vjp
from irad.frontend.calls.watch_hooks import measured
from irad.frontend.offered import OUTSIDE, refuse_in_compiled_code
from irad.options import Options
from irad.report.results import TapeReport


def tape_report(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> TapeReport:
    """Calls a derivative and measures its tape.

    Args:
        f: the function, as in `irad.grad`, or the augmented sweep of `irad.split`, or a CUDA kernel with the
            configuration of a launch: ``kernel[blocks, threads]`` or ``irad.cuda.grad(kernel)[blocks, threads]``.
        args: its arguments, annotated if the sweep takes annotated ones; arrays that ``f`` writes to are written. A
            kernel runs on the executor, on copies.
        argnums: positions, as in `irad.grad`, for a function that returns a float. None: the forward sweep of
            `irad.vjp` is measured, which saves more, since arguments may change before the pullback runs; for a kernel,
            all arguments that hold floats.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        An `irad.TapeReport`. Values that are computed once per call are in the frame, those of counted loops in slabs,
        those of other loops in records.

    Raises:
        SignatureError: the arguments do not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def chain(x, n):
        ...     for _ in range(n):
        ...         x = np.sin(x)
        ...     return x
        >>> irad.tape_report(chain, 0.5, 1000).total >= 8000
        True
    """
    check_options(options)
    launched = launched_of(f)
    if launched is not None:
        from irad.report.kernels.tape import kernel_tape_report  # imports numba.cuda

        positions = chosen(launched.kernel.py_func, argnums, argnames, None)
        return kernel_tape_report(launched, args, positions, options)
    if is_kernel(f):
        raise no_configuration(f, "irad.tape_report")
    if isinstance(f, AugmentedSweep):
        measured_sweep = f.with_options(replace(f.sweep.options, measure_tape=True))
        measured_sweep(*args)
        found = measured()
        return TapeReport(f.sweep.primal.py_func.__qualname__, found.uses() if found is not None else (), "irad.split")
    measuring = replace(options_or_default(options), measure_tape=True)
    primal = primal_of(f)
    argnums = chosen(f, argnums, argnames, None)
    if argnums is None:
        vjp(f, *args, options=measuring)
    else:
        grad(f, argnums, options=measuring)(*args)
    found = measured()
    measured_by = "irad.vjp" if argnums is None else "irad.grad"
    return TapeReport(primal.py_func.__qualname__, found.uses() if found is not None else (), measured_by)


refuse_in_compiled_code(tape_report, OUTSIDE)
