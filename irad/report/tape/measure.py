"""One call of a derivative, to measure its tape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.core import types

from irad.data.copies import copied
from irad.debug.tape import Measurement
from irad.frontend.calls.watch_hooks import measured
from irad.report.run import derivative_of
from irad.report.subject import Subject


def is_call(args: tuple[Any, ...]) -> bool:
    """Whether arguments are values, not types."""
    return not any(isinstance(argument, types.Type) for argument in args)


def measure(subject: Subject, args: tuple[Any, ...]) -> Measurement:
    """Calls a derivative and counts.

    Args:
        subject: the derivative.
        args: arguments of the function, which stay as they are: the call gets copies.

    Raises:
        Exception: whatever the function raises.
    """
    assert subject.again is not None, "made by `subject_of`"
    metered = subject.again(replace(subject.task.options, measure_tape=True))
    measured()  # of an earlier call, discarded
    derivative_of(metered, args)(copied(args))
    found = measured()
    assert found is not None
    return found
