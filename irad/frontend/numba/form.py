"""Forms in which programs are compiled for irad: what is compiled in another form has tables of its own."""

from __future__ import annotations

from irad.frontend.custom.catalogue import CustomRule
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """Options by which programs are compiled, where Numba does otherwise.

    Attributes:
        checks: whether indices are checked. Parallel loops are serial then: what their threads raise is lost.
        plain: whether parallel loops are compiled as loops, and checkpoints as calls: in derivatives that are
            differentiated.
        only_runs: whether the code is only run: what derivatives need to know of it is left out.
    """

    checks: bool = False
    plain: bool = False
    only_runs: bool = False

    def rule(self, found: CustomRule | None) -> CustomRule | None:
        """The rule that there is for a call."""
        if self.only_runs:
            return None
        return None if found is not None and found.is_checkpoint and self.plain else found
