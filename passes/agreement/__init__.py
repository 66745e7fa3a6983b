"""The contract between the two sweeps: what decides something is decided once."""
