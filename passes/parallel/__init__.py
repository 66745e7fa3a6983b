"""Parallel loops: kernels made differentiable, and run in lanes by both sweeps."""
