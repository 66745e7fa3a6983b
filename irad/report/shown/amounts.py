"""Numbers, types and lines of code as people write them."""

from __future__ import annotations

import re
import textwrap

from irad.message import array_types


def format_bytes(count: int) -> str:
    """A number of bytes."""
    power = min((max(count, 1).bit_length() - 1) // 10, 3)
    return f"{count / 1024**power:.1f} {'KMG'[power - 1]}iB" if power else f"{count} B"


def format_seconds(seconds: float) -> str:
    """A time, with the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def short_signature(signature: str) -> str:
    """A signature with the types of arrays as they are written in code: `float64[:, ::1]`."""
    return array_types(signature.replace("readonly array(", "array("))


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 value", "2 values"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def parts_of_code(line: str, width: int) -> tuple[list[tuple[int, int]], int]:
    """The parts of a line of code that fit in ``width`` columns: broken between words; a word that is too long is cut.

    Returns:
        Start and end of each part, and the indentation of all but the first: further than the line's own. A line that
        is indented beyond the middle gets wider parts.
    """
    indent = len(line) - len(line.lstrip()) + 4
    parts, start, room = list[tuple[int, int]](), 0, width
    while len(line) - start > room:
        blanks = [found.start() for found in re.finditer(r"(?<=\S)\s", line[start : start + room + 1])]
        end = start + (blanks[-1] if blanks else room)
        parts.append((start, end))
        start = end + len(line[end:]) - len(line[end:].lstrip())
        room = max(width - indent, width // 2)
    return [*parts, (start, len(line))], indent


def wrapped_code(line: str, width: int) -> list[str]:
    """A line of code, wrapped to ``width`` columns; see `parts_of_code`."""
    parts, indent = parts_of_code(line, width)
    return [" " * indent * (start > 0) + line[start:end] for start, end in parts]


def wrapped_text(text: str, width: int) -> list[str]:
    """A sentence in lines of ``width`` columns, the first the least indented; a name that is too long is cut."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
