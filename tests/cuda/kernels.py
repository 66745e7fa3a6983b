"""The kernels that every part of the CUDA support is tested with."""

from __future__ import annotations

from typing import Final

from tests.cuda.case import Case
from tests.cuda.programs import blocks, control, fields, inside, particles, warps

CASES: Final[tuple[Case, ...]] = (
    *control.CASES,
    *blocks.CASES,
    *warps.CASES,
    *particles.CASES,
    *fields.CASES,
    *inside.CASES,
)

KERNELS: Final[dict[str, Case]] = {case.name: case for case in CASES}
