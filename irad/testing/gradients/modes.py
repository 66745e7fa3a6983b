"""The ways in which irad computes a derivative, each made to answer for one trial.

Another mode is another function of a trial, and an entry in `MODES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

import irad
from irad.api.forward import with_direction
from irad.data.copies import copied
from irad.data.floats import Vector, floats_only, in_types_of, read_floats, with_floats
from irad.debug.verdict import words_of_zero
from irad.frontend.calls.retry import zero_that_won
from irad.testing.gradients.objective import Objective
from irad.testing.gradients.trial import Run, Trial


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
    return Answer(Run(value, arguments, found), _objective_of_value(trial))


def by_jvp(trial: Trial) -> Answer:
    """`irad.pushforward`: a run in the direction of each number; what is left in written arrays does not count."""
    objective = _objective_of_value(trial)
    positions = tuple(position for position, active in enumerate(trial.active) if active)
    push = irad.pushforward(trial.program, positions, options=trial.options)
    still = {position: np.zeros(read_floats(trial.values[position]).size) for position in positions}

    def run(moving: dict[int, Vector]) -> tuple[Any, Any, tuple[Any, ...]]:
        arguments = copied(trial.values)
        tangents = tuple(_tangent(trial.values[p], vector) for p, vector in (still | moving).items())
        return *push(*with_direction(arguments, positions, tangents)), arguments

    def slope(position: int, direction: Vector) -> float:
        _, tangent, _ = run({position: direction})
        return float(objective.weights @ read_floats(tangent)) if objective.weights.size else 0.0

    value, _, arguments = run({})
    found = {p: np.array([slope(p, one) for one in np.eye(vector.size)]) for p, vector in still.items()}
    return Answer(Run(value, arguments, tuple(found.get(p) for p in range(len(trial.values)))), objective)


def hidden_zero(trial: Trial) -> str:
    """What zero that won over an infinity may be the reason for a wrong number, and where; empty if none is known.

    Of a function that returns a float; and of a gradient, whose zeros are lost to its own derivative.
    """
    of_gradient = getattr(trial.program, "shows_all_zeros", None)
    positions = tuple(position for position, active in enumerate(trial.active) if active)
    if of_gradient is not None:
        found = zero_that_won(of_gradient, trial.program(*copied(trial.values)), copied(trial.values), {}, into=False)
    elif isinstance(trial.plain[0], float) and not any(trial.modified):
        options = replace(trial.options or irad.Options(), debug=True)
        derivative = irad.grad(trial.program, positions, options=options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = derivative.hidden_zero(*copied(trial.values))
            except irad.NonFiniteError:
                return ""  # then the number is not a zero
    else:
        return ""
    where = "" if found is None or found.location is None else f" at {found.location}"
    return "" if found is None else words_of_zero(found) + where


def _tangent(value: Any, leaves: Vector) -> Any:
    """A tangent of an argument: in its structure and precision."""
    return floats_only(in_types_of(with_floats(value, leaves), value))


def _objective_of_value(trial: Trial) -> Objective:
    weights = np.zeros(0) if trial.seed is None else read_floats(trial.seed)
    return Objective(trial.program, trial.values, weights, {})


MODES: Final[dict[str, Callable[[Trial], Answer]]] = {"autodiff": by_autodiff, "vjp": by_vjp, "jvp": by_jvp}


def gradients_match(cotangents: tuple[Vector | None, ...], values: tuple[Any, ...]) -> str | None:
    """What is wrong with the number of floats in cotangents; None if nothing is."""
    for position, (cotangent, value) in enumerate(zip(cotangents, values, strict=True)):
        count = read_floats(value).size
        if cotangent is not None and cotangent.size != count:
            return (
                f"the gradient with respect to argument {position} holds {cotangent.size} floats, the argument {count}"
            )
    return None
