"""A package of its own: some distributions install a package of this name, which would hide a bare folder."""
