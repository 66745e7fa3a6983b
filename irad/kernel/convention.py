"""The convention of kernels, as `irad.passes` reads it: that of the entry which `program` makes of a kernel."""

from __future__ import annotations

from typing import Final

from irad.passes.convention import HostConvention

KERNEL: Final = HostConvention(result=0, returned=(0,), exhausted=1, no_derivative=2, is_shared=True)
