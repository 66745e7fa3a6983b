"""One recursion over any structure: what its parts are, which are vectors, and how the whole is made again."""
