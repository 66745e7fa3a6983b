"""Debug mode and the meter of the tape: what watched derivatives report, and the errors and warnings made from it."""
