"""The contract between the two sweeps: every decision is made once."""
