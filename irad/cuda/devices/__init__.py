"""Devices for kernels: a GPU, or the executor."""
