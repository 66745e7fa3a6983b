"""Costs of a gradient: `irad bench` for users' functions, and the clock of irad's own benchmarks. See README.md."""
