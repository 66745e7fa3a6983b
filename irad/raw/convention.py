"""C's convention, as `irad.passes` reads it: that of the entry which `program` adds; C itself has no statuses."""

from __future__ import annotations

from typing import Final

from irad.passes.convention import HostConvention
from irad.runtime_layouts import EXHAUSTED, NO_DERIVATIVE

C: Final = HostConvention(result=0, returned=(0,), exhausted=EXHAUSTED, no_derivative=NO_DERIVATIVE)
