"""Numbers and types as people write them."""

from __future__ import annotations

import re
from typing import Final

_ARRAY: Final = re.compile(r"(?:readonly )?array\((?P<dtype>\w+), (?P<dimensions>[1-9])d, (?P<layout>[ACF])\)")


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

    def short(match: re.Match[str]) -> str:
        axes = [":"] * int(match["dimensions"])
        if match["layout"] in "CF":
            axes[-1 if match["layout"] == "C" else 0] = "::1"
        return f"{match['dtype']}[{', '.join(axes)}]"

    return _ARRAY.sub(short, signature)


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 value", "2 values"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
