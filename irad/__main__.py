"""``python -m irad``: the command line."""

from irad.cli import main

main()
