"""The passes: `pipeline` is the table of them in the order of work, `README.md` explains."""
