"""Rank 1 raises before it sends what rank 0 waits for."""

from __future__ import annotations

import numba_mpi as mpi
import numpy as np
from numba import njit

import irad


@njit
def exchanged(x):
    if mpi.rank() == 1:
        if x[0] > 0.0:
            raise ValueError("this rank has no data")
        mpi.send(x, 0, 1)
    else:
        mpi.recv(x, 1, 1)
    return (x**2).sum()


irad.grad(exchanged)(np.ones(3))
