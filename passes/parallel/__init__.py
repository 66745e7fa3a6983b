"""Parallel loops: Numba's kernels made differentiable, and run in lanes by both sweeps."""
