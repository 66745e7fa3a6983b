"""Every error in the source says why and what to do: no class of irad's is made with less."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import irad
from irad import errors

ROOT = Path(__file__).parents[2]
LINKS = tuple(ROOT / "irad" / folder for folder in ("passes", "rules"))
PARTS = ("problem", "remedy", "reason", "location", "detail", "focus")
CLASSES = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type)
    and issubclass(value, irad.IradError)
    and value not in (irad.ParseError, irad.InternalError, irad.UnsupportedProgram)
}
VAGUE = {"", "report it", "change it", "don't", "see the documentation"}


def made() -> Iterator[tuple[str, dict[str, ast.expr]]]:
    """Where an error is made, and with what."""
    for folder in ("irad", "passes", "rules"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any(link in path.parents for link in LINKS):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES:
                    given = dict(zip(PARTS, node.args, strict=False)) | {str(k.arg): k.value for k in node.keywords}
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", given


def test_every_error_has_a_reason_and_a_remedy():
    found = list(made())
    assert len(found) > 120
    poor = [
        place
        for place, given in found
        if not {"problem", "remedy", "reason"} <= given.keys()
        or any(isinstance(part, ast.Constant) and part.value in VAGUE for part in given.values())
    ]
    assert poor == []


def test_remedies_are_listed_alike():
    """ "(a) … or (b) …": that is what the text is taken apart by."""
    wrong = [
        place
        for place, given in made()
        if "(a)" in (text := ast.unparse(given["remedy"])) and not text.lstrip("frb").lstrip("'\"").startswith("(a) ")
    ]
    assert wrong == []
