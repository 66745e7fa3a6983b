"""The examples of the README and of the guides run as printed and print what is said there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.guides import GUIDES, PARTNERS, ROOT, Example, examples_of

README = (ROOT / "README.md").read_text(encoding="utf-8")


def examples() -> Iterator[ParameterSet]:
    for guide in GUIDES:
        for example in examples_of(guide):
            yield pytest.param(example, id=f"{guide}-{example.number}")


@pytest.mark.parametrize("guide", GUIDES)
def test_every_example_has_its_output(guide: str):
    text = (ROOT / guide).read_text(encoding="utf-8")
    assert len(examples_of(guide)) == text.count("```python") >= 1


@pytest.mark.parametrize("example", list(examples()))
def test_example(example: Example, tmp_path: Path):
    partner = PARTNERS.get(example.guide)
    if partner is not None:
        pytest.importorskip(partner, reason=f"{partner} is an extra: nox -s bridges")
    assert example.run(tmp_path) == example.output


def test_named_scripts_exist_and_are_executable():
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^\./scripts/.*$", README, flags=re.MULTILINE)]
    assert {"./scripts/demo", "./scripts/test"} <= {words[0] for words in commands}
    for words in commands:
        assert (ROOT / words[0]).stat().st_mode & 0o111, words[0]


def test_links_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in t]
    assert targets
    assert [t for t in targets if not (ROOT / t).exists()] == []
