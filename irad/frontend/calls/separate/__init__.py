"""The two sweeps of `irad.vjp` and `irad.split`, which are called separately."""
