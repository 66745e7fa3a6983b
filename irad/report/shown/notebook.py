"""Results as notebooks show them: a verdict, a place, a table, remarks. All texts are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, Literal

_STYLE: Final = Path(__file__).with_name("notebook.css")


@dataclass(frozen=True, slots=True)
class NumberCell:
    """A cell with a number; ``share`` of the largest in its column is drawn as a bar."""

    text: str
    share: float | None = None


def result(
    verdict: str,
    mood: Literal["good", "bad", "open", "plain"],
    place: str = "",
    head: Sequence[str] = (),
    rows: Iterable[Sequence[str | NumberCell]] = (),
    remarks: Iterable[str] = (),
) -> str:
    """One result as HTML.

    Args:
        verdict: the verdict, in a sentence.
        mood: whether that is good, bad or undecided.
        place: where the function is.
        head: titles of the columns of a table.
        rows: its cells; those of code are between backticks.
        remarks: texts below, which keep their lines.
    """
    parts = [f'<p class="verdict {mood}">{escape(verdict)}</p>']
    if place:
        parts.append(f'<p class="place">{escape(place)}</p>')
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    if body:
        titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
        parts.append(f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>")
    parts += [f"<pre>{escape(text)}</pre>" for text in remarks]
    style = _STYLE.read_text(encoding="utf-8")
    return f'<div class="irad-result"><style>{style}</style>{"".join(parts)}</div>'


def _cell(cell: str | NumberCell) -> str:
    if isinstance(cell, NumberCell):
        if cell.share is None:
            return f'<td class="number">{escape(cell.text)}</td>'
        return f'<td class="number bar" style="--share: {100 * cell.share:.1f}%">{escape(cell.text)}</td>'
    if len(cell) > 1 and cell[0] == cell[-1] == "`":
        return f"<td><code>{escape(cell[1:-1])}</code></td>"
    return f"<td>{escape(cell)}</td>"
