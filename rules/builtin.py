"""The registry of all rules that come with irad. Those of libraries are loaded when a program calls one."""

from __future__ import annotations

import re
from functools import cache, partial
from importlib import import_module
from typing import Final

from irad.rules import (
    arenas,
    c_library,
    elementwise,
    heap,
    inactive_callees,
    memory,
    numba_runtime,
    shortcuts,
    typed_dict,
    typed_list,
)
from irad.ruleset.interface import Rule
from irad.ruleset.registry import Library, Registry

_ALWAYS: Final = (
    elementwise,
    inactive_callees,
    shortcuts,
    memory,
    numba_runtime,
    heap,
    arenas,
    c_library,
    typed_list,
    typed_dict,
)

LIBRARIES: Final = {
    r"scipy\.special\.": (
        "irad.rules.scipy.special",
        "irad.rules.scipy.elliptic",
        "irad.rules.scipy.outputs",
        "irad.rules.scipy.voigt",
    ),
    r"numba_x|numba_ez_|scipy\.linalg\.|[sdcz]\w{3,6}_$": (
        "irad.rules.blas.products",
        "irad.rules.blas.level1",
        "irad.rules.blas.level2",
        "irad.rules.blas.level3",
        "irad.rules.lapack.systems",
        "irad.rules.lapack.reflectors",
        "irad.rules.lapack.spectra",
        "irad.rules.lapack.general_spectra",
        "irad.rules.lapack.singular",
        "irad.rules.lapack.least_squares",
        "irad.rules.lapack.symbols",
    ),
    r"(numba_|__nv_)?(frexp|modf|cpow)|__(mul|div)[sd]c3": ("irad.rules.scalar_calls",),
    r"irad\.draw": ("irad.rules.random_draws",),
    r"irad\.fft\.": ("irad.rules.fourier",),
    r"irad\.mpi\.": ("irad.rules.mpi",),
}
"""Modules with rules, by the beginnings of the symbols that these are for; symbols of others may begin so, too."""


@cache
def registry() -> Registry:
    """All rules by symbol."""
    own = (rule for module in _ALWAYS for rule in module.RULES)
    return Registry.of(*own, libraries=[Library(re.compile(s), partial(_rules, m)) for s, m in LIBRARIES.items()])


def _rules(modules: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(rule for name in modules for rule in import_module(name).RULES)
