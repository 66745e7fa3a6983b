"""The two sweeps of reverse mode, called separately: `irad.vjp`, `irad.split`, and the tape between them."""
