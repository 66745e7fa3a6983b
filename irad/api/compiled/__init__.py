"""What compiled code calls: `irad.autodiff`, `irad.linearize`, `irad.vjp`, `irad.split` and its sweeps, `irad.data`."""
