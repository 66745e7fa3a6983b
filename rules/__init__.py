"""The built-in rules. ``ALL`` is what a default registry holds."""

from __future__ import annotations

from typing import Final

from irad.rules import (
    blas,
    elementwise,
    inactive,
    lapack_least_squares,
    lapack_reflectors,
    lapack_singular,
    lapack_spectra,
    lapack_systems,
    memory,
    numba_runtime,
    scalar_calls,
    scipy_outputs,
    scipy_special,
    typed_dict,
    typed_list,
)
from irad.ruleset.interface import Rule

ALL: Final[tuple[Rule, ...]] = (
    *elementwise.RULES,
    *scipy_special.RULES,
    *scipy_outputs.RULES,
    *inactive.RULES,
    *scalar_calls.RULES,
    *blas.RULES,
    *lapack_systems.RULES,
    *lapack_reflectors.RULES,
    *lapack_spectra.RULES,
    *lapack_singular.RULES,
    *lapack_least_squares.RULES,
    *memory.RULES,
    *numba_runtime.RULES,
    *typed_list.RULES,
    *typed_dict.RULES,
)
