"""Numba's CUDA kernels as LLVM text in the kernel dialect, without a driver or a toolkit."""
