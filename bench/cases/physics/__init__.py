"""Particles, fields and ordinary differential equations."""
