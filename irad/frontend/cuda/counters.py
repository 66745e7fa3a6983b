"""Names that do not tell how often something was compiled: a kernel's derivatives are found by its text.

    _ZN8__main__6kernelB3v17B106cw51c…   the 17th function that Numba compiled        →    B2v1
    @_cudapy_smem_4                      the fourth array in shared memory            →    @_cudapy_smem_1

Numbers start anew, in the order of the text.
"""

from __future__ import annotations

import re
from typing import Final

_MANGLED: Final = re.compile(r"_Z[\w.$]+")
_FUNCTION: Final = re.compile(r"B(?P<length>\d+)v(?P<number>\d+)(?=B)")
_ARRAY: Final = re.compile(r"(?P<stem>_cudapy_[a-z]mem_)(?P<number>\d+)")


def restart_counters(text: str, symbol: str) -> tuple[str, str]:
    """A module and a symbol of it, in which what Numba counts is numbered in the order of the text."""
    functions: dict[str, int] = {}
    arrays: dict[str, int] = {}

    def function(match: re.Match[str]) -> str:
        number = match["number"]
        if int(match["length"]) != 1 + len(number):
            return match[0]
        tag = f"v{functions.setdefault(number, len(functions) + 1)}"
        return f"B{len(tag)}{tag}"

    def name(match: re.Match[str]) -> str:
        return _FUNCTION.sub(function, match[0])

    def array(match: re.Match[str]) -> str:
        return f"{match['stem']}{arrays.setdefault(match[0], len(arrays) + 1)}"

    return _ARRAY.sub(array, _MANGLED.sub(name, text)), _MANGLED.sub(name, symbol)
