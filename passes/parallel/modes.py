"""Use that lanes of a parallel loop make of shadows that several of them can see: the result of `sharing`."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from irad.ir.values import Parameter
from irad.records import dataclass
from irad.runtime_layouts import WINDOW


class SharingMode(enum.Enum):
    """Use that lanes make of the shadow of a parameter's array."""

    DIRECT = "direct"  # no lane adds to it
    WINDOW = "window"  # lanes add to it: in the own window directly, elsewhere to a partial shadow
    WRITTEN_WINDOW = "written window"  # the same, and lanes take from it
    PRIVATE = "private"  # lanes add to partial shadows only


WINDOW_SIZE = WINDOW.size  # bytes that a window takes in the frame of a lane
SHARED = (SharingMode.WINDOW, SharingMode.WRITTEN_WINDOW, SharingMode.PRIVATE)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Use of each parameter's shadow.

    Attributes:
        modes: by parameter, those with a shadow that lanes touch.
        obstacle: why lanes must be reversed one by one; None if they need not.
    """

    modes: Mapping[Parameter, SharingMode]
    obstacle: str | None = None

    def shared(self) -> list[Parameter]:
        """The parameters with partial shadows, in order; none where lanes are reversed one by one."""
        return [] if self.obstacle else [p for p, mode in self.modes.items() if mode in SHARED]

    def explain(self, param: Parameter) -> str:
        """Use of a parameter's shadow, in words."""
        if self.obstacle:
            return f"lanes are reversed one by one: {self.obstacle}"
        mode = self.modes.get(param)
        return "no lane touches its shadow" if mode is None else f"its shadow is used {mode.value}"
