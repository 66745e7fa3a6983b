"""Derivatives of CUDA kernels against hand-written reverse kernels; ``python -m bench.gpu``."""
