"""Derivatives of CUDA kernels, as text in the kernel dialect."""
