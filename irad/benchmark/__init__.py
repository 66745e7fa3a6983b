"""What a gradient costs: `irad bench` for users' functions, and the clock of irad's own benchmarks. See README.md."""
