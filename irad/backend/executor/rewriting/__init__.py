"""A kernel rewritten to what one thread does on this machine."""
