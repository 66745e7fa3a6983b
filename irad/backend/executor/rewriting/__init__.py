"""A kernel rewritten as the code of one thread on this machine."""
