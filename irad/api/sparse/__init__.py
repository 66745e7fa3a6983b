"""Sparse Jacobians and Hessians: a product for each colour, instead of one for each column."""
