"""Output of kernels: CUDA's `vprintf`, by Python.

    i32 @vprintf(ptr %format, ptr %values)

The values lie one after the other, each aligned to its size; a string is an address. Nothing is returned that a kernel
could rely on.
"""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

VPRINTF: Final = "vprintf"
PRINTED: Final = "irad.cuda.print"
"""Symbol of the function that prints."""
_ITEM: Final = re.compile(r"%(?:%|([-+ #0]*\d*(?:\.\d+)?)(ll|l|z|hh|h)?([diuoxXcfFeEgGaAsp]))")
_LONG: Final = ("ll", "l", "z")


@cache
def provide() -> Any:
    """Makes the function known to LLVM; the result keeps it."""
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(_print)
    llvm.add_symbol(PRINTED, ctypes.cast(function, ctypes.c_void_p).value)
    return function


def _print(format_: int, values: int) -> int:
    text = formatted(ctypes.string_at(format_).decode(errors="replace"), values)
    sys.stdout.write(text)
    return len(text)


def formatted(text: str, values: int) -> str:
    """A format of C with its values.

    Args:
        text: the format.
        values: their address.
    """
    place = values

    def take(kind: Any) -> Any:
        nonlocal place
        size = ctypes.sizeof(kind)
        place = -(-place // size) * size
        found = kind.from_address(place).value
        place += size
        return found

    def item(match: re.Match[str]) -> str:
        flags, length, letter = match.groups()
        if letter is None:
            return "%"
        if letter in "fFeEgGaA":
            number = take(ctypes.c_double)
            return number.hex() if letter in "aA" else f"%{flags}{letter}" % number
        if letter == "s":
            return f"%{flags}s" % ctypes.string_at(take(ctypes.c_uint64)).decode(errors="replace")
        if letter == "p":
            return f"{take(ctypes.c_uint64):#x}"
        if letter == "c":
            return chr(take(ctypes.c_int32) & 0xFF)
        signed, unsigned = (ctypes.c_int64, ctypes.c_uint64) if length in _LONG else (ctypes.c_int32, ctypes.c_uint32)
        return f"%{flags}{'d' if letter in 'iu' else letter}" % take(signed if letter in "di" else unsigned)

    return _ITEM.sub(item, text)
