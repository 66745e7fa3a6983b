"""Reports on CUDA kernels and their derivatives."""
