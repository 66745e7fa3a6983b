"""What kernels run on: a GPU, or the executor."""
