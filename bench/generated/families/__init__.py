"""The families: a module for each, with ``draw``, which makes a program of random choices."""

from __future__ import annotations

from collections.abc import Callable

from bench.generated.draw import Draw, Drawn
from bench.generated.families import factorisations, gathers, integrators, pairs, recurrences, stencils

FAMILIES: dict[str, Callable[[Draw], Drawn]] = {
    "stencil": stencils.draw,
    "gather": gathers.draw,
    "recurrence": recurrences.draw,
    "pairs": pairs.draw,
    "integrator": integrators.draw,
    "factorisation": factorisations.draw,
}
