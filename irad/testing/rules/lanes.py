"""Several directions at once: each has to give what it gives alone, to rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import irad
from irad.api.annotations import annotation_for
from irad.data.copies import copied
from irad.data.floats import Vector, read_floats
from irad.errors import NoRuleError
from irad.testing.gradients.trial import Trial, draw_tangents, holds, only_memory, run_forward
from irad.testing.rules.fault import Property, RuleFault


def check_lanes_forward(f: Any, trial: Trial, width: int) -> None:
    """Compares tangents in several directions with those in each alone; a rule that must not be repeated is left out.

    Raises:
        RuleFault: they differ.
    """
    trials = [replace(trial, draw=lane) for lane in range(width)]
    alone = [run_forward(each, draw_tangents(each, 1.0)) for each in trials]
    _compare(f, trial, lambda: _forward(trials), [each.tangents for each in alone], "forward")


def check_lanes_reverse(f: Any, trial: Trial, width: int) -> None:
    """Compares the cotangents of several seeds at once with those of each alone; skips a rule that must not repeat.

    Raises:
        RuleFault: they differ.
    """
    if not any(active and holds(value)[1] for value, active in zip(trial.values, trial.active, strict=True)):
        trial = _with_memory(trial)
    trials = [replace(trial, draw=lane) for lane in range(width)]
    alone = [each.run(each.shadows(each.modified)).cotangents for each in trials]
    _compare(f, trial, lambda: _reverse(trials), alone, "reverse")


@dataclass(frozen=True)
class _Lanes:
    """Result of one run: value, arguments afterwards, and in each direction the derivatives as vectors."""

    value: Any
    after: tuple[Any, ...]
    derivatives: list[tuple[Vector | None, ...]]


def _compare(
    f: Any, trial: Trial, run: Callable[[], _Lanes], alone: Sequence[tuple[Vector | None, ...]], part: str
) -> None:
    try:
        found = run()
    except NoRuleError:  # a rule that is for one direction, and must not be called for each
        return
    if (different := trial.difference(found.value, found.after)) is not None:
        position, wanted, got = different
        what = "the value" if position is None else f"argument {position} afterwards"
        _fail(f, trial, f"{what} with {len(alone)} directions", wanted, got, part)
    for lane, (mine, expected) in enumerate(zip(found.derivatives, alone, strict=True)):
        for number, (got, wanted) in enumerate(zip(mine, expected, strict=True)):
            if got is not None and wanted is not None and not trial.agree(got, wanted):
                _fail(f, trial, f"{_name(number, part)} in direction {lane} of {len(alone)}", wanted, got, part)


def _name(number: int, part: str) -> str:
    if part == "reverse":
        return f"the cotangent of argument {number}"
    return f"the tangent of {f'argument {number - 1} afterwards' if number else 'the value'}"


def _fail(f: Any, trial: Trial, what: str, wanted: object, got: object, part: str) -> None:
    raise RuleFault(Property.WIDTH, f, what, wanted, got, trial.description, part)


def _forward(trials: Sequence[Trial]) -> _Lanes:
    """Runs forward mode in the directions of the trials at once."""
    trial, arguments = trials[0], copied(trials[0].values)
    columns = list(zip(*(draw_tangents(each, 1.0) for each in trials), strict=True))
    annotated = [
        irad.BatchDuplicated(value, tangents) if active else irad.Const(value)
        for value, tangents, active in zip(arguments, columns, trial.active, strict=True)
    ]
    found, value = irad.autodiff(irad.ForwardWithPrimal, trial.program, *annotated, options=trial.options)
    lanes = []
    for lane, tangent in enumerate(found):
        triples = zip(arguments, columns, trial.active, strict=True)
        after = (only_memory(argument, each[lane]) if active else None for argument, each, active in triples)
        lanes.append((read_floats(tangent), *after))
    return _Lanes(value, arguments, lanes)


def _reverse(trials: Sequence[Trial]) -> _Lanes:
    """Runs both sweeps for the cotangents of the trials at once."""
    trial, arguments = trials[0], copied(trials[0].values)
    columns = list(zip(*(each.shadows(each.modified) for each in trials), strict=True))
    annotated = [
        _batch(value, shadows) if active else irad.Const(value)
        for value, shadows, active in zip(arguments, columns, trial.active, strict=True)
    ]
    seed = None if trial.seed is None else tuple(each.seed for each in trials)
    found, value = irad.autodiff(irad.ReverseWithPrimal, trial.program, *annotated, seed=seed, options=trial.options)
    lanes = [
        tuple(_of_lane(lane, *each) for each in zip(found, columns, trial.active, strict=True))
        for lane in range(len(trials))
    ]
    return _Lanes(value, arguments, lanes)


def _of_lane(lane: int, gradients: Any, shadows: Sequence[Any], active: bool) -> Vector | None:
    if not active:
        return None
    return read_floats(shadows[lane] if gradients is None else gradients[lane])


def _batch(value: Any, shadows: Iterable[Any]) -> Any:
    """An active argument as `irad.autodiff` takes it."""
    numbers, memory = holds(value)
    kind = annotation_for(numbers=numbers, memory=memory, is_batch=True)
    return kind(value, tuple(shadows)) if memory else kind(value)


def _with_memory(trial: Trial) -> Trial:
    """A trial with one more array, which is not used: directions are counted by the shadows of memory."""
    program = trial.program

    @irad.jit
    def beside(*arguments):  # type: ignore[no-untyped-def]
        return program(*arguments[:-1])

    values, active = (*trial.values, np.zeros(1)), (*trial.active, True)
    held = (*trial.held, False) if trial.held else ()
    return replace(trial, program=beside, values=values, active=active, held=held, reference=None, slopes={})
