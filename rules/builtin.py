"""All rules that come with irad."""

from __future__ import annotations

from typing import Final

from irad.rules import (
    arenas,
    c_library,
    elementwise,
    fourier,
    heap,
    inactive_callees,
    memory,
    numba_runtime,
    random_draws,
    scalar_calls,
    shortcuts,
    typed_dict,
    typed_list,
)
from irad.rules.blas import level1, level2, level3, products
from irad.rules.lapack import general_spectra, least_squares, reflectors, singular, spectra, symbols, systems
from irad.rules.scipy import outputs, special, voigt
from irad.ruleset.interface import Rule

ALL: Final[tuple[Rule, ...]] = (
    *elementwise.RULES,
    *special.RULES,
    *outputs.RULES,
    *voigt.RULES,
    *inactive_callees.RULES,
    *scalar_calls.RULES,
    *shortcuts.RULES,
    *random_draws.RULES,
    *products.RULES,
    *level1.RULES,
    *level2.RULES,
    *level3.RULES,
    *systems.RULES,
    *reflectors.RULES,
    *spectra.RULES,
    *general_spectra.RULES,
    *singular.RULES,
    *least_squares.RULES,
    *symbols.RULES,
    *fourier.RULES,
    *memory.RULES,
    *numba_runtime.RULES,
    *heap.RULES,
    *arenas.RULES,
    *c_library.RULES,
    *typed_list.RULES,
    *typed_dict.RULES,
)
