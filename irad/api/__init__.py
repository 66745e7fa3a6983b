"""What users call, as names of ``irad``. Loading any part of it tells Numba how to call all of it."""

from irad.api import inside as inside, nopython as nopython
