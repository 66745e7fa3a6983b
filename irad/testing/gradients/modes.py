"""The ways in which irad computes a derivative, each made to answer for one trial.

Another mode is another function of a trial, and an entry in `MODES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import irad
from irad.data.copies import copied
from irad.data.floats import Vector, read_floats
from irad.testing.gradients.objective import Objective
from irad.testing.rules.trial import Run, Trial


@dataclass(frozen=True, slots=True)
class Answer:
    """What irad says, and what of.

    Attributes:
        run: value, arguments afterwards, cotangents.
        objective: the number whose derivatives the cotangents are.
    """

    run: Run
    objective: Objective


def by_autodiff(trial: Trial) -> Answer:
    """`irad.autodiff`: both sweeps in one, cotangents of what is left in written arrays included."""
    shadows = trial.shadows(trial.modified)
    objective = trial.objective(shadows)
    return Answer(trial.run(shadows), objective)


def by_vjp(trial: Trial) -> Answer:
    """`irad.vjp`: the sweeps apart; what is left in written arrays has no cotangent."""
    arguments = copied(trial.values)
    value, pullback = irad.vjp(trial.program, *arguments, options=trial.options)
    cotangents = pullback(trial.seed)
    found = tuple(
        read_floats(cotangent) if active else None for cotangent, active in zip(cotangents, trial.active, strict=True)
    )
    weights = np.zeros(0) if trial.seed is None else read_floats(trial.seed)
    return Answer(Run(value, arguments, found), Objective(trial.program, trial.values, weights, {}))


MODES: Final[dict[str, Callable[[Trial], Answer]]] = {"autodiff": by_autodiff, "vjp": by_vjp}


def gradients_match(cotangents: tuple[Vector | None, ...], values: tuple[Any, ...]) -> str | None:
    """What is wrong with the number of floats in cotangents; None if nothing is."""
    for position, (cotangent, value) in enumerate(zip(cotangents, values, strict=True)):
        count = read_floats(value).size
        if cotangent is not None and cotangent.size != count:
            return (
                f"the gradient with respect to argument {position} holds {cotangent.size} floats, the argument {count}"
            )
    return None
