"""`irad.check` of kernels: what prevents a derivative, or how it would work; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numba
from numba.core import types
from numba.core.errors import NumbaError

from irad.cuda.calls.flatten import names_of
from irad.cuda.devices.device import Launch
from irad.errors import InternalError, IradError, SignatureError, UnsupportedProgram
from irad.frontend.numba.messages import location_of
from irad.message import with_article
from irad.options import Options
from irad.report.kernels.collect import KernelCollector
from irad.report.kernels.subject import KernelSubject, check_count, kernel_subject
from irad.report.model import Report
from irad.report.results import CheckReport
from irad.report.shown.amounts import format_bytes
from irad.report.shown.text import addition_words
from irad.report.tape_size import formula

_BARRIERS = ("call of cuda.syncthreads", "call of cuda.syncwarp")


def check_kernel(
    kernel: Any,
    args: tuple[Any, ...],
    positions: int | Sequence[int] | None,
    options: Options,
    launch: Launch | None = None,
) -> CheckReport:
    """Result of `irad.check` for a kernel.

    Args:
        kernel: a kernel of `numba.cuda.jit`.
        args: arguments of one launch, or Numba types in their place.
        positions: of the arguments to differentiate; None for all that hold floats.
        options: options of the derivative.
        launch: configuration of the launch; None for as many axes as the kernel uses.

    Raises:
        SignatureError: the kernel takes another number of arguments.
    """
    check_count(kernel, args)
    wanted = (positions,) if isinstance(positions, int) else positions
    kinds = tuple(zip(names_of(kernel), map(_kind, args), strict=True))
    plain = CheckReport(kernel.py_func.__qualname__, location_of(kernel.py_func), kinds, ())
    try:
        _check_types(kinds, args)
        subject = kernel_subject(kernel, args, wanted, options)
        if launch is not None:
            subject = replace(subject, launched_axes=launch.axes)
        plain = replace(plain, positions=subject.positions)
        collector = KernelCollector(subject)
        report, beside = collector.report(()), collector.derived[0].shared_beside
    except InternalError:
        raise
    except UnsupportedProgram as several:
        return replace(plain, problems=tuple({str(each): each for each in several.errors}.values()))
    except IradError as error:
        return replace(plain, problems=(error,))
    return replace(plain, plan=tuple(_plan(subject, report, beside)))


def _kind(value: Any) -> str:
    if isinstance(value, types.Type):
        return str(value)
    try:
        return str(numba.typeof(value))
    except (ValueError, NumbaError):
        return type(value).__name__


def _check_types(kinds: Sequence[tuple[str, str]], args: tuple[Any, ...]) -> None:
    for (name, kind), value in zip(kinds, args, strict=True):
        if kind == type(value).__name__ and not isinstance(value, types.Type | int | float | complex):
            raise SignatureError(
                f"{name} is {with_article(kind)}, which kernels cannot take",
                "pass arrays, numbers, records or tuples of these",
                "Numba has no type for it",
            )


def _plan(subject: KernelSubject, report: Report, beside: int) -> Iterator[str]:
    """Sentences on the plan of the derivative; ``beside`` are the bytes of its shadows in dynamic shared memory."""
    yield f"for launches along {subject.axes} {'axes' if subject.axes > 1 else 'axis'}, both sweeps in one launch"
    for addition in report.additions:
        yield f"adds {addition_words(addition)}"
    values = [value for function in report.functions for value in function.values]
    places = [value.places[0].line for value in values if value.operation.startswith(_BARRIERS) and value.places]
    if places:
        lines = ", ".join(map(str, sorted(set(places))))
        yield f"threads wait for each other in the reverse sweep where they do in the kernel (lines {lines})"
    if beside:
        yield f"shadows of shared arrays are {format_bytes(beside)} of dynamic shared memory"
    saved = [text for text in formula(report) if not text.endswith("per call")]
    local = [text.removesuffix(" per call") for text in formula(report) if text.endswith("per call")]
    if local:
        yield f"each thread keeps {' + '.join(local)} in its local memory"
    yield f"each thread has a tape: {' + '.join(saved)}" if saved else "no tape"
