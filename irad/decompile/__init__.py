"""The adjoint as Python that people can read, made from what irad compiles."""
