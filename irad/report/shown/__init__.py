"""A report as text, as JSON, and single results for notebooks. See README.md."""
