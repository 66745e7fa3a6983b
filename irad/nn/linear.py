"""The rule of kernels that are linear: the derivative of a linear map is the map, its adjoint the transpose."""

from __future__ import annotations

from typing import Any

import irad
from irad.rules import AugmentedReturn, is_active


def register_linear(add: Any, add_adjoint: Any) -> None:
    """Gives rules to a linear kernel and to its transpose, each by the other.

    Args:
        add: adds A · given to ``total``: a function of (total, given, settings); settings are numbers.
        add_adjoint: adds Aᵀ · total to ``given``: a function of (given, total, settings).
    """
    _register(add, add_adjoint)
    _register(add_adjoint, add)


def _register(add: Any, add_adjoint: Any) -> None:
    @irad.rules.augmented_primal(add)
    def augmented(config, total, given, settings):
        add(total.value, given.value, settings.value)
        return AugmentedReturn(None, None, None)

    @irad.rules.reverse(add)
    def reverse(config, cotangent, tape, total, given, settings):
        if is_active(total) and is_active(given):
            add_adjoint(given.shadow, total.shadow, settings.value)
        return None, None, None

    @irad.rules.forward(add)
    def forward(config, total, given, settings):
        add(total.value, given.value, settings.value)
        if is_active(total) and is_active(given):
            add(total.tangent, given.tangent, settings.value)
