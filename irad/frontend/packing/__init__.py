"""Structures of Python as arguments of compiled code."""
