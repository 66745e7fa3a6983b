"""`irad.autodiff` and `irad.vjp` written in njit code."""

from irad.api.inside import autodiff_call as autodiff_call
from irad.api.inside import vjp_call as vjp_call
from irad.frontend.numba_untyped import cpu_target

# The first use of irad may be inside a function that Numba is typing at this moment.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
