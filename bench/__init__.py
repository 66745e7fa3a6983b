"""Benchmarks: irad's gradients against hand-written Numba adjoints. The method is in README.md."""
