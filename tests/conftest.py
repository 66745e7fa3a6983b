"""Cyclic garbage collection looks at what tests make, not at Numba and irad again and again.

Both come to a quarter of a million objects. Test modules are imported later: what is theirs can be found and collected.
"""

import gc

from llvmlite.binding import ffi

import irad.testing  # noqa: F401 - it imports Numba and all of irad that compiles

gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)

# Numba times each call of LLVM, for `get_metadata`: that took 2.8 % of the time of the programs.
ffi.lib._lock._cblist.clear()
