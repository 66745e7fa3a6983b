"""Values of Python, taken apart and put together. ``irad.data`` is also where users find what works on structures.

The names are those of the stub beside this file, and load on first use: they are defined in `irad.api.structures`,
where the instances and containers of Numba are known.
"""

from __future__ import annotations

from irad.lazy import offered

_NAMES = offered(__name__)
__all__ = sorted(_NAMES.origins)
__dir__ = _NAMES.listed
__getattr__ = _NAMES.load
