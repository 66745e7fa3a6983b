"""`irad doctor`."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator

import click
from rich.console import Console
from rich.table import Table

import irad
from irad.options import Options

_PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "matplotlib", "cupy-cuda12x", "numba-cuda")


@click.command()
def doctor() -> None:
    """Show the versions and settings that matter, for a bug report."""
    table = Table("what", "value", title="irad doctor")
    for what, value in _facts():
        table.add_row(what, value)
    Console().print(table)


def _facts() -> Iterator[tuple[str, str]]:
    yield "irad", irad.__version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    for name in _PACKAGES:
        yield name, _version_of(name)
    options = Options.from_environment()
    yield "options", f"plan={options.plan} strict={options.strict} verify={options.verify}"


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
