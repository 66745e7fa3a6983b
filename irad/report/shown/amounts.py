"""Numbers and types as people write them."""

from __future__ import annotations

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
