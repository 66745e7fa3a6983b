"""Places of accesses in arrays, iteration by iteration."""
