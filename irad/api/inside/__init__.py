"""`irad.autodiff`, `irad.linearize`, `irad.vjp`, `irad.data` in njit code; the sweeps of `irad.split` called there."""

from irad.api.inside import (
    autodiff_call as autodiff_call,
    linearize_call as linearize_call,
    split_call as split_call,
    structure_calls as structure_calls,
    structure_space as structure_space,
    vjp_call as vjp_call,
)
from irad.frontend.numba.target import refresh_if_compiling

refresh_if_compiling()  # the first use of irad may be inside the function that Numba is typing
