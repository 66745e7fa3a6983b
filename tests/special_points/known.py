"""Derivatives that are known not to be right, one by one: `not_right.txt`.

The reason stands above the points. A test fails where one that is not listed is wrong, and where a listed one is right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

PATH: Final = Path(__file__).with_name("not_right.txt")

Key: TypeAlias = tuple[str, str, str]
"""A point, an order and a mode, as a fault prints them."""

_LINE: Final = re.compile(r"(?P<name>\S.*?)(?P<point>\([-\d.e+inf, ]*\)) (?P<order>\(.*?\)) (?P<mode>\w.*)")


@cache
def listed() -> dict[str, dict[Key, str]]:
    """Of each case the derivatives that are not right, with the reason."""
    found: dict[str, dict[Key, str]] = defaultdict(dict)
    reason = ""
    for line in PATH.read_text("utf-8").splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            match = _LINE.fullmatch(line)
            assert match is not None, line
            found[match["name"]][match["point"], match["order"], match["mode"]] = reason
    return found
