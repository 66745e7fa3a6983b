"""Where in an array accesses lie, iteration by iteration."""
