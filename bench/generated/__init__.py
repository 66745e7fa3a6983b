"""A benchmark that cannot be tuned for: programs drawn at random, in families. See README.md of the benchmarks."""
