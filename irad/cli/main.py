"""The command `irad`: its subcommands by name, each loaded when it is asked for.

Exit codes: 0 done, 1 an error of irad or a failed check, 2 a wrong command line.
"""

from __future__ import annotations

import sys
from errno import EPIPE
from importlib import import_module
from io import TextIOWrapper

import click

import irad
from irad.errors import IradError

_COMMANDS = {  # name → module of the command of that name, and its line in `irad --help`
    "bench": ("irad.cli.bench", "Measure the cost of a gradient, relative to the function and to one by hand."),
    "check": ("irad.cli.check", "Report what cannot be differentiated, verify the gradient, find weak points."),
    "demo": ("irad.cli.demo", "Fit a Gaussian mixture with irad's gradient, check it and time it."),
    "inspect": ("irad.cli.inspect", "Show the derivative of a function stage by stage, with reasons."),
    "opt": ("irad.cli.opt", "Differentiate LLVM IR of any front end, as text or bitcode."),
    "doctor": ("irad.cli.doctor", "Examine the installation: what is missing, and how to install it."),
}


class _Commands(click.Group):
    """A group that imports a command when it runs, and shows irad's errors as text: a mistake is not a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported."""
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without an import of any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in sorted(_COMMANDS)])

    def invoke(self, ctx: click.Context) -> object:
        """Run the chosen command; an `IradError` ends the process with status 1, and so does a full disk."""
        _print_what_can_be_printed()
        try:
            return super().invoke(ctx)
        except IradError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            if error.errno == EPIPE:  # click ends quietly
                raise
            click.echo(f"error: {error}", err=True)
            ctx.exit(1)


def _print_what_can_be_printed() -> None:
    """Characters that a terminal's encoding lacks become question marks: a table has lines, a report dashes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(irad.__version__, prog_name="irad")
def main() -> None:
    """Automatic differentiation of functions that Numba compiles."""
