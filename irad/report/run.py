"""Runs the derivative that a report is about, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from irad.api.separate.vjp import vjp
from irad.data.copies import copied
from irad.data.floats import floats_only
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher
from irad.frontend.calls.task import Role, Seed
from irad.report.subject import Subject

Run: TypeAlias = Callable[[tuple[Any, ...]], list[tuple[Any, tuple[Any, ...]]]]
"""Runs both sweeps once for arguments; gives the dispatchers that it has called, and with what."""


def derivative_of(subject: Subject, args: tuple[Any, ...]) -> Run:
    """The derivative as a function of the primal's arguments.

    Values stand in for their own cotangents, as if half their square was differentiated.
    """
    (_, dispatcher, _), *_ = subject.compiled()
    if isinstance(dispatcher, AugmentedDispatcher):
        return lambda given: _sweeps(subject, dispatcher, given)
    leading = [_shadow(args[position], subject.task.role_of(position)) for position in subject.task.destinations]
    if dispatcher.kind == "value_and_grad_into" and not subject.task.single:
        leading = [tuple(leading)]
    if subject.task.seed is Seed.GIVEN:
        leading.append(floats_only(copied(subject.primal(*copied(args)))))

    def run(given: tuple[Any, ...]) -> list[tuple[Any, tuple[Any, ...]]]:
        dispatcher(*leading, *given)
        return [(dispatcher, (*leading, *given))]

    return run


def _sweeps(subject: Subject, augmented: Any, given: tuple[Any, ...]) -> list[tuple[Any, tuple[Any, ...]]]:
    value, pullback = vjp(subject.primal, *given, options=subject.task.options)
    seed = floats_only(copied(value))
    pullback(seed)
    tape = pullback._tape
    return [(augmented, given), (tape.specialisation.pullback, (*tape.saved(), seed))]


def _shadow(value: Any, role: Role) -> Any:
    """Memory for a derivative; that of a number goes to an array of one."""
    return np.array([value]) if role is Role.INTO and np.isscalar(value) else floats_only(copied(value))
