"""Marks put into a finished pair for counting or watching, and their places in the source. See README.md."""
