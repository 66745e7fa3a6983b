"""What users call, as names of ``irad``. Whatever of it is loaded first, Numba knows how to call all of it."""

from irad.api import inside as inside, nopython as nopython
