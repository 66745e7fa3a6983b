"""The public names of ``irad``: a name loads the module that defines it."""
