"""Taylor series of functions."""
