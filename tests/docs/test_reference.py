"""The reference names every command with its options, and each of its sections the guides to read."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from irad.cli import main

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = sorted(REFERENCE.glob("*.md"))
TOOLS = (REFERENCE / "tools.md").read_text(encoding="utf-8")
CONTEXT = click.Context(main)
COMMANDS = ["", *main.list_commands(CONTEXT)]


def words(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_in_the_reference_is_that_of_the_command(name: str):
    """Its words; `scripts/make_command_help.py` writes them."""
    command = main.get_command(CONTEXT, name) if name else main
    assert command is not None
    shown = re.search(rf"### `{f'irad {name}'.strip()}`\n.*?```text\n(.*?)```", TOOLS, re.DOTALL)
    assert shown is not None
    text = words(shown[1])
    assert words(command.help or "") in text
    assert words(command.epilog or "") in text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert all(option in text for option in parameter.opts)
            assert words(parameter.help or "") in text
            assert parameter.help, f"{parameter.opts[0]} of irad {name} has no help"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns(name: str):
    shown = re.search(rf"### `{f'irad {name}'.strip()}`\n.*?```text\n(.*?)```", TOOLS, re.DOTALL)
    assert shown is not None
    assert max(map(len, shown[1].splitlines())) <= 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_section_names_guides_that_exist(page: Path):
    head, *sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections or [head]:
        named = re.search(r"^See also: ", section, re.MULTILINE) or re.search(r"^See also: ", head, re.MULTILINE)
        assert named or ":::" not in section, section.splitlines()[0]
    for line in re.findall(r"^See also: .*?\n\n", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        targets = re.findall(r"\]\(([^)#]+)", line)
        assert targets
        assert all((page.parent / target).is_file() for target in targets)
