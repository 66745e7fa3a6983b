"""Jacobians: all columns by forward mode or all rows by reverse mode, in compiled code."""
