"""Derivatives of CUDA kernels against reverse kernels written by hand; ``python -m bench.gpu``."""
