"""``irad demo``: a Gaussian mixture fitted by maximum likelihood with irad's gradient."""
