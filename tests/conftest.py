"""Cyclic garbage collection looks at what tests make, not at Numba and irad again and again.

Both come to a quarter of a million objects. Test modules are imported later: what is theirs can be found and collected.
"""

import gc

import irad.testing  # noqa: F401 - it imports Numba and all of irad that compiles

gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)
