"""Layout of an error: the source line with a marker below, text wrapped under its label, each remedy on a line.

For example:

    argument 0 (width) of area is an int64, which has no derivative
      at  model.py:7 in area
              def area(width, height):
                       ^^^^^
      why derivatives are with respect to floating-point numbers: an integer cannot change a little
      do  (a) pass a float, as in 3.0 in place of 3
          (b) leave it out of what is differentiated
"""

from __future__ import annotations

import linecache
import re
import textwrap
from collections.abc import Iterator
from typing import Final

WIDTH: Final = 88
_LABEL: Final = 6
_SOURCE: Final = " " * (_LABEL + 4)
_LONGEST_SOURCE: Final = 120
_LONGEST_DECORATION: Final = 50  # lines of decorators through which the `def` is searched
_ARRAY: Final = re.compile(r"(?<!\w)array\((?P<dtype>[^\s(),]+), (?P<dimensions>[1-9]\d?)d, (?P<layout>[ACF])\)")
_DEFINITION: Final = re.compile(r"(?:async )?def ")
_ALTERNATIVE: Final = re.compile(r"[,;]? or (?=\([b-z]\) )")


def with_article(name: str) -> str:
    """A noun in a sentence: "an array", "a list"."""
    return f"{'an' if name[:1] in tuple('aeiouAEIO') else 'a'} {name}"


def array_types(text: str) -> str:
    """Numba's names of array types, ``array(float64, 2d, C)``, as they are written in code: ``float64[:, ::1]``."""

    def written(match: re.Match[str]) -> str:
        axes = [":"] * int(match["dimensions"])
        if match["layout"] in "CF":
            axes[-1 if match["layout"] == "C" else 0] = "::1"
        return f"{match['dtype']}[{', '.join(axes)}]"

    return _ARRAY.sub(written, text)


def source_line(file: str, line: int) -> str:
    """The text of a line, without the space around it; empty where the file cannot be read."""
    return linecache.getline(file, line).strip()


def definition_line(file: str, first: int) -> int:
    """The line of a function's ``def``, which stands below its decorators, given the first line of both."""
    if not source_line(file, first).startswith("@"):
        return first
    lines = range(first, first + _LONGEST_DECORATION)
    return next((line for line in lines if _DEFINITION.match(source_line(file, line))), first)


def excerpt(text: str, focus: str | None) -> Iterator[str]:
    """A source line and, below, a marker under what matters.

    Args:
        text: the line.
        focus: the words to mark; they are marked if they stand in the line just once.
    """
    if not text:
        return
    shown = text if len(text) <= _LONGEST_SOURCE else text[: _LONGEST_SOURCE - 2] + " …"
    yield _SOURCE + shown
    found = list(re.finditer(rf"(?<![\w.]){re.escape(focus)}(?!\w)", shown)) if focus else []
    if len(found) == 1:
        start, end = found[0].span()
        yield _SOURCE + " " * start + "^" * (end - start)


def labelled(label: str, text: str) -> Iterator[str]:
    """Wrapped text, its first line after a label; line breaks in it stay."""
    head = f"  {label:<{_LABEL - 2}}"
    for line in text.splitlines() or [""]:
        yield from textwrap.wrap(
            line,
            WIDTH,
            initial_indent=head,
            subsequent_indent=" " * _LABEL,
            break_long_words=False,
            break_on_hyphens=False,
        )
        head = " " * _LABEL


def remedies(text: str) -> Iterator[str]:
    """Remedies; alternatives, "(a) … or (b) …", on lines of their own, indented under their letters."""
    label = "do"
    for alternative in _ALTERNATIVE.split(text):
        lettered = re.match(r"\([a-z]\) ", alternative) is not None
        first, *rest = labelled(label, alternative) if not lettered else _hanging(label, alternative)
        yield first
        yield from rest
        label = ""


def _hanging(label: str, text: str) -> Iterator[str]:
    letter, words = text[:4], text[4:]
    yield from textwrap.wrap(
        words,
        WIDTH,
        initial_indent=f"  {label:<{_LABEL - 2}}{letter}",
        subsequent_indent=" " * (_LABEL + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
