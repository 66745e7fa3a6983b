"""Products and systems with sparse matrices in compiled code, with derivatives on the pattern."""

from __future__ import annotations

from irad.sparse_linalg.eigen import eigsh
from irad.sparse_linalg.products import (
    csc_matmat,
    csc_matvec,
    csc_solve_triangular,
    csr_matmat,
    csr_matvec,
    csr_solve_triangular,
)
from irad.sparse_linalg.solve import Factors, csc_lu_factor, csc_solve, csr_lu_factor, csr_solve, lu_solve

__all__ = [
    "Factors",
    "csc_lu_factor",
    "csc_matmat",
    "csc_matvec",
    "csc_solve",
    "csc_solve_triangular",
    "csr_lu_factor",
    "csr_matmat",
    "csr_matvec",
    "csr_solve",
    "csr_solve_triangular",
    "eigsh",
    "lu_solve",
]
