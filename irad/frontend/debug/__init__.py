"""Debug mode and the meter of the tape: what watched derivatives tell, and the errors and warnings made of it."""
