"""The command line: click commands and rich output, no logic. See README.md."""

from irad.cli.main import main

__all__ = ["main"]
