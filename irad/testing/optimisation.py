"""How much Numba optimises, for code whose speed does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from numba.core import config

_LIMIT: Final = 1  # at 0 LLVM leaves so much code that machine code takes as long as is saved


@contextmanager
def optimisation_limited() -> Iterator[None]:
    """LLVM does little more than inline and simplify what Numba compiles meanwhile, and no vectors; in all threads."""
    before = config.OPT, config.LOOP_VECTORIZE
    config.OPT, config.LOOP_VECTORIZE = type(config.OPT)(min(config.OPT, _LIMIT)), 0
    try:
        yield
    finally:
        config.OPT, config.LOOP_VECTORIZE = before
