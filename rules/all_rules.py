"""All rules that come with irad, as a tuple."""

from __future__ import annotations

from typing import Final

from irad.rules import builtin
from irad.ruleset.interface import Rule

ALL: Final[tuple[Rule, ...]] = tuple(builtin.registry().all_rules())
