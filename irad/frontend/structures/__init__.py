"""Recursion over structures in compiled code."""
