"""CUDA kernels as LLVM text, and PTX made of them."""
