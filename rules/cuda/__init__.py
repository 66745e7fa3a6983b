"""Rules for what only CUDA kernels do."""

from __future__ import annotations

from typing import Final

from irad.rules.cuda import atomics, barriers, half, inactive, linear, ruled, shuffles
from irad.ruleset.interface import Rule

_MODULES: Final = (barriers, atomics, shuffles, linear, ruled, half, inactive)

KERNELS: Final[tuple[Rule, ...]] = tuple(rule for module in _MODULES for rule in module.RULES)
"""Before those of `irad.rules.builtin`."""
