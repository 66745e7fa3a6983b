"""Option prices and time series."""
