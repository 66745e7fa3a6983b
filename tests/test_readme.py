"""The examples of the README run as printed and print what it says."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n+(?:prints\n+)?```text\n(.*?)```", README, flags=re.DOTALL)


def test_there_are_three_examples_each_with_its_output():
    assert len(EXAMPLES) == README.count("```python") == 3


@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=["first", "second", "third"][: len(EXAMPLES)])
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
