"""All rules that come with irad."""

from __future__ import annotations

from typing import Final

from irad.rules import (
    blas,
    blas_level1,
    blas_level2,
    blas_level3,
    c_library,
    elementwise,
    fourier,
    heap,
    inactive_callees,
    lapack_least_squares,
    lapack_reflectors,
    lapack_singular,
    lapack_spectra,
    lapack_symbols,
    lapack_systems,
    memory,
    numba_runtime,
    random_draws,
    scalar_calls,
    scipy_outputs,
    scipy_special,
    scipy_voigt,
    typed_dict,
    typed_list,
)
from irad.ruleset.interface import Rule

ALL: Final[tuple[Rule, ...]] = (
    *elementwise.RULES,
    *scipy_special.RULES,
    *scipy_outputs.RULES,
    *scipy_voigt.RULES,
    *inactive_callees.RULES,
    *scalar_calls.RULES,
    *random_draws.RULES,
    *blas.RULES,
    *blas_level1.RULES,
    *blas_level2.RULES,
    *blas_level3.RULES,
    *lapack_systems.RULES,
    *lapack_reflectors.RULES,
    *lapack_spectra.RULES,
    *lapack_singular.RULES,
    *lapack_least_squares.RULES,
    *lapack_symbols.RULES,
    *fourier.RULES,
    *memory.RULES,
    *numba_runtime.RULES,
    *heap.RULES,
    *c_library.RULES,
    *typed_list.RULES,
    *typed_dict.RULES,
)
