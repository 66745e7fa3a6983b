"""One run in forward mode of a program at one point, with random tangents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import irad
from irad.data.copies import copied
from irad.data.floats import Vector, floats_only, in_types_of, read_floats, with_floats
from irad.data.structure import rebuilt
from irad.testing.rules.trial import Trial, fill, holds, only_memory


@dataclass(frozen=True)
class ForwardRun:
    """What one run in forward mode gave.

    Attributes:
        value: of the primal.
        after: the arguments afterwards.
        tangents: of the value and of the memory of each argument afterwards; None for a constant one.
    """

    value: Any
    after: tuple[Any, ...]
    tangents: tuple[Vector | None, ...]


def draw_tangents(trial: Trial, sign: float, only: int | None = None) -> tuple[Any, ...]:
    """Random tangents for the arguments that take part; zeros for all but one, if ``only`` that is to vary."""
    generator = np.random.default_rng(11 + trial.draw)

    def draw(factor: float, shape: Any) -> Any:
        return factor * generator.uniform(0.5, 1.5, shape)

    factors = (sign if only in (None, position) else 0.0 for position in range(len(trial.values)))
    return tuple(
        _tangent(*each) for each in zip(copied(trial.values), (partial(draw, f) for f in factors), strict=True)
    )


def _tangent(value: Any, draw: Callable[[Any], Any]) -> Any:
    """A tangent: the arrays of a value, overwritten, and other numbers."""
    if isinstance(value, tuple):
        return rebuilt(value, [_tangent(each, draw) for each in value])
    if holds(value)[1]:
        fill(value, draw)
        return value
    count = read_floats(value).size
    return floats_only(in_types_of(with_floats(value, np.asarray(draw(count))), value)) if count else value


def directions_of(trial: Trial, tangents: tuple[Any, ...]) -> dict[int, Vector]:
    """The tangents of the arguments that take part as vectors, before a run overwrites them."""
    return {i: read_floats(each) for i, each in enumerate(tangents) if trial.active[i]}


def run_forward(trial: Trial, tangents: tuple[Any, ...]) -> ForwardRun:
    """Runs forward mode, overwriting tangents of memory."""
    arguments = copied(trial.values)
    triples = list(zip(arguments, tangents, trial.active, strict=True))
    annotated = [irad.Duplicated(value, tangent) if active else irad.Const(value) for value, tangent, active in triples]
    found, value = irad.autodiff(irad.ForwardWithPrimal, trial.program, *annotated, options=trial.options)
    after = (only_memory(value, tangent) if active else None for value, tangent, active in triples)
    return ForwardRun(value, arguments, (read_floats(found), *after))
