"""The examples of the README and of the guides run as printed and print what is said there."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = ("README.md", "docs/custom_rules.md", "docs/testing_gradients.md")
EXAMPLE = re.compile(r"```python\n(.*?)```\n+(?:prints\n+)?```text\n(.*?)```", re.DOTALL)


def examples() -> Iterator[ParameterSet]:
    for guide in GUIDES:
        found = EXAMPLE.findall((ROOT / guide).read_text(encoding="utf-8"))
        for number, (code, output) in enumerate(found, 1):
            yield pytest.param(code, output, id=f"{guide}-{number}")


@pytest.mark.parametrize("guide", GUIDES)
def test_every_example_has_its_output(guide: str):
    text = (ROOT / guide).read_text(encoding="utf-8")
    assert len(EXAMPLE.findall(text)) == text.count("```python") >= 3


@pytest.mark.parametrize(("code", "output"), list(examples()))
def test_example(code: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "example.py"
    script.write_text(code)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out == output


def test_named_scripts_exist_and_are_executable():
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^\./scripts/.*$", README, flags=re.MULTILINE)]
    assert {"./scripts/demo", "./scripts/test"} <= {words[0] for words in commands}
    for words in commands:
        assert (ROOT / words[0]).stat().st_mode & 0o111, words[0]


def test_links_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in t]
    assert targets
    assert [t for t in targets if not (ROOT / t).exists()] == []
