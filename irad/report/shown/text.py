"""Stages as plain text."""

from __future__ import annotations

import difflib

from irad.report.model import StageText, TextLine


def shown_lines(stage: StageText, *, noise: bool = False) -> list[TextLine]:
    """The lines of a stage to be shown, without empty ones in a row.

    Args:
        stage: the stage.
        noise: show all lines as the compiler has them: metadata, reference counts, mangled names.
    """
    if noise:
        return [line if line.raw is None else TextLine(line.raw, line.line, line.value) for line in stage.lines]
    found: list[TextLine] = []
    for line in stage.lines:
        if not line.is_noise and (line.text.strip() or (found and found[-1].text.strip())):
            found.append(line)
    while found and not found[-1].text.strip():
        found.pop()
    return found


def stage_text(stage: StageText, *, noise: bool = False) -> str:
    """A stage as text."""
    return "\n".join(line.text for line in shown_lines(stage, noise=noise)) + "\n"


def difference(before: StageText, after: StageText, *, noise: bool = False) -> list[str]:
    """A unified diff of two stages."""
    old, new = ([line.text for line in shown_lines(stage, noise=noise)] for stage in (before, after))
    return list(difflib.unified_diff(old, new, before.stage.value, after.stage.value, lineterm=""))
