"""Forward mode: the primal with the tangents beside it."""
