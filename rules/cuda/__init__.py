"""Rules for what only CUDA kernels do."""

from __future__ import annotations

from typing import Final

from irad.rules.cuda import atomics, barriers, inactive, linear, shuffles
from irad.ruleset.interface import Rule

KERNELS: Final[tuple[Rule, ...]] = (*barriers.RULES, *atomics.RULES, *shuffles.RULES, *linear.RULES, *inactive.RULES)
"""Before those of `irad.rules.builtin`."""
