"""C's convention, as `irad.passes` reads it: that of the entry which `program` adds; C itself has no statuses."""

from __future__ import annotations

from typing import Final

from irad.passes.convention import HostConvention

C: Final = HostConvention(result=0, returned=(0,), exhausted=1, no_derivative=2)
