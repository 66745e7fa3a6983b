"""The built-in rules. ``ALL`` is what a default registry holds.

``irad.rules`` is also where users find what they need to write rules of their own; see `irad.api.rules`. Those names
load on first use, since the rules themselves know nothing of a compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from irad.api.foreign import import_rule
    from irad.api.rules import (
        AugmentedReturn,
        RuleConfig,
        StatefulRule,
        Workspace,
        augmented_primal,
        build_rule,
        close,
        easy_rule,
        forward,
        has_rule,
        ignore_derivatives,
        inactive,
        inactive_arg,
        inactive_type,
        is_active,
        is_needed,
        noalias,
        noinline,
        opt_out,
        remove,
        reverse,
        stop_gradient,
        within_autodiff,
        workspace,
    )

__all__ = [
    "ALL",
    "AugmentedReturn",
    "RuleConfig",
    "StatefulRule",
    "Workspace",
    "augmented_primal",
    "build_rule",
    "close",
    "easy_rule",
    "forward",
    "has_rule",
    "ignore_derivatives",
    "import_rule",
    "inactive",
    "inactive_arg",
    "inactive_type",
    "is_active",
    "is_needed",
    "noalias",
    "noinline",
    "opt_out",
    "remove",
    "reverse",
    "stop_gradient",
    "within_autodiff",
    "workspace",
]

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'irad.rules' has no attribute {name!r}")
    home = "irad.api.foreign" if name == "import_rule" else "irad.api.rules"
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value
