"""Numerical algebra: factorisations, solvers, interpolation, transforms."""
