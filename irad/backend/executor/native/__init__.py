"""LLVM text that the executor is made of."""
