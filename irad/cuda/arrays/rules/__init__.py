"""All rules of irad for functions of array libraries."""

from __future__ import annotations

from itertools import chain
from typing import Final

from irad.cuda.arrays.rules import convolution, elementwise, fourier, moves, products, reductions, solving
from irad.cuda.arrays.ruleset import Rule

_MODULES: Final = (elementwise, reductions, products, fourier, moves, solving, convolution)
ALL: Final[tuple[Rule, ...]] = tuple(chain.from_iterable(module.RULES for module in _MODULES))
